package pages

import (
	"regexp"
	"strings"
)

// row says of commands which test runs them, or why none does.
type row struct {
	// page is the name of a page without ending, empty for all; section is one of its
	// headings, empty for all.
	page, section string
	// form is what a command begins with, and not what it must not have; both are regular
	// expressions, and empty for any command.
	form, not string
	// test runs the commands; why says why no test does.
	test, why string
}

func (r *row) has(c *Command) bool {
	name := strings.TrimSuffix(strings.TrimPrefix(c.Page, "docs/"), ".md")
	return (r.page == "" || r.page == name) && (r.section == "" || r.section == c.Section) &&
		regexp.MustCompile(`^(?:`+r.form+`)`).MatchString(c.Text) && (r.not == "" || !regexp.MustCompile(r.not).MatchString(c.Text))
}

const (
	// onFiles are the commands that answer from files and the embedded catalogue.
	onFiles = `(?:bin/)?nap (?:plan|savings|catalog|explain|machine|get|what-if|diff|convert|lint) `
	// onCluster are those of nap that ask a cluster.
	onCluster = `nap (?:status|ledger|shadow|freeze|thaw|doctor|images|disable|get claims)|nap enable$|` +
		`nap (?:plan|explain node NAME) --context prod`
)

// runs is the table of the commands that tests run. A command may be in several rows.
func runs() []row {
	return []row{
		{form: onFiles, not: ` --context `, test: "TestDocumentedCommandsRun"},
		{form: `helm upgrade `, test: "TestDocumentedCommandsOfHelmRender"},
		{page: "azure", form: `nap `, test: "TestAzurePageCommandsRun"},
		{page: "prices", form: `nap prices fetch `, test: "TestFetchedPricesAreTerms"},
		{page: "prices", form: `nap prices import `, test: "TestDocumentedImportsRun"},
		{page: "networking", form: `az |export `, test: "TestDocumentedCommandsMakeHealthyClusters"},
		{page: "enable", section: "By a template", form: `az `, test: "TestDocumentedTemplateOfNapDeploys"},
		{page: "enable", section: "The switch of AKS", form: `az `, test: "TestDocumentedCommandsSwitchTheModeOfAKS"},
		{page: "cluster-autoscaler", form: `az `, test: "TestDocumentedCommandsLeaveTheClusterAutoscaler"},
		{page: "install", form: `az |export |bin/nap-controller role `, test: "TestDocumentedCommandsMakeTheIdentity"},
		{page: "upgrades", form: `az `, test: "TestDocumentedMaintenanceWindowOpens"},
		{page: "real-cluster", form: `nap lab run `, test: "TestStoryPlaysOnAnotherCluster"},
		{form: `kubectl `, not: `^kubectl (?:--namespace nap-system (?:get|set)|get --raw|get nodes$|create|top)`,
			test: "TestPagesCommandsRunOnACluster"},
		{form: onCluster, test: "TestPagesCommandsRunOnACluster"},
		{page: "real-cluster", form: `nap controller role `, test: "TestPagesCommandsRunOnACluster"},
		{page: "real-cluster", form: `nap controller manifests `, test: "TestDocumentedManifestsApply"},
		{form: `nap enable --`, test: "TestEnableOnEmptyCluster"},
		// These start labs, one after the other.
		{page: "lab", test: "TestLabPageCommandsRun"},
		{page: "README", form: `bin/nap lab |kubectl |export `, test: "TestLabPageCommandsRun"},
		{page: "machines", form: `nap lab `, test: "TestLabPageCommandsRun"},
		{page: "networking", form: `nap lab `, test: "TestLabPageCommandsRun"},
		{page: "upgrades", section: "Try it in the lab", test: "TestUpgradesPageCommandsRun"},
	}
}

// exceptions are the commands that no test runs, with the reasons.
func exceptions() []row {
	return []row{
		{page: "real-cluster", form: `az |export `, why: "they make and delete a cluster in a subscription that is paid for"},
		{page: "machines", form: `az rest `, why: "it is one request: TestPoolIsMadeOnceByTwoControllers has nap send it"},
		{page: "prices", form: `az (?:consumption|reservations) `,
			why: "what they print of a real subscription is a file of TestDocumentedImportsRun"},
		{form: `nap controller --`, why: "it runs until it is ended; every lab has such a process"},
		{form: `helm (?:rollback|uninstall) `, why: "they need Helm's package for releases: make takeover runs them with Go"},
		{page: "shadow", form: `nap would have bought`, why: "it is an answer"},
	}
}
