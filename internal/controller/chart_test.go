package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/detail"
)

// described are all metrics that the controller can emit, with their labels.
func described(t *testing.T) map[string][]string {
	t.Helper()
	own := prometheus.NewRegistry()
	for _, register := range []func() error{
		func() error { _, err := metrics.NewProvisioning(own); return err },
		func() error { _, err := metrics.NewDisruption(own); return err },
		func() error { _, err := metrics.NewBoots(own); return err },
		func() error { _, err := metrics.NewOfferings(own, nil); return err },
		func() error { return metrics.NewDollarLimits(own, nil) },
		func() error { _, err := metrics.NewLeading(own); return err },
		func() error { _, err := metrics.NewPauses(own); return err },
		func() error { _, err := metrics.NewBootstrapToken(own); return err },
		func() error { _, err := metrics.NewPrerequisites(own); return err },
		func() error { _, err := launch.NewMetrics(own, "eastus", false); return err },
	} {
		if err := register(); err != nil {
			t.Fatal(err)
		}
	}
	descs := make(chan *prometheus.Desc, 1000)
	own.Describe(descs)
	if karpenter, ok := ctrlmetrics.Registry.(prometheus.Collector); ok {
		karpenter.Describe(descs)
	}
	close(descs)
	form := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	out := map[string][]string{}
	for d := range descs {
		m := form.FindStringSubmatch(d.String())
		out[m[1]] = strings.Split(m[2], ",")
	}
	return out
}

// What the chart's alerts and dashboards ask for is there, under these names and labels.
func TestChartAsksForMetricsThatExist(t *testing.T) {
	known := described(t)
	for name := range known { // those that are served without details
		if kept, summed := detail.Kept(name); summed {
			known[name] = kept
		}
	}
	const chart = "../../charts/nap/files/"
	files, err := filepath.Glob(chart + "dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\b(?:nap|karpenter)_[a-z_]+`)
	by := regexp.MustCompile(`by \(([a-z_, ]+)\) \((?:[a-z]+\()?((?:nap|karpenter)_[a-z_]+)`)
	asked, grouped := 0, 0
	for _, file := range append(files, chart+"rules.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range name.FindAllString(string(text), -1) {
			asked++
			if _, ok := known[strings.TrimSuffix(metric, "_bucket")]; !ok {
				t.Errorf("%s asks for %s, which the controller does not emit", file, metric)
			}
		}
		for _, m := range by.FindAllStringSubmatch(string(text), -1) {
			for label := range strings.SplitSeq(m[1], ",") {
				grouped++
				if label = strings.TrimSpace(label); !slices.Contains(known[strings.TrimSuffix(m[2], "_bucket")], label) && label != "le" {
					t.Errorf("%s groups %s by %s, it has the labels %v", file, m[2], label, known[m[2]])
				}
			}
		}
	}
	if asked < 35 || grouped < 20 {
		t.Errorf("only %s were found", fmt.Sprint(asked, " metrics and ", grouped, " labels"))
	}
}

// The alerts on counters count the first value of a series, too: a series is not there before its
// first failure, and increase() counts from its first value on. A plan of many machines which all
// fail at once would be no alert.
func TestAlertsCountTheFirstFailures(t *testing.T) {
	increase := regexp.MustCompile(`increase\((\w+)\[(\w+)\]\)`)
	found := 0
	for alert, expr := range alerts(t) {
		for _, m := range increase.FindAllStringSubmatch(expr, -1) {
			found++
			counter, window := m[1], m[2]
			want := fmt.Sprintf("(%[1]s unless last_over_time(%[1]s[1h] offset %[2]s) or increase(%[1]s[%[2]s])) > 2", counter, window)
			if !strings.HasSuffix(expr, want) {
				t.Errorf("%s: %s\ndoes not count the first value of a series: want %s", alert, expr, want)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d alerts count failures, want two or more", found)
	}
}

// alerts are the expressions of the chart's alerts, by name.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../charts/nap/files/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			out[rule.Alert] = rule.Expr
		}
	}
	return out
}

// Where nothing runs there are no series, and an alert that compares them is silent.
func TestAlertFiresWhereNothingRuns(t *testing.T) {
	if expr := alerts(t)["NapDoesNotRun"]; expr != "absent(nap_leading == 1)" {
		t.Errorf("NapDoesNotRun looks at %q", expr)
	}
}

// Limits in dollars are annotations, and not among Karpenter's metrics of limits.
func TestAlertOfLimitsKnowsDollars(t *testing.T) {
	expr := alerts(t)["NapNodePoolNearItsLimit"]
	for _, want := range []string{
		"max by (nodepool, resource_type) (karpenter_nodepools_limit > 0) > 0.9",
		"max by (nodepool) (nap_nodepool_used_dollars_per_hour) / max by (nodepool) (nap_nodepool_limit_dollars_per_hour > 0)",
	} {
		if !strings.Contains(expr, want) {
			t.Errorf("NapNodePoolNearItsLimit looks at %s, not at %s", expr, want)
		}
	}
}

// A token that is to live for less than an hour always ends within an hour: the alert looks at
// its renewal instead.
func TestAlertOfTokenLooksAtItsRenewal(t *testing.T) {
	if expr := alerts(t)["NapBootstrapTokenEnds"]; expr != "max(nap_bootstrap_token_renewal_late_seconds) > 0" {
		t.Errorf("NapBootstrapTokenEnds looks at %s", expr)
	}
}

// What docs/metrics.md says of the series that the public mixin for Karpenter asks for is so:
// those with data exist with their labels, and the others do not. Karpenter's controller of the
// metrics of nodes registers them when it is made: a story in the lab looks at those.
func TestMixinAsksForMetricsThatExist(t *testing.T) {
	known := described(t)
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(karpenter_[a-z_]+)` \\| ([^|]*) \\| [^|]+ \\| (yes|after the first error|while pods wait|no: .+) \\|$").FindAllStringSubmatch(string(text), -1)
	if len(rows) != 32 {
		t.Errorf("the table has %d rows, want one for each of the mixin's 32 series", len(rows))
	}
	for _, row := range rows {
		if strings.HasPrefix(row[1], "karpenter_nodes_total_") || row[1] == "karpenter_nodes_allocatable" {
			continue
		}
		labels, exists := known[row[1]]
		if lacks := strings.HasPrefix(row[3], "no: "); lacks == exists {
			t.Errorf("%s: the page says %q, and that it exists is %v", row[1], row[3], exists)
			continue
		}
		for label := range strings.SplitSeq(row[2], ", ") {
			if exists && label != "-" && !slices.Contains(labels, label) {
				t.Errorf("%s is asked for by %s, and has the labels %v", row[1], label, labels)
			}
		}
	}
}
