package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/karpenter"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// world is an API server, a loop with the real planner, and a cloud and a
// termination controller that do their work when the test says so.
type world struct {
	// registry has the metrics of the present process.
	registry *prometheus.Registry
	t        *testing.T
	ctx      context.Context
	kube     client.Client
	clock    *clocktesting.FakeClock
	store    *fleet.Store
	feed     *kube.Mirror
	loop     *Loop
	cluster  *toldCluster
	// real is Karpenter's own mirror of the cluster; nil where cluster stands in for it.
	// terminateFirst are the reasons of Settings, from the next restart on.
	terminateFirst []model.DisruptionReason
	real           *karpenter.Cluster
	recorder       *toldEvents
	evictor        *toldEvictor
	ids            int
	// known are the objects that the mirror has seen.
	known map[string]client.Object
	// soldOut machines are refused: their claims are deleted again.
	soldOut bool
	// paused are the NodePools that must not buy, with the reason.
	paused map[string]string
	// place is the scheduler; roomFor unless a test has another.
	place func(pod *corev1.Pod, but string) string
	// evicted are the pods that had to move, in order.
	evicted []string
	// writing lets one write through after the other, though the loop asks for many
	// at once.
	writing sync.Mutex
	// writes counts what the loop writes; from dieAt on, its process is dead.
	writes, dieAt int
	// lateDeath lets the last write through and loses its answer.
	lateDeath bool
	working   bool
	// creating is called before the loop creates something; nil where nothing is.
	creating func()
	// stumbles says how the API server answers a write, by its number, and whether
	// it does what is asked; nil where it always does.
	stumbles func(write int) (answer error, does bool)
}

var errDead = errors.New("the process is dead")

const never = 1 << 30

