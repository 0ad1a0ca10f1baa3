package provisioning

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
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
		"a taint that stays": stayingTaint,
		"a machine that is smaller than promised": func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"),
				corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")}
		},
		"a label that never comes": func(n *corev1.Node) { delete(n.Labels, "tier") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, objects(nodePool(), needing(waitingPods(1, "1")))...)
				bought := w.playFor(10*time.Minute, spoil)
				if len(bought) < 2 || len(bought) > 3 {
					t.Fatalf("bought %d machines in ten minutes, at %v, want 2 or 3", len(bought), bought)
				}
				if got := w.recorder.of(ReasonPurchaseFailed); len(got) == 0 || !strings.Contains(got[0], "came and took none of its pods") {
					t.Errorf("the events are %q, want one that tells of the machine", got)
				}
				held := w.recorder.of("FailedScheduling")
				if len(held) == 0 || !strings.Contains(held[len(held)-1], "purchases in a row led to no running pod") {
					t.Errorf("the events are %q, want one that says why nothing is bought", held)
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
		w.playFor(3*time.Minute, stayingTaint)
		if got := w.recorder.of(ReasonPurchaseFailed); len(got) < 2 {
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
				w.delete(&claim)
				w.mirror.feed.Delete(&claim)
			}
		}
		if bought < 3 || bought > 8 {
			t.Errorf("%d claims in a minute, want a few", bought)
		}
		if got := w.recorder.of(ReasonPurchaseFailed); len(got) == 0 || !strings.Contains(got[0], "ended without a machine") {
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
		if got := w.recorder.of(ReasonPurchaseFailed); len(got) != 1 {
			t.Errorf("the events are %q, want one about the machine that cannot boot", got)
		}
	})
}
