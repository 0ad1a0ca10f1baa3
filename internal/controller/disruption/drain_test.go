package disruption

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// mixed are two large nodes with large, middling and small pods, which fit on one
// machine that is smaller.
func mixed() []client.Object {
	return all(machine("a", "D16"), machine("b", "D16"),
		running(1, "large", "3", "a"), running(2, "small", "200m", "a"), running(1, "middle", "1", "a"),
		running(1, "large", "3", "b"), running(2, "small", "200m", "b"))
}

func TestDrainEvictsLargePodsFirst(t *testing.T) {
	w := newWorld(t, mixed()...)
	w.run(12)
	if got := w.sizes(); got != "D8" {
		t.Fatalf("left are %s, want D8", got)
	}
	var kinds []string
	for _, name := range w.evicted {
		kinds = append(kinds, strings.Split(name, "-")[0])
	}
	if got, want := strings.Join(kinds, " "), "large large middle small small small small"; got != want {
		t.Errorf("evicted were %s, want %s", got, want)
	}
	w.wantQuiet()
}

func TestDrainHoldsSmallPodsUntilLargePodIsBound(t *testing.T) {
	w := newWorld(t, mixed()...)
	for range 6 {
		if len(w.evictor.pods) == 0 {
			w.pass()
			w.cloud()
		}
	}
	place := w.place
	w.place = func(*corev1.Pod, string) string { return "" }
	w.evict() // the successors wait
	w.place = place
	asked := w.clock.Now()
	for len(w.evictor.pods) == 0 && w.clock.Since(asked) < time.Minute {
		w.passFor(look)
	}
	if waited := w.clock.Since(asked); waited < stageWithin-3*time.Second || waited > stageWithin+time.Second {
		t.Errorf("the next pods were evicted %s after large ones that find no node, want about %s", waited, stageWithin)
	}
}

// A pod whose budget allows no eviction goes by force when the terminationGracePeriod of its node is
// over, which begins when the NodeClaim is deleted: no stage waits for it.
func TestDrainWaitsForNoPodThatItsBudgetHolds(t *testing.T) {
	for allowed, want := range map[int32]string{0: "middle-m-0", 1: "web-m-0 middle-m-0"} {
		m := machine("m", "D16")
		claim := m[0].(*karpv1.NodeClaim) // the clock of the test is an hour ahead
		claim.Spec.ExpireAfter, claim.CreationTimestamp = karpv1.MustParseNillableDuration("1h"), metav1.NewTime(time.Now().Add(-time.Minute))
		claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 90 * time.Second}
		w := newWorld(t, append(all(m, running(1, "web", "3", "m"), running(1, "middle", "1", "m"), running(2, "small", "200m", "m")),
			guard(1, allowed))...)
		deleting := func() bool {
			w.must(w.kube.Get(w.ctx, client.ObjectKeyFromObject(claim), claim))
			return !claim.DeletionTimestamp.IsZero()
		}
		for began := w.clock.Now(); len(w.evictor.pods) == 0 && w.clock.Since(began) < time.Minute; {
			w.passFor(look)
			w.cloud()
		}
		asked := w.clock.Now()
		for !deleting() && w.clock.Since(asked) < time.Minute {
			w.evictor.pods = slices.DeleteFunc(w.evictor.pods, func(p *corev1.Pod) bool { return allowed == 0 && p.Labels["app"] == "web" })
			w.evict()
			w.passFor(look)
		}
		if took := w.clock.Since(asked); took >= stageWithin {
			t.Errorf("%d evictions allowed: the NodeClaim is deleted %s after the first eviction, want less than %s", allowed, took, stageWithin)
		}
		if got := strings.Join(w.evicted, " "); got != want {
			t.Errorf("%d evictions allowed: evicted were %q, want %q", allowed, got, want)
		}
	}
}

func TestDrainKeepsPodsWithoutRoomLeft(t *testing.T) {
	w := newWorld(t, mixed()...)
	for range 6 {
		if len(w.evictor.pods) == 0 {
			w.pass()
			w.cloud()
		}
	}
	w.evict()
	for _, o := range running(1, "stranger", "1", "general-00002") {
		w.create(o)
	}
	for range 8 {
		if len(w.loop.commands.active) > 0 {
			w.run(1)
		}
	}
	if got, want := strings.Join(w.evicted, " "), "large-a-0 large-b-0 small-b-0 small-b-1"; got != want {
		t.Errorf("evicted were %s, want %s: the others on machine a have no room any more", got, want)
	}
	if got := w.sizes(); got != "D16 D8" {
		t.Errorf("nodes are %s, want machine a and the replacement", got)
	}
	w.wantQuiet()
}

func TestDrainStagesByLargestResourceShare(t *testing.T) {
	pod := func(name string, cpu, memory, gpus int64) *fleet.Pod {
		a := fleet.Amounts{CPU: cpu, Memory: memory, Pods: 1}
		a.Set("nvidia.com/gpu", gpus)
		return &fleet.Pod{Ref: model.PodRef{Namespace: "n", Name: name}, UID: name, Spec: &fleet.PodSpec{Requests: a}}
	}
	room := map[string]int64{"cpu": 16000, "memory": 256 << 30, "nvidia.com/gpu": 4, "pods": 1000}
	var got []string
	for _, stage := range stages([]*fleet.Pod{
		pod("tiny", 1, 1, 0), pod("most-cpu", 4000, 1<<30, 0), pod("most-memory", 100, 64<<30, 0), pod("gpu", 1, 1, 1),
		pod("half", 2000, 1<<30, 0), pod("third", 1300, 1<<30, 0), pod("tenth", 400, 1<<30, 0), pod("nothing", 0, 0, 0),
	}, room) {
		var names []string
		for _, p := range stage {
			names = append(names, p.PodRef.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	want := []string{"gpu most-cpu most-memory", "half third", "nothing tenth tiny"}
	if !slices.Equal(got, want) {
		t.Errorf("stages are %q, want %q", got, want)
	}
	if one := stages([]*fleet.Pod{pod("a", 100, 1<<30, 0), pod("b", 90, 1<<30, 0)}, room); len(one) != 1 {
		t.Errorf("pods of about one size go in %d stages, want 1", len(one))
	}
}
