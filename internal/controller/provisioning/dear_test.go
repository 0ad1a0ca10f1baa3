package provisioning

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
)

// againSizes are sizes with prices between which more than 5 percent lie.
var againSizes = []string{
	"Standard_D2s_v5", "Standard_D4s_v5", "Standard_D8s_v5", "Standard_D2as_v5", "Standard_D4as_v5", "Standard_D8as_v5",
	"Standard_E4s_v5", "Standard_F4s_v2",
}

// watched is what a test has seen of claims.
type watched struct {
	// claims are those that there ever were, by name, as they were seen last.
	claims map[string]*karpv1.NodeClaim
	// first is when each was first seen, ended when its end was.
	first, ended map[string]time.Time
}

// until lets time pass until there is room for all pods on machines that were made, at
// most for d.
func (w *azureWorld) until(d time.Duration, pods int) *watched {
	w.t.Helper()
	seen := &watched{claims: map[string]*karpv1.NodeClaim{}, first: map[string]time.Time{}, ended: map[string]time.Time{}}
	var reminded time.Time
	for begin := time.Now(); time.Since(begin) < d; time.Sleep(137 * time.Millisecond) {
		w.deliver()
		for name, c := range w.known {
			if seen.claims[name] == nil {
				seen.first[name] = time.Now()
			}
			if seen.claims[name] = c; !c.DeletionTimestamp.IsZero() && seen.ended[name].IsZero() {
				seen.ended[name] = time.Now()
			}
		}
		if time.Since(reminded) > retryAfter {
			reminded = time.Now()
			for _, pod := range waitingPods(pods, "1") {
				if _, err := w.loop.triggers.podChanged(w.ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil {
					w.t.Fatal(err)
				}
			}
		}
		if w.room() >= pods {
			return seen
		}
	}
	w.t.Errorf("after %s there is room for %d of %d pods", d, w.room(), pods)
	return seen
}

// room is for how many pods of one CPU there is room on machines that were made; 0 while
// others are on their way.
func (w *azureWorld) room() int {
	room := 0
	for _, c := range w.claims() {
		if c.Status.ProviderID == "" || !c.DeletionTimestamp.IsZero() {
			return 0
		}
		room += int(c.Status.Allocatable.Cpu().MilliValue() / 1000)
	}
	return room
}

// giveBack deletes the pods and all claims, and checks that nothing is left.
func (w *azureWorld) giveBack(pods int) {
	w.t.Helper()
	for _, pod := range waitingPods(pods, "1") {
		if err := w.kube.Delete(w.ctx, pod); err != nil {
			w.t.Fatal(err)
		}
		w.mirror.feed.Delete(pod)
		w.loop.pods.Forget(client.ObjectKeyFromObject(pod))
	}
	for _, c := range w.claims() {
		if err := w.kube.Delete(w.ctx, &c); err != nil {
			w.t.Fatal(err)
		}
	}
	for begin := time.Now(); time.Since(begin) < 10*time.Minute && len(w.claims()) > 0; time.Sleep(time.Second) {
		w.deliver()
	}
	time.Sleep(5 * time.Minute) // Azure keeps a refused machine's interface for three
	w.givenBack()
}

// refused counts what Azure refused, at once or later.
func (w *azureWorld) refused() int {
	n := 0
	for _, e := range w.env.Server.Audit(0) {
		call := e.Kind == armsim.AuditCall && e.Action == "Microsoft.Compute/virtualMachines/write" && e.Status >= 400
		if call || e.Action == "vm.failed" {
			n++
		}
	}
	return n
}

// accepted counts the machines that Azure made or is making, refused ones not.
func (w *azureWorld) accepted() int {
	n := 0
	for _, e := range w.env.Server.Audit(0) {
		switch e.Action {
		case "vm.accepted":
			n++
		case "vm.failed":
			n--
		}
	}
	return n
}

func price(t *testing.T, c *karpv1.NodeClaim, annotation string) float64 {
	t.Helper()
	dollars, err := strconv.ParseFloat(c.Annotations[annotation], 64)
	if err != nil {
		t.Fatalf("NodeClaim %s: annotation %s: %v", c.Name, annotation, err)
	}
	return dollars
}

// Whatever Azure refuses, the pods get machines as long as it sells any, after no more
// plans than it has refused offerings; no machine costs over 5 percent more than planned,
// none is bought twice, and nothing is left behind.
func TestPodsArePlannedAgainUntilMachinesAreBought(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			pods := 1 + random.IntN(8)
			inMarket(t, market{againSizes, []string{"spot", "on-demand"}}, waitingPods(pods, "1"), func(t *testing.T, w *azureWorld) {
				kept := random.IntN(len(againSizes))
				for i, size := range againSizes {
					for _, priority := range []string{"Spot", "Regular"} {
						if i == kept && priority == "Regular" || random.IntN(4) == 0 {
							continue
						}
						w.fault(armsim.Fault{Kind: armsim.FaultCapacity, Code: "SkuNotAvailable", Size: size, Priority: priority})
					}
				}
				seen := w.until(10*time.Minute, pods)
				claims, refused := w.claims(), w.refused()
				if plans := plansOf(seen); plans > refused+1 {
					t.Errorf("%d plans after %d refusals", plans, refused)
				}
				for i := range claims {
					planned, paid := price(t, &claims[i], v1beta1.AnnotationPlannedPrice), price(t, &claims[i], v1beta1.AnnotationPaidPrice)
					if paid > planned*1.05+1e-6 && claims[i].Annotations[v1beta1.AnnotationMostPrice] != "" {
						t.Errorf("NodeClaim %s was planned at $%.4f and costs $%.4f", claims[i].Name, planned, paid)
					}
				}
				if made := w.accepted(); made != len(claims) {
					t.Errorf("%d machines were asked for and exist for %d claims", made, len(claims))
				}
				w.giveBack(pods)
			})
		})
	}
}

