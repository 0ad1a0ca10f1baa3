package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/model"
)

const inflate = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: inflate}
spec:
  replicas: 3
  selector: {matchLabels: {app: inflate}}
  template:
    metadata: {labels: {app: inflate}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: inflate, image: pause, resources: {requests: {cpu: "1"}}}]
`

// TestConvertWritesObjectsThatRun converts manifests as they were published, and plans
// pods on what comes out: the API server's schemas and rules take it, and machines are
// bought by it.
func TestConvertWritesObjectsThatRun(t *testing.T) {
	for _, name := range []string{"v1beta1-general-purpose", "v1-default", "v1alpha5-general-purpose", "v1alpha5-spot-priority",
		"v1alpha5-gpu-workloads", "preview-selectors", "preview-numbers", "provisioner"} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := nap.Run(t, "convert", "-f", "testdata/convert/"+name+".yaml", "--region", "uksouth")
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			clitest.Golden(t, "convert/"+name, out+"=== said\n"+errs)
			path := filepath.Join(t.TempDir(), "today.yaml")
			if err := os.WriteFile(path, []byte(out+inflate), 0o600); err != nil {
				t.Fatal(err)
			}
			plan, errs, code := nap.Run(t, "plan", "-f", path, "--region", "uksouth")
			if code == 1 || !strings.Contains(plan, "Buy ") {
				t.Errorf("exit code %d: %s%s", code, plan, errs)
			}
			again, _, code := nap.Run(t, "convert", "-f", path)
			if code != 0 || !strings.HasPrefix(again, strings.TrimSuffix(out, "\n")) {
				t.Errorf("what is today's does not stay as it is: %s", again)
			}
		})
	}
}

func TestConvertAgentPools(t *testing.T) {
	out, errs, code := nap.Run(t, "convert", "--from-agent-pools", "-f", "testdata/convert/agentpools.json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	clitest.Golden(t, "convert/agentpools", out+"=== said\n"+errs)
}

func TestConvertClassAndWhatIsNotConverted(t *testing.T) {
	out, errs, code := nap.Run(t, "convert", "-f", "testdata/convert/v1alpha2-class.yaml")
	if code != 0 || !strings.Contains(out, "apiVersion: karpenter.azure.com/v1beta1") || strings.Contains(out, "resourceVersion") ||
		!strings.Contains(errs, "+ apiVersion: karpenter.azure.com/v1beta1") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	path := filepath.Join(t.TempDir(), "in.yaml")
	text := "apiVersion: karpenter.sh/v1beta1\nkind: NodeClaim\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code = nap.Run(t, "convert", "-f", path)
	if code != 0 || !strings.Contains(out, "kind: ConfigMap") || strings.Contains(out, "NodeClaim") || !strings.Contains(errs, "NodeClaim a is left out") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func TestConvertRefusesWhatCannotBeCarriedOver(t *testing.T) {
	pool := func(requirement string) string {
		return "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: p}\nspec: {template: {spec: {nodeClassRef: {name: default}, requirements: [" +
			requirement + "]}}}\n"
	}
	for name, tt := range map[string]struct{ text, want string }{
		"zone without region": {pool(`{key: topology.kubernetes.io/zone, operator: In, values: ["1"]}`), "such as eastus-1: give --region"},
		"no such series":      {pool(`{key: karpenter.k8s.azure/sku-series, operator: In, values: [XYv9]}`), `no series is called "XYv9"`},
		"list of minima":      {pool(`{key: karpenter.k8s.azure/sku-cpu, operator: In, values: ["4", "8"]}`), "it meant at least one number"},
		"no successor":        {pool(`{key: karpenter.k8s.azure/sku-colour, operator: Exists}`), "karpenter.k8s.azure/sku-colour has no successor"},
		"GPU too large":       {pool(`{key: karpenter.k8s.azure/sku-gpu-memory, operator: In, values: ["4000"]}`), "no GPU has 4000 GiB"},
		"policy":              {"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec: {disruption: {consolidationPolicy: Sometimes}}\n", `got "Sometimes", allowed: WhenEmptyOrUnderutilized, WhenEmpty, Balanced`},
		"what stays wrong":    {pool(`{key: karpenter.azure.com/sku-cpus, operator: In, values: ["4"]}`), "NodePool p: the API server would refuse it: "},
		"no YAML":             {"a: [", "is neither YAML nor JSON"},
	} {
		path := filepath.Join(t.TempDir(), "in.yaml")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := nap.Run(t, "convert", "-f", path)
		if code != 1 || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", name, code, out, errs)
		}
	}
	nap.Mistakes(t, map[string]clitest.Mistake{
		"nothing":      {Args: []string{"convert"}, Want: "nap: nothing to convert: give objects with -f FILE"},
		"no file":      {Args: []string{"convert", "-f", "nowhere.yaml"}, Want: "nap: -f nowhere.yaml: no such file or directory: give the path"},
		"no cluster":   {Args: []string{"convert", "--from-agent-pools", "-f", "testdata/convert/provisioner.yaml"}, Want: "nap: testdata/convert/provisioner.yaml: is not what"},
		"wrong region": {Args: []string{"convert", "-f", "testdata/convert/provisioner.yaml", "--region", "mars"}, Want: "nap: "},
	})
}

// TestEveryConsolidationPolicyIsTaken holds the commands that read NodePools against the
// policies that Karpenter's definition has.
func TestEveryConsolidationPolicyIsTaken(t *testing.T) {
	for _, policy := range model.ConsolidationPolicies() {
		path := filepath.Join(t.TempDir(), "in.yaml")
		text := poolWith("limits: {cpu: 64}\n  disruption: {consolidateAfter: 1m, consolidationPolicy: "+policy+"}",
			"requirements: [{key: karpenter.azure.com/sku-family, operator: In, values: [D]}]")
		if err := os.WriteFile(path, []byte(text+inflate), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"convert", "-f", path}, {"plan", "-f", path}, {"lint", "-f", path}, {"explain", "offer", "Standard_D4s_v5", "-f", path},
			{"diff", "-f", path, "--from", path},
		} {
			if out, errs, code := nap.Run(t, args...); code == 1 || strings.Contains(errs, "consolidationPolicy") {
				t.Errorf("%s: %v: exit code %d: %s%s", policy, args, code, out, errs)
			}
		}
	}
}

func TestPlanRefusesOldNodePoolsWithTheCommand(t *testing.T) {
	for _, name := range []string{"v1beta1-general-purpose", "v1alpha5-gpu-workloads", "preview-selectors"} {
		out, errs, code := nap.Run(t, "plan", "-f", "testdata/convert/"+name+".yaml")
		if code != 1 || !strings.Contains(errs, "nap convert -f FILE writes it so") || strings.Contains(out, "Buy 1") {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
}
