package disruption

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// three are large nodes whose pods fit on one machine that is smaller.
func three() []client.Object {
	return all(machine("a", "D16"), machine("b", "D16"), machine("c", "D16"),
		running(1, "web", "2500m", "a"), running(1, "web", "2500m", "b"), running(1, "web", "2500m", "c"))
}

func nothing(*world) {}

// hold forbids to move the pod of machine c.
func hold(w *world) {
	for _, p := range w.pods() {
		if p.Spec.NodeName == "node-c" {
			p.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
			w.must(w.kube.Update(w.ctx, &p))
		}
	}
}

func TestCommandKeepsOnlyNodeOfDoNotDisruptPod(t *testing.T) {
	w := newWorld(t, three()...)
	w.pass()
	w.pass()
	if len(w.loop.commands.active) != 1 || len(w.loop.commands.active[0].Remove) != 3 {
		t.Fatalf("moves are %v, want one of three nodes", w.loop.commands.active)
	}
	hold(w)
	for range 6 {
		if len(w.loop.commands.active) > 0 {
			w.run(1)
		}
	}
	if got := w.sizes(); got != "D16 D8" {
		t.Errorf("left are %s, want machine c and the replacement of the others", got)
	}
	if slices.ContainsFunc(w.evicted, func(name string) bool { return strings.HasPrefix(name, "web-c") }) {
		t.Errorf("evicted were %q, and one of them must not move", w.evicted)
	}
	w.wantQuiet()
}

func TestCommandContinuesWithoutUnavailableReplacement(t *testing.T) {
	w := newWorld(t, three()...)
	w.pass()
	if len(w.loop.commands.active) != 1 {
		t.Fatalf("%d moves, want one", len(w.loop.commands.active))
	}
	m := w.loop.commands.active[0]
	m.Replace = append(m.Replace, Replacement{Claim: "sold-out", Pool: "general"})
	w.cloud()
	w.clock.Step(observeWithin)
	w.run(6)
	if got := w.sizes(); got != "D8" {
		t.Errorf("left are %s, want the replacement that could be bought", got)
	}
	w.wantQuiet()
}

func TestCommandEmptyWhenAllPodsMustStay(t *testing.T) {
	w := newWorld(t, large()...)
	w.pass()
	w.pass()
	for _, p := range w.pods() {
		p.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
		w.must(w.kube.Update(w.ctx, &p))
	}
	w.run(5)
	if got := w.sizes(); got != "D16 D16" {
		t.Errorf("left are %s, want both, and no replacement", got)
	}
	w.wantQuiet()
}

func TestDecisionFitsCommandRecord(t *testing.T) {
	m := Record{ID: "12345678", Reason: "Underutilized"}
	for range nodesAtMost {
		m.Remove = append(m.Remove, Removed{Claim: strings.Repeat("c", 63), Node: strings.Repeat("n", 63), Pool: strings.Repeat("p", 63)})
		m.Replace = append(m.Replace, Replacement{Claim: strings.Repeat("c", 63), Pool: strings.Repeat("p", 63),
			InstanceType: "Standard_ND96isr_MI300X_v5", Zone: "southcentralus-3", CapacityType: "on-demand"})
	}
	if size := len(m.text()); size > 256<<10 {
		t.Errorf("a record of %d nodes takes %d bytes, Kubernetes allows %d", nodesAtMost, size, 256<<10)
	}
}
