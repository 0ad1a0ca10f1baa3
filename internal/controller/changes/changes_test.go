package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
)

func TestChangesAreCountedButNotWhatIsDeliveredAgain(t *testing.T) {
	objects := &informertest.FakeInformers{}
	counter, err := Of(t.Context(), objects, &corev1.Node{}, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	fake := func(kind client.Object) *controllertest.FakeInformer {
		informer, err := objects.FakeInformerFor(t.Context(), kind)
		if err != nil {
			t.Fatal(err)
		}
		return informer
	}
	nodes, pods := fake(&corev1.Node{}), fake(&corev1.Pod{})
	first, second := &corev1.Node{}, &corev1.Node{}
	first.ResourceVersion, second.ResourceVersion = "1", "2"
	for i, step := range []struct {
		what string
		do   func()
		want uint64
	}{
		{"a node comes", func() { nodes.Add(first) }, 1},
		{"it is delivered again", func() { nodes.Update(first, first.DeepCopy()) }, 1},
		{"it changes", func() { nodes.Update(first, second) }, 2},
		{"a pod comes", func() { pods.Add(&corev1.Pod{}) }, 3},
		{"the node goes", func() { nodes.Delete(second) }, 4},
	} {
		if step.do(); counter.Count() != step.want {
			t.Errorf("step %d, %s: %d changes are counted, want %d", i, step.what, counter.Count(), step.want)
		}
	}
}
