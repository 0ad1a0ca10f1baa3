package provisioning

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
)

// playFor plans every ten seconds, as waiting pods make the loop do, and gives every
// claim a node half a minute after it was bought. spoil changes the node before it is
// there. It returns when machines were bought.
func (w *world) playFor(d time.Duration, spoil func(*corev1.Node)) []time.Duration {
	w.t.Helper()
	const boot = 30 * time.Second
	var bought []time.Duration
	seen, begin := map[string]time.Time{}, time.Now()
	for _, claim := range w.claims() {
		seen[claim.Name] = begin
	}
	for time.Since(begin) < d {
		w.sync()
		w.plan()
		for _, claim := range w.claims() {
			since, known := seen[claim.Name]
			if !known {
				seen[claim.Name] = time.Now()
				bought = append(bought, time.Since(begin))
			}
			if known && time.Since(since) >= boot && claim.Status.NodeName == "" {
				node := w.join(claim, "4")
				spoil(node)
				if err := w.kube.Update(w.ctx, node); err != nil {
					w.t.Fatal(err)
				}
			}
		}
		time.Sleep(retryAfter)
	}
	return bought
}

func stayingTaint(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/agent", Value: "missing", Effect: corev1.TaintEffectNoSchedule})
}

func TestPodThatLandsNowhereStopsPurchases(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.Node){
		"a taint that stays":       stayingTaint,
		"a label that never comes": func(n *corev1.Node) { delete(n.Labels, "tier") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, objects(nodePool(), needing(waitingPods(1, "1")))...)
				bought := w.playFor(10*time.Minute, spoil)
				if len(bought) < 2 || len(bought) > 3 {
					t.Fatalf("bought %d machines in ten minutes, at %v, want 2 or 3", len(bought), bought)
				}
				if got := w.recorder.of(event.ReasonPurchaseFailed); len(got) == 0 || !strings.Contains(got[0], "came and took none of its pods") {
					t.Errorf("the events are %q, want one that tells of the machine", got)
				}
				held := w.recorder.of("FailedScheduling")
				if len(held) == 0 || !strings.Contains(held[len(held)-1], "purchases in a row led to no running pod") {
					t.Errorf("the events are %q, want one that says why nothing is bought", held)
				}
				if got := w.cluster.failed["web-00"]; !strings.Contains(got, "purchases in a row led to no running pod") {
					t.Errorf("Karpenter's state is told %q of the pod, want why nothing is bought", got)
				}
				if got := metricstest.Value(t, w.registry, "nap_provision_purchases_failed_total", metrics.OutcomeUnused); int(got) != len(bought) {
					t.Errorf("the metric counts %v purchases that failed, want %d", got, len(bought))
				}
				// The pauses grow, and end.
				more := w.playFor(40*time.Minute, spoil)
				if len(more) < 1 || len(more) > 2 {
					t.Errorf("%d machines in the next 40 minutes, at %v, want one or two probes", len(more), more)
				}
				// A change lets it try sooner, with one machine.
				pool := &karpv1.NodePool{}
				w.update(types.NamespacedName{Name: "general"}, pool, func() { pool.Generation++ })
				before := len(w.claims())
				w.playFor(20*time.Second, spoil)
				w.wantClaims(before + 1)
			})
		})
	}
}

// needing makes pods ask for the label that NodePool general promises.
func needing(pods []client.Object) []client.Object {
	for _, o := range pods {
		o.(*corev1.Pod).Spec.NodeSelector = map[string]string{"tier": "gold"}
	}
	return pods
}

func TestPurchaseThatLandsForgetsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(1, "1"))...)
		w.playFor(3*time.Minute+20*time.Second, stayingTaint) // the third purchase is not decided yet
		if got := w.recorder.of(event.ReasonPurchaseFailed); len(got) < 2 {
			t.Fatalf("%d purchases failed, want 2 or more", len(got))
		}
		for _, claim := range w.claims() {
			w.bind("web-00", claim.Status.NodeName)
		}
		w.sync()
		// Another workload waits, so that there is a round.
		for _, o := range waitingPods(2, "3")[1:] {
			if err := w.kube.Create(w.ctx, o); err != nil {
				t.Fatal(err)
			}
		}
		w.sync()
		w.plan()
		if !w.loop.admission.backoff.purchases.Quiet() {
			t.Error("the failures are not forgotten although a pod runs on a machine that was bought for it")
		}
	})
}

func TestClaimsThatEndAtOnceComeEverMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(1, "1"))...)
		bought := 0
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
			w.sync()
			w.plan()
			for _, claim := range w.claims() {
				bought++
				w.deleteClaim(&claim)
				w.mirror.feed.Delete(&claim)
			}
		}
		// Two are forgiven: a user may have deleted them.
		if bought < 3 || bought > 10 {
			t.Errorf("%d claims in a minute, want a few", bought)
		}
		if got := w.recorder.of(event.ReasonPurchaseFailed); len(got) == 0 || !strings.Contains(got[0], "ended without a machine") {
			t.Errorf("the events are %q, want one that tells of the claim", got)
		}
	})
}

