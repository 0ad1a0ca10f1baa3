package disruption

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// replacementOf is the claim that replaces a machine.
func (w *world) replacementOf(machine string) *karpv1.NodeClaim {
	w.t.Helper()
	for _, c := range w.loop.commands.active {
		for _, claim := range w.claims() {
			if claim.Annotations[v1beta1.AnnotationReplaces] == c.ID && c.Remove[0].Claim == machine {
				return &claim
			}
		}
	}
	w.t.Fatalf("nothing replaces %s", machine)
	return nil
}

// Two machines are replaced, and one of them is deleted by hand: its pod takes the replacement that
// comes first, which is the other's. That one goes to the replacement which is still on its way.
func TestCommandWaitsForReplacementOfAnother(t *testing.T) {
	objs := all(machine("a", "D16"), machine("b", "D16"), running(1, "web", "1500m", "a"), running(1, "web", "1500m", "b"))
	for _, o := range objs {
		if p, is := o.(*corev1.Pod); is {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				}},
			}}
		}
	}
	for _, late := range []bool{false, true} {
		w := newWorld(t, objs...)
		for tries := 0; tries < 6 && len(w.claims()) < 4; tries++ {
			w.pass()
		}
		ofA, ofB := w.replacementOf("a"), w.replacementOf("b")
		w.place = func(*corev1.Pod, string) string { return "" }
		w.delete(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		w.moveAll()
		w.pass()
		w.join(ofB, "D2")
		for _, p := range w.pods() {
			if p.Spec.NodeName == "" {
				p.Spec.NodeName = "node-" + ofB.Name
				w.must(w.kube.Update(w.ctx, &p))
			}
		}
		w.place = w.roomFor
		w.pass()
		w.pass()
		if len(w.loop.commands.active) == 0 || w.recorder.has("rolled back") {
			t.Fatalf("%d commands are under way: %q", len(w.loop.commands.active), w.recorder.lines)
		}
		if late { // it does not wait for ever
			w.passFor(replaceWithin)
			w.pass()
			w.pass()
			if got := len(w.loop.commands.active); got > 0 {
				t.Errorf("%d commands still wait %s after they began", got, replaceWithin)
			}
			continue
		}
		w.join(ofA, "D2")
		w.run(8)
		if got := w.sizes(); got != "D2 D2" || w.recorder.has("rolled back") {
			t.Errorf("left are %s, want D2 D2: %q", got, w.recorder.lines)
		}
		w.wantQuiet()
	}
}