// plansOf counts the plans of which there were claims.
func plansOf(seen *watched) int {
	plans := map[string]bool{}
	for _, c := range seen.claims {
		plans[c.Annotations[v1beta1.AnnotationPlan]] = true
	}
	return len(plans)
}

// Spot is sold out: what would have been paid over 5 percent more is planned again, at
// once and not in a pause after a purchase that led to nothing.
func TestSoldOutSpotIsPlannedAgainAtOnce(t *testing.T) {
	inMarket(t, market{againSizes[:2], []string{"spot", "on-demand"}}, waitingPods(3, "1"), func(t *testing.T, w *azureWorld) {
		w.fault(armsim.Fault{Kind: armsim.FaultCapacity, Code: "SkuNotAvailable", Priority: "Spot"})
		seen := w.until(5*time.Minute, 3)
		var ended, last time.Time
		for name := range seen.claims {
			if at := seen.ended[name]; at.After(ended) {
				ended = at
			}
			if at := seen.first[name]; at.After(last) {
				last = at
			}
		}
		claims := w.claims()
		if len(seen.claims) < 2 || len(claims) != 1 {
			t.Fatalf("%d claims in all and %d in the end, want more than one and one", len(seen.claims), len(claims))
		}
		planned, paid := price(t, &claims[0], v1beta1.AnnotationPlannedPrice), price(t, &claims[0], v1beta1.AnnotationPaidPrice)
		if claims[0].Labels[karpv1.CapacityTypeLabelKey] != "on-demand" || planned != paid {
			t.Errorf("%s planned at $%.4f costs $%.4f", claims[0].Labels[karpv1.CapacityTypeLabelKey], planned, paid)
		}
		if took := last.Sub(ended); took > time.Second {
			t.Errorf("the new claim came %s after the end of the one before", took)
		}
		if n := metricstest.Value(t, w.registry, "nap_provision_planned_again_total", "general"); int(n) != len(seen.claims)-1 {
			t.Errorf("the metric has %v claims that were planned again, want %d", n, len(seen.claims)-1)
		}
		if failed := w.recorder.of("PurchaseFailed"); len(failed) > 0 {
			t.Errorf("a price is told as a failure: %s", strings.Join(failed, "\n"))
		}
		if told := strings.Join(w.recorder.of("InsufficientCapacityError"), "\n"); !strings.Contains(told, "planned again: Azure refused") {
			t.Errorf("the end of the claim is told as %q", told)
		}
		w.giveBack(3)
	})
}