func TestFailedPurchasesOfOneWorkloadLeaveOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := waitingPods(1, "1")
		w := newWorld(t, objects(nodePool(), pods)...)
		w.playFor(5*time.Minute, stayingTaint)
		before := len(w.claims())
		other := waitingPods(2, "1")[1].(*corev1.Pod)
		other.Name, other.UID = "other", "other"
		if err := w.kube.Create(w.ctx, other); err != nil {
			t.Fatal(err)
		}
		w.sync()
		w.plan()
		w.wantClaims(before + 1)
		newest := fmt.Sprint(w.claims()[before].Annotations)
		if !strings.Contains(newest, "Pod default/other") || strings.Contains(newest, "Pod default/web-00") {
			t.Errorf("the new claim is for %s, want it for the other pod alone", newest)
		}
	})
}

func TestMachineThatCannotBootIsAFailedPurchase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(1, "1"))...)
		w.plan()
		claim := w.claims()[0]
		w.update(types.NamespacedName{Name: claim.Name}, &claim, func() {
			claim.Status.ProviderID = "azure:///a"
			claim.StatusConditions().SetFalse(v1beta1.ConditionBooted, "BootFailed", "exit 124")
		})
		w.sync()
		// The pod is planned again, as if its place had been taken back.
		w.loop.reservations.claims = map[string]string{}
		w.plan()
		if got := w.recorder.of(event.ReasonPurchaseFailed); len(got) != 1 {
			t.Errorf("the events are %q, want one about the machine that cannot boot", got)
		}
	})
}

// unboot has the machine of a claim say that it does not become a node.
func (w *world) unboot(claim *karpv1.NodeClaim) {
	w.t.Helper()
	w.update(types.NamespacedName{Name: claim.Name}, claim, func() {
		claim.Status.ProviderID, claim.Status.ImageID = "azure:///"+claim.Name, "/images/2204gen2/versions/1"
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		claim.StatusConditions().SetFalse(v1beta1.ConditionBooted, "BootFailed", "exit 124")
	})
	w.sync()
}

// A claim whose machine does not become a node is no place for pods, while it still
// exists: neither for its own, which are planned elsewhere in the next round, nor for
// those that come.
func TestUnbootableMachineIsNoPlaceForPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(1, "1"))...)
		w.plan()
		broken := w.claims()[0]
		if !w.loop.reservations.hold(broken.Name) {
			t.Fatal("the pod has no place on the machine that was bought for it")
		}
		for round := 2; round <= 3; round++ {
			w.unboot(&broken)
			w.plan()
			w.wantClaims(round) // at once, without a pause
			if w.loop.reservations.hold(broken.Name) {
				t.Errorf("pods have a place on the machine of %s, which does not become a node", broken.Name)
			}
			broken = w.claims()[round-1]
			if got := broken.Annotations[v1beta1.AnnotationBoughtFor]; !strings.Contains(got, "Pod default/web-00") {
				t.Errorf("the new claim is for %s, want it for the pod", got)
			}
		}
		// A pod that comes later finds room on the machine that boots, and on no other.
		if err := w.kube.Create(w.ctx, waitingPods(2, "100m")[1]); err != nil {
			t.Fatal(err)
		}
		w.sync()
		w.plan()
		w.wantClaims(3)
		if got := w.loop.reservations.claims; got["pod-0"] != broken.Name || got["pod-1"] != broken.Name || len(got) != 2 {
			t.Errorf("places are %v, want both on %s", got, broken.Name)
		}
		if got := w.recorder.of(event.ReasonPurchaseFailed); len(got) != 2 || !strings.Contains(got[0], "its condition Booted says") {
			t.Errorf("the events are %q, want one for each machine that does not become a node", got)
		}
	})
}

// Pods need not wait for their next turn.
func TestUnbootableMachineOpensABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(1, "1"))...)
		w.plan()
		pod := waitingPods(1, "1")[0].(*corev1.Pod)
		w.loop.pods.Observe(pod)
		before := w.claims()[0]
		now := before
		w.unboot(&now)
		w.loop.triggers.claimChanged(w.ctx, ctrlevent.UpdateEvent{ObjectOld: &before, ObjectNew: &before}, nil)
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if _, opened := w.loop.batch.Wait(ctx, func(context.Context, []Owner) bool { return false }); opened {
			t.Error("a change of another kind opens a batch")
		}
		w.loop.triggers.claimChanged(w.ctx, ctrlevent.UpdateEvent{ObjectOld: &before, ObjectNew: &now}, nil)
		begin := time.Now()
		if _, opened := w.loop.batch.Wait(w.ctx, func(context.Context, []Owner) bool { return false }); !opened || time.Since(begin) > time.Second {
			t.Errorf("the batch opened %v after %s", opened, time.Since(begin))
		}
	})
}