func newWorld(t *testing.T, objects ...client.Object) *world {
	w := &world{
		t: t, ctx: log.IntoContext(t.Context(), testr.New(t)),
		// The fake API server stamps conditions with the real time.
		clock: clocktesting.NewFakeClock(time.Now().Add(time.Hour)), recorder: &toldEvents{}, dieAt: never,
	}
	w.kube = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithStatusSubresource(&karpv1.NodeClaim{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if w.creating != nil && w.working {
					w.creating()
				}
				if claim, ok := o.(*karpv1.NodeClaim); ok && claim.CreationTimestamp.IsZero() { // as an API server does
					claim.CreationTimestamp = metav1.NewTime(w.clock.Now())
				}
				return w.write(func() error { return c.Create(ctx, o, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				return w.write(func() error { return c.Patch(ctx, o, patch, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				return w.write(func() error { return c.Delete(ctx, o, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
				o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				return w.write(func() error { return c.SubResource(sub).Patch(ctx, o, patch, opts...) })
			},
		}).Build()
	w.place = w.roomFor
	w.restart()
	return w
}

// write lets a write through while the process that asks for it lives.
func (w *world) write(do func() error) error {
	if !w.working {
		return do()
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	w.writes++
	if w.writes > w.dieAt || w.writes == w.dieAt && !w.lateDeath {
		return errDead
	}
	if w.stumbles != nil {
		if answer, does := w.stumbles(w.writes); answer != nil {
			if does {
				_ = do() // its answer is what gets lost
			}
			return answer
		}
	}
	err := do()
	if w.writes == w.dieAt {
		return errDead
	}
	return err
}

// restart replaces everything that lives in the process, as a crash does.
func (w *world) restart() {
	w.t.Helper()
	w.dieAt = never
	w.store = fleet.NewStore()
	w.feed = kube.NewMirror(w.store, kube.Settings{})
	w.known = map[string]client.Object{}
	w.cluster, w.evictor = &toldCluster{}, &toldEvictor{world: w}
	w.registry = prometheus.NewRegistry()
	numbers, err := metrics.NewDisruption(w.registry)
	if err != nil {
		w.t.Fatal(err)
	}
	w.loop = NewLoop(Config{
		Clients: Clients{Cached: cached{w.kube, w}, Live: w.kube}, Mirror: mirror{w.store, w.feed}, Catalogs: testCatalogs{}, Plan: consolidate.Plan,
		Paused:  func(map[string]*karpv1.NodePool) map[string]string { return w.paused },
		Cluster: w.mirrored(), Evictor: w.evictor, Recorder: w.recorder, Metrics: numbers, Clock: w.clock, NewID: w.newID,
		Settings: Settings{Terms: model.DefaultConsolidationTerms(), TerminateFirst: w.terminateFirst, Repairs: true},
	})
	w.sync()
	if w.loop.Restore(w.ctx); !w.loop.restored {
		w.t.Fatal("the commands under way were not read")
	}
}

// mirrored is what the loop tells of static pools.
func (w *world) mirrored() Cluster {
	if w.real != nil {
		return *w.real
	}
	return w.cluster
}

func (w *world) newID(n int) string {
	w.ids++
	return fmt.Sprintf("%0*d", n, w.ids)
}

// cached reads single objects as a cache does which is behind: as they were at the last sync.
type cached struct {
	client.Client
	world *world
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	switch into := o.(type) {
	case *karpv1.NodeClaim:
		if known, has := c.world.known[keyOf(o, key)].(*karpv1.NodeClaim); has {
			known.DeepCopyInto(into)
			return nil
		}
	case *corev1.Node:
		if known, has := c.world.known[keyOf(o, key)].(*corev1.Node); has {
			known.DeepCopyInto(into)
			return nil
		}
	default:
		return c.Client.Get(ctx, key, o, opts...)
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func keyOf(o client.Object, key client.ObjectKey) string {
	return fmt.Sprintf("%T %s/%s", o, key.Namespace, key.Name)
}

// sync lets the mirror and the caches see the API server as it is now.
func (w *world) sync() {
	seen := map[string]client.Object{}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.NodeList{},
		&karpv1.NodePoolList{}, &karpv1.NodeClaimList{}, &policyv1.PodDisruptionBudgetList{}} {
		if err := w.kube.List(w.ctx, list); err != nil {
			w.t.Fatal(err)
		}
		for _, o := range objectsOf(list) {
			key := keyOf(o, client.ObjectKeyFromObject(o))
			seen[key] = o
			if old := w.known[key]; old == nil || old.GetUID() != o.GetUID() || old.GetResourceVersion() != o.GetResourceVersion() {
				w.feed.Apply(o)
				if claim, is := o.(*karpv1.NodeClaim); is && w.real != nil {
					w.real.UpdateNodeClaim(claim)
				}
			}
		}
	}
	for key, o := range w.known {
		if seen[key] == nil {
			w.feed.Delete(o)
			if _, is := o.(*karpv1.NodeClaim); is && w.real != nil {
				w.real.DeleteNodeClaim(o.GetName())
			}
		}
	}
	w.known = seen
}

func objectsOf(list client.ObjectList) []client.Object {
	var out []client.Object
	switch l := list.(type) {
	case *corev1.PodList:
		out = pointers(l.Items)
	case *corev1.NodeList:
		out = pointers(l.Items)
	case *karpv1.NodePoolList:
		out = pointers(l.Items)
	case *karpv1.NodeClaimList:
		out = pointers(l.Items)
	case *policyv1.PodDisruptionBudgetList:
		out = pointers(l.Items)
	}
	return out
}

func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	var out []client.Object
	for i := range items {
		out = append(out, P(&items[i]))
	}
	return out
}

// pass is one pass of the loop, with the mirror up to date before and after, and
// two seconds gone.
func (w *world) pass() { w.passFor(2 * time.Second) }

func (w *world) passFor(gone time.Duration) {
	w.sync()
	w.working = true
	w.loop.pass(w.ctx)
	w.working = false
	w.sync()
	w.clock.Step(gone)
}

// run lets all controllers work for a while.
func (w *world) run(passes int) {
	w.t.Helper()
	for range passes {
		w.pass()
		w.cloud()
		w.evict()
		w.terminate()
	}
}

// cloud makes claims nodes, or gives them up when it is sold out.
func (w *world) cloud() { w.cloudAtMost(never) }

// cloudAtMost does it for so many claims.
func (w *world) cloudAtMost(machines int) {
	for _, c := range w.claims() {
		if c.Status.NodeName != "" || !c.DeletionTimestamp.IsZero() {
			continue
		}
		if machines--; machines < 0 {
			return
		}
		if w.soldOut {
			w.delete(&c)
			w.dropFinalizers(c.Name)
			continue
		}
		var size string
		for _, r := range c.Spec.Requirements {
			if r.Key == corev1.LabelInstanceTypeStable {
				size = r.Values[0]
			}
		}
		w.join(&c, size)
	}
}

// evict does what was asked of the eviction queue: a pod of the same kind comes
// in its place.
func (w *world) evict() {
	for _, asked := range w.evictor.pods {
		p := &corev1.Pod{}
		if w.kube.Get(w.ctx, client.ObjectKeyFromObject(asked), p) == nil && p.UID == asked.UID {
			w.move(p)
		}
	}
	w.evictor.pods = nil
}

// move ends a pod and lets its successor come where there is a place.
func (w *world) move(p *corev1.Pod) {
	w.evicted = append(w.evicted, p.Name)
	w.delete(p)
	p.ResourceVersion, p.UID, p.Spec.NodeName = "", types.UID(w.newID(8)), w.place(p, p.Spec.NodeName)
	p.CreationTimestamp = metav1.NewTime(w.clock.Now())
	w.create(p)
}

// terminate drains the nodes of claims that are being deleted: their pods come
// back on other nodes, the machines are gone.
func (w *world) terminate() {
	w.moveAll()
	for _, c := range w.claims() {
		if c.DeletionTimestamp.IsZero() {
			continue
		}
		if node := c.Status.NodeName; node != "" {
			w.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
		}
		w.dropFinalizers(c.Name)
	}
}

// moveAll lets the pods leave the nodes of claims that are being deleted, whose machines stay.
func (w *world) moveAll() {
	for _, c := range w.claims() {
		if c.DeletionTimestamp.IsZero() {
			continue
		}
		for _, p := range w.pods() {
			if p.Spec.NodeName == c.Status.NodeName {
				w.move(&p)
			}
		}
	}
}

// roomFor is the scheduler: the first node with room that takes pods.
func (w *world) roomFor(pod *corev1.Pod, but string) string {
	used := map[string]int64{}
	for _, p := range w.pods() {
		used[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	for _, n := range w.nodes() {
		if n.Name != but && !tainted(&n) &&
			used[n.Name]+pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() <= n.Status.Allocatable.Cpu().MilliValue() {
			return n.Name
		}
	}
	w.t.Fatalf("pod %s found no room", pod.Name)
	return ""
}

func (w *world) dropFinalizers(claim string) {
	now := &karpv1.NodeClaim{}
	if w.kube.Get(w.ctx, types.NamespacedName{Name: claim}, now) == nil {
		now.Finalizers = nil
		w.must(w.kube.Update(w.ctx, now))
	}
}

// join makes a claim a ready node of a size.
func (w *world) join(c *karpv1.NodeClaim, size string) {
	node := nodeOf(c.Name, size)
	w.create(node)
	now := &karpv1.NodeClaim{}
	w.must(w.kube.Get(w.ctx, client.ObjectKeyFromObject(c), now))
	now.Finalizers = []string{karpv1.TerminationFinalizer}
	w.must(w.kube.Update(w.ctx, now))
	now.Status.NodeName, now.Status.ProviderID = node.Name, node.Spec.ProviderID
	now.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
	w.must(w.kube.Status().Update(w.ctx, now))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(o client.Object) { w.t.Helper(); w.must(w.kube.Create(w.ctx, o)) }
func (w *world) delete(o client.Object) {
	w.t.Helper()
	w.must(client.IgnoreNotFound(w.kube.Delete(w.ctx, o)))
}

func (w *world) claims() []karpv1.NodeClaim {
	var list karpv1.NodeClaimList
	w.must(w.kube.List(w.ctx, &list))
	return list.Items
}

func (w *world) nodes() []corev1.Node {
	var list corev1.NodeList
	w.must(w.kube.List(w.ctx, &list))
	return list.Items
}

func (w *world) pods() []corev1.Pod {
	var list corev1.PodList
	w.must(w.kube.List(w.ctx, &list))
	return list.Items
}

func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&karpv1.DisruptedNoScheduleTaint) })
}

// sizes are the sizes of the nodes that there are, sorted.
func (w *world) sizes() string {
	var out []string
	for _, n := range w.nodes() {
		out = append(out, n.Labels[corev1.LabelInstanceTypeStable])
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// wantQuiet fails unless no trace of any move is left.
func (w *world) wantQuiet() {
	w.t.Helper()
	for _, n := range w.nodes() {
		if tainted(&n) {
			w.t.Errorf("node %s is tainted for nothing", n.Name)
		}
	}
	for _, c := range w.claims() {
		if c.Annotations[v1beta1.AnnotationCommand] != "" || c.StatusConditions().IsTrue(karpv1.ConditionTypeDisruptionReason) {
			w.t.Errorf("NodeClaim %s still belongs to a move: %v", c.Name, c.Annotations)
		}
		if c.Status.NodeName == "" {
			w.t.Errorf("NodeClaim %s has no node", c.Name)
		}
	}
	for _, p := range w.pods() {
		if p.Spec.NodeName == "" {
			w.t.Errorf("pod %s waits", p.Name)
		}
	}
	if len(w.loop.commands.active) > 0 {
		w.t.Errorf("%d moves are under way", len(w.loop.commands.active))
	}
}

// mirror adds what the controller adds to the store.
type mirror struct {
	*fleet.Store
	feed *kube.Mirror
}

func (m mirror) Expect(c *karpv1.NodeClaim) { m.Store.Expect(m.feed.Claim(c)) }

// toldCluster remembers what Karpenter's mirror is told.
type toldCluster struct{ pending, replaced map[string]bool }

func (c *toldCluster) UpdateNodeClaim(*karpv1.NodeClaim) {}
func (c *toldCluster) DeleteNodeClaim(string)            {}
func (c *toldCluster) Replaced(claim string) {
	if c.replaced == nil {
		c.replaced = map[string]bool{}
	}
	c.replaced[claim] = true
}
func (c *toldCluster) KnowsDisruption(string) bool { return true }
func (c *toldCluster) PendingDisruption(pool, claim string, pending bool) {
	if c.pending == nil {
		c.pending = map[string]bool{}
	}
	c.pending[pool+"/"+claim] = pending
}

// toldEvictor is the eviction queue, whose pods go when the test says so.
type toldEvictor struct {
	world *world
	pods  []*corev1.Pod
}

func (e *toldEvictor) Add(pods ...*corev1.Pod) {
	for _, p := range pods {
		_ = e.world.write(func() error {
			e.pods = append(e.pods, p)
			return nil
		})
	}
}

// toldEvents remembers events as "Reason name: message".
type toldEvents struct {
	mu    sync.Mutex
	lines []string
}

func (r *toldEvents) Publish(evts ...events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range evts {
		r.lines = append(r.lines, fmt.Sprintf("%s %s: %s", e.Reason, e.InvolvedObject.(client.Object).GetName(), e.Message))
	}
}

func (r *toldEvents) has(part string) bool {
	return slices.ContainsFunc(r.lines, func(l string) bool { return strings.Contains(l, part) })
}
