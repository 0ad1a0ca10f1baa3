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

// The annotations by which nap decides are compared; one which the file lacks goes or stays as
// with kubectl apply.
func TestDiffOfAnnotations(t *testing.T) {
	pool := func(metadata string) string {
		return strings.Replace(poolWith("weight: 1", "requirements: []"), "{name: general}", "{name: general"+metadata+"}", 1)
	}
	const cost = "karpenter.azure.com/max-hourly-cost"
	applied := func(annotations string) string {
		return `kubectl.kubernetes.io/last-applied-configuration: '{"metadata": {"annotations": {` + annotations + `}}}'`
	}
	for name, c := range map[string]struct {
		before, after, want string
	}{
		"the same":          {`, annotations: {` + cost + `: "0.30"}`, `, annotations: {` + cost + `: "0.30"}`, ""},
		"another value":     {`, annotations: {` + cost + `: "0.30"}`, `, annotations: {` + cost + `: "1.00"}`, cost + ` "1.00", which was "0.30"`},
		"new":               {``, `, annotations: {karpenter.azure.com/node-cost: "0.10"}`, `has karpenter.azure.com/node-cost "0.10"`},
		"gone from a file":  {`, annotations: {karpenter.azure.com/frozen: ""}`, ``, `has no karpenter.azure.com/frozen`},
		"of others":         {`, annotations: {other: a}`, `, annotations: {other: b}`, ""},
		"written otherwise": {`, uid: u, annotations: {karpenter.azure.com/frozen: "", ` + applied("") + `}`, ``, ""},
		"without kubectl":   {`, uid: u, annotations: {karpenter.azure.com/frozen-until: "2027-01-01T00:00:00Z"}`, ``, ""},
		"applied":           {`, uid: u, annotations: {` + cost + `: "1", ` + applied(`"`+cost+`": "1"`) + `}`, ``, `has no ` + cost + `, which was "1"`},
	} {
		out, errs, code := nap.Run(t, "diff", "-f", writeInput(t, pool(c.after)), "--from", writeInput(t, pool(c.before)), "--budget", "0")
		said, want := strings.Join(strings.Fields(out), " "), 2
		if c.want == "" {
			c.want, want = "Nothing would change", 0
		}
		if code != want || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q in\n%s%s", name, code, want, c.want, out, errs)
		}
	}
}

// A freeze outlives an edit of the spec, so that nodes which drift by that stay.
func TestDiffOfFrozenPool(t *testing.T) {
	pool := poolWith("weight: 1", "requirements: []")
	frozen := strings.Replace(pool, "{name: general}", `{name: general, uid: u, annotations: {karpenter.azure.com/frozen: "release"}}`, 1)
	const node = "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels: {karpenter.sh/nodepool: general, " +
		"node.kubernetes.io/instance-type: Standard_D4s_v5, topology.kubernetes.io/zone: eastus-1, karpenter.sh/capacity-type: on-demand}\n" +
		"status: {allocatable: {cpu: 3860m, memory: 12Gi, pods: 110}}\n"
	edited := writeInput(t, poolWith("weight: 1", "requirements: []\n      expireAfter: 1h"))
	out, errs, code := nap.Run(t, "diff", "-f", edited, "--from", writeInput(t, frozen+node), "--budget", "0")
	if code != 2 || !strings.Contains(out, "= n1 (NodePoolDrifted) stays:") || strings.Contains(out, "karpenter.azure.com/frozen \"") {
		t.Errorf("exit code %d, want 2, and that n1 stays in\n%s%s", code, out, errs)
	}
}

// What a loosely packed fleet saves once its nodes are replaced is no merit of the edit that replaces them.
func TestDiffTellsSavingWithoutTheEdit(t *testing.T) {
	const from = "../../docs/examples/fleet.yaml"
	for name, c := range map[string]struct{ family, label, want string }{
		"a label":        {"D", "{team: a}", `saves $975.17/month without the change, too; the change itself makes no difference to the price.`},
		"another family": {"E", "{}", `saves $975.17/month without the change, too; the change itself costs $70.08/month more.`},
	} {
		pool := strings.ReplaceAll(`apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    metadata: {labels: LABELS}
    spec:
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}
      requirements:
      - {key: karpenter.azure.com/sku-family, operator: In, values: [FAMILY]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
`, "FAMILY", c.family)
		out, errs, code := nap.Run(t, "diff", "-f", writeInput(t, strings.ReplaceAll(pool, "LABELS", c.label)), "--from", from, "--budget", "0")
		if said := strings.Join(strings.Fields(out), " "); code != 2 || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, want 2 and %q in\n%s%s", name, code, c.want, out, errs)
		}
	}
}
