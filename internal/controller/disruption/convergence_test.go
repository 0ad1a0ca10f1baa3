package disruption

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
)

// emptiest is a scheduler that knows of no plan and puts every pod where the
// largest share is free, as that of Kubernetes does by default; where there is no
// room, another loop buys the cheapest machine that has some.
func (w *world) emptiest(pod *corev1.Pod, but string) string {
	cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	used := map[string]int64{}
	for _, p := range w.pods() {
		used[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	best, most := "", -1.0
	for _, n := range w.nodes() {
		whole := n.Status.Allocatable.Cpu().MilliValue()
		if left := whole - used[n.Name] - cpu; n.Name != but && !tainted(&n) && left >= 0 && float64(left)/float64(whole) > most {
			best, most = n.Name, float64(left)/float64(whole)
		}
	}
	if best != "" {
		return best
	}
	w.ids++
	cores := 2
	for int64(cores*1000-100) < cpu {
		cores *= 2
	}
	name := fmt.Sprintf("bought-%d", w.ids)
	for _, o := range machine(name, fmt.Sprintf("D%d", cores)) {
		w.create(o)
	}
	return "node-" + name
}

func (w *world) cost() float64 {
	sum := 0.0
	for _, n := range w.nodes() {
		var cores float64
		_, _ = fmt.Sscanf(n.Labels[corev1.LabelInstanceTypeStable], "D%g", &cores)
		sum += 0.05 * cores
	}
	return sum
}

// Small pods take the room that was meant for large ones, so that moves do not
// save what they were to save. It ends nevertheless, with a cheaper fleet.
func TestConsolidationConvergesWithSpreadingScheduler(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			objects := []client.Object{nodePool()}
			dice := rand.New(rand.NewPCG(seed, 1))
			running70 := func(n int, app, cpu, on string) {
				for _, p := range running(n, app, cpu, on) {
					if dice.IntN(10) < 7 {
						objects = append(objects, p)
					}
				}
			}
			for i := range 14 {
				name := fmt.Sprintf("m%d", i)
				objects = append(objects, machine(name, "D16")...)
				running70(3, "large", "3900m", name)
				running70(5, "small", "300m", name)
			}
			w := newWorld(t, objects...)
			w.place = w.emptiest
			before := w.cost()
			evictions := func() float64 { return metricstest.Value(t, w.registry, "nap_disruption_evictions_total", "") }
			w.run(90)
			at := evictions()
			w.run(30)
			t.Logf("from $%.2f to $%.2f with %g evictions of %d pods, %g moves", before, w.cost(), evictions(),
				len(w.pods()), metricstest.Value(t, w.registry, "nap_disruption_moves_total", "made"))
			if w.cost() > 0.75*before || evictions() > 2*float64(len(w.pods())) {
				t.Error("the fleet should cost a quarter less, and no pod have moved more than twice on average")
			}
			if evictions() > at {
				t.Errorf("pods move for ever: %g evictions after %g", evictions()-at, at)
			}
			w.wantQuiet()
		})
	}
}
