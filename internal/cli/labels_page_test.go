package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

var (
	labelRow  = regexp.MustCompile("(?m)^\\| (`[^|]*/[^|]*`) \\| [^|]* \\| (?:`([^`|]+)`)? ?\\|$")
	labelName = regexp.MustCompile("`([^`]+)`")
)

// TestLabelsOnPageCanBeAskedFor: the page of NodePools lists each label that the API server
// takes in Azure's domains, and a machine is planned for the example of each.
func TestLabelsOnPageCanBeAskedFor(t *testing.T) {
	text, err := os.ReadFile("../../docs/nodepools.md")
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(slices.Values(slices.Concat(v1beta1.RequirementLabels(), v1beta1.AKSRequirementLabels(), []string{
		"karpenter.sh/capacity-type", "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone",
		"kubernetes.io/arch", "kubernetes.io/os",
	})))
	table, _, _ := strings.Cut(string(text), "\n\nAny other label")
	var got []string
	for _, row := range labelRow.FindAllStringSubmatch(table, -1) {
		for _, label := range labelName.FindAllStringSubmatch(row[1], -1) {
			got = append(got, label[1])
		}
		if label := strings.Trim(row[1], "`"); row[2] != "" {
			t.Run(label, func(t *testing.T) { planLabel(t, label, row[2]) })
		}
	}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("labels on the page (-want +got):\n%s", diff)
	}
}

// planLabel plans a pod that asks for the label on a NodePool that requires it.
func planLabel(t *testing.T, label, value string) {
	t.Helper()
	class := "{imageFamily: Ubuntu}"
	if label == v1beta1.AKSLabelDomain+"/fips_enabled" {
		class = "{imageFamily: AzureLinux, fipsMode: FIPS}"
	}
	code, out := planOfLabel(t, label, value, class)
	if code != 2 || !strings.HasPrefix(out, "Buy 1 node") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// planOfLabel is what nap plan says of a NodePool that requires the label, and of a pod that
// asks for it.
func planOfLabel(t *testing.T, label, value, class string) (int, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pool.yaml")
	objects := fmt.Sprintf(`
apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: default}
spec: %s
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: one}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}
      requirements: [{key: %[2]s, operator: In, values: [%[3]q]}]
---
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: default}
spec:
  nodeSelector: {%[2]s: %[3]q}
  containers: [{name: one, image: one, resources: {requests: {cpu: "1", memory: 1Gi}}}]
`, class, label, value)
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := Main(t.Context(), []string{"plan", "-f", file, "--region", "eastus"}, "test",
		command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return code, out.String()
}

// A label that the cloud decides is not made up for a NodePool that requires it: the
// machine would lack it, and the launch would refuse it.
func TestRequiredLabelThatNoMachineHasIsRefused(t *testing.T) {
	code, out := planOfLabel(t, v1beta1.AKSLabelDomain+"/fips_enabled", "true", "{imageFamily: Ubuntu}")
	if code != 2 || !strings.Contains(out, "Buy nothing") || !strings.Contains(out, "NodePoolRequirement") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
