package shadowkeeper

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/shadow"
)

// ruled is a cluster without Karpenter's kinds, which the cluster autoscaler rules.
type ruled struct {
	t     *testing.T
	clock *clocktesting.FakeClock
	kube  client.WithWatch
	// writes are those of the keeper, by verb and kind.
	writes map[string]int
	uids   int
}

func newRuled(t *testing.T) *ruled {
	t.Helper()
	known, err := kube.ClusterScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	r := &ruled{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)), writes: map[string]int{}}
	r.kube = fake.NewClientBuilder().WithScheme(known).WithIndex(&corev1.Pod{}, NodeNameIndex, NodeNameOf).Build()
	return r
}

// reader is what the keeper reads: kinds of Karpenter are not there.
func (r *ruled) reader() client.Reader {
	return interceptor.NewClient(r.kube, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			kind := fmt.Sprintf("%T %s", list, list.GetObjectKind().GroupVersionKind().Kind)
			for _, absent := range []string{"NodePool", "NodeClaim", "NodeOverlay", "AKSNodeClass"} {
				if strings.Contains(kind, absent) {
					return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: absent}}
				}
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// writer notes every write.
func (r *ruled) writer() client.Writer {
	note := func(verb string, o client.Object) { r.writes[fmt.Sprintf("%s %T", verb, o)]++ }
	return interceptor.NewClient(r.kube, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			note("create", o)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			note("update", o)
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			note("patch", o)
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			note("delete", o)
			return c.Delete(ctx, o, opts...)
		},
	})
}

func (r *ruled) keeper() *Keeper {
	return &Keeper{Cluster: r.reader(), Reader: r.kube, Writer: r.writer(), Clock: r.clock, Settings: Settings{
		Every: time.Minute, BatchIdle: time.Second, BatchMax: 10 * time.Second,
	}}
}

func (r *ruled) put(o client.Object) {
	r.t.Helper()
	r.uids++
	o.SetUID(types.UID(fmt.Sprint(r.uids)))
	o.SetCreationTimestamp(metav1.NewTime(r.clock.Now()))
	if err := r.kube.Create(r.t.Context(), o); err != nil {
		r.t.Fatal(err)
	}
}

// node adds a machine of 8 vCPUs of an agent pool.
func (r *ruled) node(name, mode string) {
	room := corev1.ResourceList{"cpu": resource.MustParse("7820m"), "memory": resource.MustParse("28Gi"), "pods": resource.MustParse("110")}
	r.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelInstanceTypeStable: "Standard_D8s_v5", corev1.LabelTopologyRegion: "eastus", corev1.LabelTopologyZone: "eastus-1",
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelHostname: name, "kubernetes.azure.com/mode": mode,
		instancetype.LabelAKSCluster: "MC_shop_eastus",
	}}, Status: corev1.NodeStatus{
		Allocatable: room, Capacity: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
}

// pod adds a pod on a node, or one that waits for the scheduler's "". It asks for a node of the
// cluster, as AKS's own pods do.
func (r *ruled) pod(name, node, cpu string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: corev1.PodSpec{
		NodeName: node, NodeSelector: map[string]string{instancetype.LabelAKSCluster: "MC_shop_eastus"}, Containers: []corev1.Container{{Name: "main", Image: "example/app:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Gi")},
		}}},
	}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if node == "" {
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			LastTransitionTime: metav1.NewTime(r.clock.Now()),
		}}}
	}
	r.put(pod)
	return pod
}

// bind gives a pod a node.
func (r *ruled) bind(pod *corev1.Pod, node string) {
	r.t.Helper()
	pod.Spec.NodeName = node
	if err := r.kube.Update(r.t.Context(), pod); err != nil {
		r.t.Fatal(err)
	}
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(r.clock.Now()),
	}}
	if err := r.kube.Status().Update(r.t.Context(), pod); err != nil {
		r.t.Fatal(err)
	}
}

