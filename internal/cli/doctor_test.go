package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
	"github.com/nodeautoprovision/nap/internal/prerequisites/azurefacts"
)

// watched is what the controller finds in the patient: with the rights of its role, and
// without the sources that are left to nap doctor.
func (p *patient) watched() []prerequisites.Result {
	p.Helper()
	p.configured(func(c *armsim.Config) {
		c.Principals = []armsim.Principal{{ClientID: "nap", Actions: config.Actions()}, {ClientID: "owner"}}
	})
	env := p.admit()
	reader, err := azurefacts.New(azurefacts.Target{
		Subscription: env.SubscriptionID, ResourceGroup: env.ResourceGroup, Name: env.ClusterName, Class: offline.DefaultNodeClass("default"),
		RetailPrices: armtest.Endpoint + "/api/retail/prices", Leave: prerequisites.LeftToDoctor(),
	}, env.Credential, env.ClientOptions(), env.HTTP, time.Now)
	if err != nil {
		p.Fatal(err)
	}
	facts, err := reader.Read(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	if err := p.readCluster(p.Context(), nil, facts); err != nil {
		p.Fatal(err)
	}
	return prerequisites.CheckWatched(facts)
}

// TestControllerFindsWhatDoctorFinds: of the rows that it looks at, and no more; its role is
// enough for all of them.
func TestControllerFindsWhatDoctorFinds(t *testing.T) {
	for _, r := range healthy(t).watched() {
		if r.Verdict != prerequisites.OK {
			t.Errorf("healthy: %+v", r)
		}
	}
	faults := planted()
	for _, row := range prerequisites.Table() {
		if !row.Watched() {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			p := healthy(t)
			want := faults[row.Name](p)
			found := 0
			for _, r := range p.watched() {
				if found++; r.Number != row.Number && r.Verdict != prerequisites.OK {
					t.Errorf("also %d %s: %s: %s", r.Number, r.Name, r.Verdict, r.Finding)
				}
				if r.Number == row.Number && (r.Verdict != row.Worst || !strings.Contains(r.Finding, want)) {
					t.Errorf("%+v\nwant %s: %s", r, row.Worst, want)
				}
			}
			if found < 35 {
				t.Errorf("%d rows are looked at", found)
			}
		})
	}
}

func TestDoctorFindsNothingOnHealthyClusters(t *testing.T) {
	for name, change := range map[string]func(*patient){
		"network of AKS": func(*patient) {},
		"own network":    func(p *patient) { p.inOwnNetwork() },
		"own rules that permit": func(p *patient) {
			p.inOwnNetwork(rule("yes", "100", "Inbound", "Allow", "*", "VirtualNetwork", "VirtualNetwork", "*"),
				rule("balancer", "110", "Inbound", "Allow", "Tcp", "AzureLoadBalancer", "172.19.0.0/28", "9988"),
				rule("no", "4000", "Inbound", "Deny", "*", "*", "*", "*"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := healthy(t)
			change(p)
			report, text, code := p.examine()
			if code != 0 || report.Verdict != prerequisites.OK || len(report.Results) != len(prerequisites.Table()) {
				t.Errorf("exit code %d: %s", code, text)
			}
		})
	}
}

func TestDoctorReportForPeople(t *testing.T) {
	p := healthy(t)
	p.says(`{"nodeProvisioningProfile": {"mode": "Auto"}}`)
	_, text, code := p.examine("-o", "text")
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	clitest.Golden(t, "doctor/failed", text)
	_, text, _ = healthy(t).examine("-o", "text")
	clitest.Golden(t, "doctor/healthy", text)
}

func TestDoctorSaysWhatCouldNotBeRead(t *testing.T) {
	p := healthy(t)
	p.configured(func(c *armsim.Config) {
		c.Principals = []armsim.Principal{{ClientID: "nap", Actions: config.Actions()}}
	})
	report, _, code := p.examine()
	if code != exitUnknown || report.Verdict != prerequisites.Unknown {
		t.Errorf("exit code %d, verdict %s", code, report.Verdict)
	}
	_, text, _ := p.examine("-o", "text")
	clitest.Golden(t, "doctor/unknown", text)
}

func TestDoctorRefusesWhatNamesNoCluster(t *testing.T) {
	for name, v := range map[string]string{"ARM_RESOURCE_GROUP": "", "CLUSTER_NAME": "", "AZURE_SUBSCRIPTION_ID": ""} {
		t.Setenv(name, v)
	}
	nap.Mistakes(t, map[string]clitest.Mistake{
		"no group":  {Args: []string{"doctor", "--name", "c"}, Want: "nap: which AKS cluster? give --resource-group, or set ARM_RESOURCE_GROUP"},
		"no name":   {Args: []string{"doctor", "-g", "g"}, Want: "nap: which AKS cluster? give --name, or set CLUSTER_NAME"},
		"form":      {Args: []string{"doctor", "-o", "xml"}, Want: `nap: --output`},
		"no access": {Args: []string{"doctor", "-g", "g", "-n", "c", "--subscription", someSubscription, "--kubeconfig", "/nowhere"}, Want: "nap: --kubeconfig /nowhere"},
	})
}

// The cluster is found, and its user impersonated, by the flags of kubectl.
func TestDoctorReachesTheClusterAsKubectlDoes(t *testing.T) {
	p := healthy(t)
	p.examine("--context", "c", "--as", "jane", "--as-group", "devs", "-o", "yaml")
	if p.access == nil || p.access.Impersonate.UserName != "jane" || !slices.Equal(p.access.Impersonate.Groups, []string{"devs"}) {
		t.Errorf("the cluster was reached by %v", p.access)
	}
}

// kubeconfigOfNothing is a kubeconfig whose cluster is never asked.
func kubeconfigOfNothing(t *testing.T) string { return kubeconfigOf(t, "https://127.0.0.1:1") }

func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "` + server + `"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"users": [{"name": "u", "user": {}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each network that AKS has, with each way out of it, is a healthy one.
func TestDoctorFindsNothingInAnyNetwork(t *testing.T) {
	for _, network := range armsim.Networks() {
		for _, outbound := range armsim.Outbounds() {
			t.Run(network+"-"+outbound, func(t *testing.T) {
				p := healthy(t)
				p.configured(func(c *armsim.Config) { c.Cluster.Network, c.Cluster.Outbound = network, outbound })
				if report, text, code := p.examine(); code != 0 || report.Verdict != prerequisites.OK {
					t.Errorf("exit code %d: %s", code, text)
				}
			})
		}
	}
}
