package limitreached

import (
	"slices"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

type recorder struct{ said []string }

func (r *recorder) Publish(evs ...events.Event) {
	for _, e := range evs {
		r.said = append(r.said, e.Type+" "+e.Reason+": "+e.Message)
	}
}

// world is a loop on one NodePool.
type world struct {
	*testing.T
	loop    *Loop
	kube    client.Client
	told    recorder
	reached map[string]string
	known   bool
}

func newWorld(t *testing.T) *world {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	w := &world{T: t, known: true}
	w.kube = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pool).WithStatusSubresource(pool).Build()
	w.loop = &Loop{
		Kube: w.kube, Recorder: &w.told, Clock: clocktesting.NewFakeClock(time.Unix(0, 0)),
		Reached: func() (map[string]string, bool) { return w.reached, w.known },
	}
	return w
}

func (w *world) pool() *karpv1.NodePool {
	pool := &karpv1.NodePool{}
	if err := w.kube.Get(w.Context(), client.ObjectKey{Name: "general"}, pool); err != nil {
		w.Fatal(err)
	}
	return pool
}

// look lets the loop look twice, and wants so much of condition and events by then.
func (w *world) look(want metav1.ConditionStatus, reason, message string, said int) {
	w.Helper()
	for range 2 {
		if err := w.loop.look(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
	pool := w.pool()
	i := slices.IndexFunc(pool.Status.Conditions, func(c status.Condition) bool { return c.Type == Condition })
	if i < 0 && want != "" || i >= 0 && (pool.Status.Conditions[i].Status != want ||
		pool.Status.Conditions[i].Message != message || pool.Status.Conditions[i].Reason != reason) {
		w.Errorf("conditions %v, want %s %s with %q", pool.Status.Conditions, want, reason, message)
	}
	if len(w.told.said) != said {
		w.Errorf("events %q, want %d", w.told.said, said)
	}
}

// The condition and the events say when a limit is reached, and when it leaves room again,
// and nothing is written in between.
func TestConditionSaysWhichLimitIsReached(t *testing.T) {
	w := newWorld(t)
	w.look("", "", "", 0)
	w.reached = map[string]string{"general": "The limit of $1.000/h leaves $0.100/h"}
	w.look(metav1.ConditionTrue, ReasonReached, "The limit of $1.000/h leaves $0.100/h", 1)
	w.known = false // a new controller has not planned yet
	w.look(metav1.ConditionTrue, ReasonReached, "The limit of $1.000/h leaves $0.100/h", 1)
	w.known, w.reached = true, nil
	w.look(metav1.ConditionFalse, ReasonRoom, "No limit keeps a machine from being bought that pods wait for", 2)
	if want := "Warning LimitReached: The limit of $1.000/h leaves $0.100/h"; w.told.said[0] != want {
		t.Errorf("got %q, want %q", w.told.said[0], want)
	}
}

// A limit that cannot be read is told at once, also while no pod waits.
func TestConditionSaysThatLimitCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.known = false
	pool := w.pool()
	pool.Annotations = map[string]string{v1beta1.AnnotationMaxHourlyCost: "$12"}
	if err := w.kube.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	const text = `Nothing is bought: metadata.annotations[karpenter.azure.com/max-hourly-cost]: got "$12", ` +
		`allowed: dollars per hour from 0 to 1000000, such as "12.50"`
	w.look(metav1.ConditionTrue, ReasonInvalid, text, 1)
	w.known = true
	pool = w.pool()
	pool.Annotations[v1beta1.AnnotationMaxHourlyCost] = "12"
	if err := w.kube.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	w.look(metav1.ConditionFalse, ReasonRoom, "No limit keeps a machine from being bought that pods wait for", 2)
}

// TestStateFollowsNodePoolsAndLimits: the loop looks at all NodePools when it is another one.
func TestStateFollowsNodePoolsAndLimits(t *testing.T) {
	w := newWorld(t)
	var changes uint64
	w.loop.Changes = func() uint64 { return changes }
	last := w.loop.state()
	for _, step := range []struct {
		what string
		do   func()
		same bool
	}{
		{"nothing happens", func() {}, true},
		{"a limit is reached", func() { w.reached = map[string]string{"general": "cpu"} }, false},
		{"the same is said again", func() { w.reached = map[string]string{"general": "cpu"} }, true},
		{"another one is reached", func() { w.reached = map[string]string{"general": "memory"} }, false},
		{"it is not known", func() { w.known = false }, false},
		{"a NodePool changes", func() { changes++ }, false},
		{"nothing happens again", func() {}, true},
	} {
		step.do()
		now := w.loop.state()
		if (now == last) != step.same {
			t.Errorf("%s: state %d after %d, want the same: %t", step.what, now, last, step.same)
		}
		last = now
	}
}

// A static NodePool that wants more nodes than its limit allows stays at the limit, though no
// pod waits.
func TestConditionSaysThatReplicasExceedLimit(t *testing.T) {
	w := newWorld(t)
	set := func(replicas int64) {
		pool := w.pool()
		pool.Spec.Replicas, pool.Spec.Limits = &replicas, karpv1.Limits{"nodes": resource.MustParse("3")}
		if err := w.kube.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	set(3)
	w.look("", "", "", 0)
	set(4)
	w.look(metav1.ConditionTrue, ReasonReached,
		"The limit of 3 nodes (spec.limits.nodes) keeps the NodePool from the 4 that spec.replicas asks for", 1)
	set(3)
	w.look(metav1.ConditionFalse, ReasonRoom, "No limit keeps a machine from being bought that pods wait for", 2)
}