// watch lets time pass, in which a keeper looks once a second.
func (r *ruled) watch(k *Keeper, long time.Duration) {
	r.t.Helper()
	for range long / lookEvery {
		r.clock.Step(lookEvery)
		if err := k.Look(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *ruled) report() *shadow.Report {
	r.t.Helper()
	record, err := Read(r.t.Context(), r.kube)
	if err != nil || record == nil {
		r.t.Fatalf("no record: %v", err)
	}
	return record.Since(time.Time{})
}

func TestShadowReportsWhatNapWouldHaveSaved(t *testing.T) {
	r := newRuled(t)
	r.node("system", "system")
	for i := range 8 {
		r.node(fmt.Sprint("user-", i), "user")
		r.pod(fmt.Sprint("web-", i), fmt.Sprint("user-", i), "1")
	}
	k := r.keeper()
	r.watch(k, time.Second)
	r.watch(k, time.Hour)
	got := r.report()
	if math.Abs(got.WatchedHours-1) > 0.02 || got.Now.Nodes != 8 || got.Now.Stay != 1 || got.Now.Pods != 8 || got.Now.Pending != 0 {
		t.Fatalf("watched %.3f h: %+v", got.WatchedHours, got.Now)
	}
	// Eight machines of $0.384/h and their disks.
	if paid := got.Paid.Total() / got.WatchedHours; paid < 8*0.384 || paid > 8*0.42 || got.Paid.Disk <= 0 {
		t.Errorf("paid $%.4f/h: %+v", paid, got.Paid)
	}
	if got.SavedPercent < 60 || got.Planned.Total() < got.Bound || got.Bound <= 0 {
		t.Errorf("saved %.0f%%, planned $%.4f, bound $%.4f", got.SavedPercent, got.Planned.Total(), got.Bound)
	}
	notes := strings.Join(got.Notes, "\n")
	for _, want := range []string{"the cluster has no NodePools", "no NodePool in the cluster: planning with the default one", "quota and capacity are taken for granted"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}

func TestShadowWritesNothingButItsReport(t *testing.T) {
	r := newRuled(t)
	r.node("user-0", "user")
	k := r.keeper()
	r.watch(k, time.Minute)
	r.pod("web-0", "", "12")
	r.watch(k, 5*time.Minute)
	r.watch(r.keeper(), time.Minute)
	for write := range r.writes {
		if write != "create *v1alpha1.ShadowReport" && write != "update *v1alpha1.ShadowReport" {
			t.Errorf("it wrote: %s", write)
		}
	}
	if r.writes["create *v1alpha1.ShadowReport"] != 1 || r.writes["update *v1alpha1.ShadowReport"] < 5 {
		t.Errorf("the writes are %v", r.writes)
	}
}

func TestShadowComparesPurchasesForWaitingPods(t *testing.T) {
	r := newRuled(t)
	r.node("user-0", "user")
	r.pod("old", "", "5") // waits before the shadow watches
	k := r.keeper()
	r.watch(k, 2*time.Second)
	var pods []*corev1.Pod
	for i := range 3 {
		pods = append(pods, r.pod(fmt.Sprint("web-", i), "", "6"))
	}
	r.watch(k, 30*time.Second)
	r.node("user-1", "user")
	r.node("user-2", "user")
	r.watch(k, 5*time.Second)
	r.bind(pods[0], "user-0")
	r.bind(pods[1], "user-1")
	r.bind(pods[2], "user-2")
	r.watch(k, 2*time.Minute)
	got := r.report().Purchases
	if len(got) != 1 {
		t.Fatalf("there are %d purchases, want 1: %+v", len(got), got)
	}
	p := got[0]
	if p.Pods != 3 || p.Pod != "shop/web-0" || p.Unplaced != 0 || p.Lost || p.Gone != 0 {
		t.Errorf("the purchase is %+v", p)
	}
	if wait := p.Decided.Sub(p.At); wait < time.Second || wait > 3*time.Second {
		t.Errorf("nap would have bought after %s", wait)
	}
	if p.First == nil || p.First.Sub(p.At) != 30*time.Second || p.Placed == nil || p.Placed.Sub(p.At) != 35*time.Second {
		t.Errorf("a machine came at %v, pods had nodes at %v, waiting since %v", p.First, p.Placed, p.At)
	}
	if len(p.Bought) != 1 || p.Bought[0] != (shadow.Machines{Size: "Standard_D8s_v5", Count: 2}) {
		t.Errorf("bought were %v", p.Bought)
	}
	// One of the pods has room on the node that is there: nap buys for two.
	if n := len(p.Planned); n == 0 || p.PlannedHourly <= 0 || p.PlannedHourly > p.BoughtHourly {
		t.Errorf("nap would have bought %v for $%.4f/h, bought was $%.4f/h", p.Planned, p.PlannedHourly, p.BoughtHourly)
	}
}

// A purchase whose pods were not followed to the end says so, and what was counted stays.
func TestShadowOutlivesItsKeeper(t *testing.T) {
	r := newRuled(t)
	r.node("user-0", "user")
	k := r.keeper()
	r.watch(k, 10*time.Minute)
	r.pod("web-0", "", "12")
	r.watch(k, 2*time.Minute)
	before := r.report()
	r.clock.Step(2 * time.Hour) // no keeper
	r.watch(r.keeper(), 10*time.Minute)
	after := r.report()
	if after.WatchedHours < before.WatchedHours+0.1 || after.WatchedHours > 0.4 || after.UnwatchedHours < 1.9 {
		t.Errorf("watched %.2f h, then %.2f h, and %.2f h not", before.WatchedHours, after.WatchedHours, after.UnwatchedHours)
	}
	if len(after.Purchases) != 1 || !after.Purchases[0].Lost {
		t.Errorf("the purchases are %+v", after.Purchases)
	}
}

// Of two keepers the later one is refused, reads, and counts from there.
func TestTwoShadowsCountOnce(t *testing.T) {
	r := newRuled(t)
	r.node("user-0", "user")
	first, second := r.keeper(), r.keeper()
	failed := 0
	for range 30 * 60 {
		r.clock.Step(lookEvery)
		for _, k := range []*Keeper{first, second} {
			if k.Look(t.Context()) != nil {
				failed++
			}
		}
	}
	got := r.report()
	if math.Abs(got.WatchedHours-0.5) > 0.05 || failed == 0 {
		t.Errorf("in half an hour %.3f h were counted, %d writes refused", got.WatchedHours, failed)
	}
}

func TestReportOfALaterVersionIsNotOverwritten(t *testing.T) {
	r := newRuled(t)
	data, err := (&shadow.Record{Form: shadow.Form + 1}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	report := &v1alpha1.ShadowReport{Data: data}
	report.Name = v1alpha1.ShadowReportName
	r.put(report)
	if err := r.keeper().Look(t.Context()); err == nil || !strings.Contains(err.Error(), "delete it to begin a new one") {
		t.Errorf("the error is %v", err)
	}
}
