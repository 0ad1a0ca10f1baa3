package cli

import (
	"strings"
	"testing"
)

// A file of node classes alone is compared, and tags alone replace no machine.
func TestDiffOfNodeClasses(t *testing.T) {
	class := func(spec string) string {
		return "---\napiVersion: karpenter.azure.com/v1beta1\nkind: AKSNodeClass\nmetadata: {name: default}\nspec: " + spec + "\n"
	}
	const node = "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels: {karpenter.sh/nodepool: general, " +
		"node.kubernetes.io/instance-type: Standard_D4s_v5, topology.kubernetes.io/zone: eastus-1, karpenter.sh/capacity-type: on-demand}\n" +
		"status: {allocatable: {cpu: 3860m, memory: 12Gi, pods: 110}}\n"
	from := writeInput(t, poolWith("weight: 1", "requirements: []")+class("{osDiskSizeGB: 128, tags: {team: a}}")+node)
	for name, c := range map[string]struct {
		spec string
		code int
		want string
	}{
		"the same":   {"{osDiskSizeGB: 128, tags: {team: a}}", 0, "Nothing would change"},
		"other tags": {"{osDiskSizeGB: 128, tags: {team: b}}", 2, "AKSNodeClass default has other tags, which machines get where they are"},
		"other disk": {"{osDiskSizeGB: 256, tags: {team: a}}", 2, "AKSNodeClass default is changed"},
	} {
		out, errs, code := nap.Run(t, "diff", "-f", writeInput(t, class(c.spec)), "--from", from, "--budget", "0")
		if code != c.code || !strings.Contains(out, c.want) || strings.Contains(errs, "not compared") {
			t.Errorf("%s: exit code %d, want %d and %q in\n%s%s", name, code, c.code, c.want, out, errs)
		}
		if drifts := strings.Contains(out, "NodeClassDrift"); drifts != (name == "other disk") {
			t.Errorf("%s: a node drifts: %v\n%s", name, drifts, out)
		}
	}
}
