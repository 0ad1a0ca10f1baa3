package provisioning

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Of a StatefulSet that creates its pods one by one, one is always planned ahead: while the one
// before it boots for minutes, and again as soon as it has come itself, be it bound at once.
func TestOrderedSetHasOneMachineAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		three := int32(3)
		set := &appsv1.StatefulSet{ObjectMeta: replicaSet("db", 0).ObjectMeta, Spec: appsv1.StatefulSetSpec{Replicas: &three}}
		alone := func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "db"}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
				}},
			}}
		}
		w := newWorld(t, objects(nodePool(), podsOf("StatefulSet", set, 0, 1, alone))...)
		w.create(set)
		w.sync()
		w.plan()
		w.wantClaims(2)
		for range 18 { // it boots for three minutes
			time.Sleep(10 * time.Second)
			w.sync()
			w.plan()
			w.wantClaims(2)
		}
		// The first is ready, and the second comes, for which there is a machine. So the third has one.
		w.join(w.claims()[0], "4")
		w.join(w.claims()[1], "4")
		w.bind("db-0", "node-"+w.claims()[0].Name)
		w.create(podsOf("StatefulSet", set, 1, 1, alone)...)
		w.sync()
		w.plan()
		w.wantClaims(3)
		w.bind("db-1", "node-"+w.claims()[1].Name)
		w.sync()
		w.plan()
		w.wantClaims(3)
		// It is the last one.
		w.create(podsOf("StatefulSet", set, 2, 1, alone)...)
		w.sync()
		w.plan()
		w.wantClaims(3)
	})
}

// Each pod of a StatefulSet that creates them one by one is a reason to plan, although it is bound
// already: its next one has no machine yet. Seen again it is none, and neither is the last.
func TestPodOfOrderedSetOpensBatch(t *testing.T) {
	two := int32(2)
	for name, c := range map[string]struct {
		policy appsv1.PodManagementPolicyType
		// opens says of each pod whether it opens a batch.
		opens []bool
	}{
		"ordered": {appsv1.OrderedReadyPodManagement, []bool{true, false}}, "parallel": {appsv1.ParallelPodManagement, []bool{false}},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: replicaSet("db", 0).ObjectMeta,
			Spec: appsv1.StatefulSetSpec{Replicas: &two, PodManagementPolicy: c.policy}}
		pods := podsOf("StatefulSet", set, 0, len(c.opens), func(p *corev1.Pod) { p.Spec.NodeName = "n" })
		w := newWorld(t, append(pods, nodePool(), set)...)
		for i, pod := range pods {
			for _, want := range []bool{c.opens[i], false} {
				if _, err := w.loop.triggers.podChanged(w.ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil {
					t.Fatal(err)
				}
				if opened := !w.loop.batch.empty(); opened != want {
					t.Errorf("%s: pod %d opens a batch: %t, want %t", name, i, opened, want)
				}
				w.loop.batch.reset()
			}
		}
	}
}
