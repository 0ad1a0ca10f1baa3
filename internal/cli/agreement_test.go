package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/provisioning"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// situation is a cluster in trouble: pods that wait, NodePools with limits, and what Azure
// refuses.
type situation struct {
	t       *testing.T
	rand    *rand.Rand
	kube    client.WithWatch
	objects []client.Object
	refused *unavailable.Offerings
	quotas  []v1alpha1.QuotaLine
	// notBuying is why the cluster does not let nap buy; mostly empty.
	notBuying string
	// azureOut is what Azure says of the machines that are on their way; empty while it is up.
	azureOut string
	// events are the last message to each pod, by its namespace and name.
	events map[string]string
}

// TestSnapshotEventsAndCommandsAgree: of pods in clusters with random limits, refusals and
// quotas, the event, the snapshot and the commands say the same.
func TestSnapshotEventsAndCommandsAgree(t *testing.T) {
	const situations = 200
	counts := map[string]int{}
	for seed := range uint64(situations) {
		synctest.Test(t, func(t *testing.T) {
			s := newSituation(t, seed)
			s.provision()
			s.compare(seed, counts)
		})
		if t.Failed() {
			t.Fatalf("situation %d", seed)
		}
	}
	t.Logf("%d situations: %v", situations, counts)
	for _, kind := range []string{
		"bought", "outage", "nothing is bought", string(model.ReasonNoPool), string(model.ReasonLimit), string(model.ReasonCostLimit),
		string(model.ReasonUnavailable), string(model.ReasonQuota), string(model.ReasonPodRequirement), string(model.ReasonTaint), string(model.ReasonResources),
	} {
		if counts[kind] < 10 {
			t.Errorf("%d pods of kind %s are too few to compare", counts[kind], kind)
		}
	}
}

func newSituation(t *testing.T, seed uint64) *situation {
	s := &situation{t: t, rand: rand.New(rand.NewPCG(seed, 1)), refused: unavailable.New(time.Now), events: map[string]string{}}
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme.Scheme); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1 + s.rand.IntN(2) {
		s.objects = append(s.objects, s.nodePool(i))
	}
	for i := range 1 + s.rand.IntN(8) {
		s.objects = append(s.objects, s.pod(i))
	}
	class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	s.kube = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(s.objects...).WithObjects(class).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	s.breakAzure()
	if s.rand.IntN(10) == 0 {
		s.notBuying = pick(s, "mode Manual: nap buys nothing and removes nothing voluntarily", "prerequisite 13 network-policy is not met: Calico")
	}
	if s.rand.IntN(3) == 0 {
		s.azureOut = pick(s, "Azure does not answer: Microsoft.Compute has failed since 2000-01-01T00:00:30Z (503 ServiceUnavailable); no machine "+
			"is launched, the next try is at 2000-01-01T00:02:00Z", "InternalServerError: An error occurred. Try again.")
	}
	return s
}

// outage has Azure fail at the launch of all machines, as Karpenter's controller writes it down.
func (s *situation) outage(mirror fedMirror) {
	var claims v1.NodeClaimList
	if err := s.kube.List(s.t.Context(), &claims); err != nil {
		s.t.Fatal(err)
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.CreationTimestamp.IsZero() {
			c.CreationTimestamp = metav1.Now()
		}
		c.StatusConditions().SetUnknownWithReason(v1.ConditionTypeLaunched, v1beta1.ReasonAzureUnavailable, s.azureOut)
		if err := s.kube.Update(s.t.Context(), c); err != nil {
			s.t.Fatal(err)
		}
		mirror.feed.Apply(c)
	}
}

// pick is one of some values.
func pick[T any](s *situation, values ...T) T { return values[s.rand.IntN(len(values))] }

func (s *situation) nodePool(i int) *v1.NodePool {
	np := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pool-", i), UID: types.UID(fmt.Sprint("pool-", i)), Generation: 1}}
	np.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.azure.com", Kind: nodeClassKind, Name: "default"}
	np.Spec.Template.Spec.ExpireAfter = v1.MustParseNillableDuration("720h")
	in := func(key string, values ...string) {
		np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements,
			v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values})
	}
	in(corev1.LabelArchStable, "amd64")
	in(v1.CapacityTypeLabelKey, pick(s, []string{"on-demand"}, []string{"spot"}, []string{"spot", "on-demand"})...)
	in(corev1.LabelInstanceTypeStable, pick(s, []string{"Standard_D4s_v5"}, []string{"Standard_D4s_v5", "Standard_D8as_v5"},
		[]string{"Standard_E4s_v5", "Standard_D2s_v5", "Standard_D16s_v5"})...)
	if s.rand.IntN(3) == 0 {
		np.Spec.Limits = v1.Limits{corev1.ResourceCPU: resource.MustParse(pick(s, "1", "4", "16"))}
	}
	if s.rand.IntN(4) == 0 {
		np.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	}
	np.Annotations = map[string]string{}
	if s.rand.IntN(4) == 0 {
		np.Annotations[v1beta1.AnnotationMaxHourlyCost] = pick(s, "0.05", "0.25", "1")
	}
	if s.rand.IntN(5) == 0 { // holds nothing that is bought
		np.Annotations[v1beta1.AnnotationFrozen] = "release"
	}
	np.Status.Conditions = []status.Condition{{Type: status.ConditionReady, Status: metav1.ConditionTrue}}
	if s.rand.IntN(6) == 0 {
		np.Status.Conditions = []status.Condition{
			{Type: v1.ConditionTypeNodeClassReady, Status: metav1.ConditionFalse, Reason: "NodeClassNotFound", Message: "no such class"},
			{Type: status.ConditionReady, Status: metav1.ConditionFalse, Reason: "UnhealthyDependents", Message: "NodeClassReady=False"},
		}
	}
	return np
}

func (s *situation) pod(i int) *corev1.Pod {
	name := fmt.Sprint("p", i)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(s, "500m", "1", "3", "3", "7", "400"))},
	}}}
	switch s.rand.IntN(8) {
	case 0:
		pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: pick(s, "eastus-1", "eastus-2", "westeurope-1")}
	case 1:
		pod.Spec.NodeSelector = map[string]string{"agentpool": "user"}
	case 2:
		pod.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"}
	}
	if s.rand.IntN(2) == 0 {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
	}
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
	return pod
}

// breakAzure makes Azure refuse sizes and have no quota for families.
func (s *situation) breakAzure() {
	sizes := map[string]string{
		"Standard_D4s_v5": "standardDSv5Family", "Standard_D8as_v5": "standardDASv5Family", "Standard_D2s_v5": "standardDSv5Family",
		"Standard_E4s_v5": "standardESv5Family", "Standard_D16s_v5": "standardDSv5Family",
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		family := sizes[name]
		for _, zone := range []string{"eastus-1", "eastus-2", "eastus-3"} {
			for _, capacityType := range []model.CapacityType{model.OnDemand, model.Spot} {
				if s.rand.IntN(3) == 0 {
					s.refused.MarkUnavailable(unavailable.NewFailure("ZonalAllocationFailed", "", nil), unavailable.Attempt{
						SKU: &instancetype.SKU{Name: name, Family: family, VCPUs: 4}, Zone: zone, CapacityType: capacityType,
					})
				}
			}
		}
		if s.rand.IntN(3) == 0 {
			s.quotas = append(s.quotas, v1alpha1.QuotaLine{Name: family, Limit: 10, Used: int64(s.rand.IntN(11))})
		}
	}
	if s.rand.IntN(3) == 0 {
		s.quotas = append(s.quotas, v1alpha1.QuotaLine{Name: instancetype.QuotaRegional, Limit: 20, Used: int64(s.rand.IntN(17))})
	}
	s.quotas = slices.CompactFunc(s.quotas, func(x, y v1alpha1.QuotaLine) bool { return x.Name == y.Name })
}

// provision runs the controller's loop until it has decided, and publishes.
func (s *situation) provision() {
	memory, err := s.refused.Marshal()
	if err != nil {
		s.t.Fatal(err)
	}
	real := &told{document: &snapshot.Document{Memory: map[string]string{snapshot.MemoryRefusals: string(memory)}}}
	real.document.Status.Quotas = s.quotas
	catalogs, err := catalogFlags{region: "eastus", told: real}.open(map[string]*nodeclass.NodeClass{}, func(string) string { return "default" })
	if err != nil {
		s.t.Fatal(err)
	}
	numbers, err := metrics.NewProvisioning(prometheus.NewRegistry())
	if err != nil {
		s.t.Fatal(err)
	}
	store := fleet.NewStore()
	mirror := fedMirror{store, kube.NewMirror(store, kube.Settings{})}
	for _, o := range s.objects {
		mirror.feed.Apply(o)
	}
	batch := provisioning.NewBatch(provisioning.BatchDurations{Idle: time.Second, Max: 10 * time.Second}, clock.RealClock{})
	decisions := &snapshot.Decisions{}
	n, lock := 0, sync.Mutex{}
	loop := provisioning.NewLoop(provisioning.Config{
		Clients: provisioning.Clients{Cached: s.kube, Live: s.kube}, Mirror: mirror, Catalogs: catalogs, Batch: batch,
		Solve: planner.Solve, Cluster: noCluster{}, Recorder: s, Metrics: numbers, Decided: decisions.Decided,
		NotBuying:     func() string { return s.notBuying },
		Purchases:     purchasebackoff.NewPurchases(clock.RealClock{}),
		Registrations: purchasebackoff.NewRegistrations(clock.RealClock{}),
		Clock:         clock.RealClock{},
		NewID: func(length int) string {
			lock.Lock()
			defer lock.Unlock()
			n++
			return fmt.Sprintf("%0*d", length, n)
		},
	})
	ctx, cancel := context.WithCancel(s.t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := loop.Start(ctx); err != nil {
			s.t.Error(err)
		}
	})
	batch.Trigger("test", provisioning.News{Urgent: true})
	time.Sleep(time.Minute)
	for range 2 { // the second time for machines that were ordered meanwhile
		if s.azureOut == "" {
			break
		}
		s.outage(mirror)
		batch.Trigger("again", provisioning.News{Urgent: true})
		time.Sleep(time.Minute)
	}
	collector := &snapshot.Collector{
		Clock: clock.RealClock{}, Fleet: mirror.Snapshot, Decisions: decisions, Catalogs: catalogs,
		Health: func() (string, string) { return "", "" },
		Market: func() snapshot.Market { return snapshot.Market{Region: "eastus", Quotas: s.quotas} },
	}
	publisher := &snapshot.Publisher{
		Reader: s.kube, Writer: s.kube, Clock: clock.RealClock{}, Collect: collector.Collect,
		Memory: map[string]snapshot.Source{snapshot.MemoryRefusals: s.refused},
	}
	group.Go(func() {
		if err := publisher.Start(ctx); err != nil {
			s.t.Error(err)
		}
	})
	time.Sleep(10 * time.Second)
	cancel()
	group.Wait()
}

// compare asks the commands about every pod.
func (s *situation) compare(seed uint64, counts map[string]int) {
	from, err := tellFrom(s.t.Context(), s.kube)
	if err != nil || from.document == nil {
		s.t.Fatalf("no snapshot: %v", err)
	}
	read := &planInput{store: fleet.NewStore(), pools: map[string]*v1.NodePool{}, classes: map[string]*nodeclass.NodeClass{}, told: from}
	mirror := kube.NewMirror(read.store, kube.Settings{})
	var claims v1.NodeClaimList
	if err := s.kube.List(s.t.Context(), &claims); err != nil {
		s.t.Fatal(err)
	}
	for i := range claims.Items {
		s.objects = append(s.objects, &claims.Items[i])
	}
	for _, o := range s.objects {
		read.note(o)
		mirror.Apply(o)
	}
	c := &planCommand{streams: command.Streams{Out: io.Discard, Err: io.Discard}, now: time.Now, engine: engineNap, rules: planRules{preferences: "Respect"}}
	made, err := c.makeFor(s.t.Context(), read)
	if err != nil {
		s.t.Fatal(err)
	}
	pending := map[string]reportPending{}
	for _, p := range made.report.Unschedulable {
		pending[p.Pod] = p
	}
	if len(made.report.Nodes) > 0 {
		s.t.Errorf("nap plan buys %d nodes beside those of the controller", len(made.report.Nodes))
	}
	for pod, event := range s.events {
		verdict := verdictOn(from.document, pod)
		if verdict == nil {
			s.t.Errorf("%s has the event %q and no verdict", pod, event)
			continue
		}
		namespace, name, _ := strings.Cut(pod, "/")
		story, waits, err := made.explainPod(model.PodRef{Namespace: namespace, Name: name})
		if err != nil {
			s.t.Fatal(err)
		}
		if told, out := strings.CutPrefix(event, "Its machine is not there yet: "); out {
			counts["outage"]++
			s.compareOutage(from, verdict, told, story.Verdict)
			continue
		}
		if claim, bought := strings.CutPrefix(event, "Pod should schedule on: nodeclaim/"); bought {
			if s.azureOut != "" {
				s.t.Errorf("%s: Azure is out, and the last event is %q", pod, event)
			}
			counts["bought"]++
			if verdict.NodeClaim != claim || waits || !strings.Contains(story.Verdict, "NodeClaim "+claim+" of NodePool") {
				s.t.Errorf("%s: event %q, verdict on %q, nap explain %q", pod, event, verdict.NodeClaim, story.Verdict)
			}
			if !slices.ContainsFunc(made.report.Existing, func(e reportExisting) bool { return e.Node == claim && slices.Contains(e.Pods, pod) }) {
				s.t.Errorf("%s: nap plan does not have it on %s", pod, claim)
			}
			continue
		}
		counts[cmp.Or(verdict.Reason, "nothing is bought")]++
		text := strings.TrimPrefix(event, "Failed to schedule pod, ")
		if verdict.NodeClaim != "" || verdict.Event != text || !waits {
			s.t.Errorf("%s: event %q, snapshot %q on %q, nap explain %q", pod, event, verdict.Event, verdict.NodeClaim, story.Verdict)
		}
		if !strings.HasPrefix(text, verdict.Why) || story.Verdict != fmt.Sprintf("%s stays pending: %s.", pod, verdict.Why) || story.Fix != verdict.Fix {
			s.t.Errorf("%s: event %q, nap explain %q, fix %q", pod, event, story.Verdict, story.Fix)
		}
		if got := pending[pod]; got.Reason != verdict.Reason || !strings.HasPrefix(got.Message, verdict.Why) {
			s.t.Errorf("%s: nap plan says %s: %s, the event %q", pod, got.Reason, got.Message, event)
		}
	}
	if pods := len(s.objects) - len(claims.Items); len(s.events) == 0 && pods > 2 {
		s.t.Errorf("situation %d: no events for %d objects", seed, pods)
	}
}

// compareOutage holds what is said of a pod whose machine Azure does not make: the event, the
// snapshot and nap explain have Azure's words, the NodeClaim and when that is given up, and nap
// explain how long it has been ordered. None says that the pod gets a place.
func (s *situation) compareOutage(from *told, verdict *snapshot.Verdict, event, story string) {
	at := slices.IndexFunc(from.document.Status.Machines, func(m v1alpha1.MachineUnderWay) bool { return m.NodeClaim == verdict.NodeClaim })
	if at < 0 {
		s.t.Errorf("event %q, and the snapshot has no machine %q", event, verdict.NodeClaim)
		return
	}
	m := &from.document.Status.Machines[at]
	said, rest, _ := strings.Cut(event, "; given up at ")
	until := m.GivenUp.UTC().Format("15:04:05Z")
	if !strings.HasPrefix(m.Trouble, strings.TrimSuffix(said, "...")) || !strings.HasPrefix(m.Trouble, v1beta1.ReasonAzureUnavailable+": ") ||
		rest != fmt.Sprintf("%s (NodeClaim %s)", until, m.NodeClaim) {
		s.t.Errorf("event %q, snapshot %+v", event, m)
	}
	for _, part := range []string{"waits for a machine that is on its way: NodeClaim " + m.NodeClaim + " of NodePool " + m.NodePool, "ordered ", "m10s ago", "Ordered",
		"given up at " + until, strings.TrimSuffix(m.Trouble, ".")} {
		if !strings.Contains(story, part) {
			s.t.Errorf("nap explain says %q without %q", story, part)
		}
	}
	if strings.Contains(story, "gets a place") {
		s.t.Errorf("nap explain says %q", story)
	}
}

// Publish remembers the last event of each pod.
func (s *situation) Publish(evts ...events.Event) {
	for _, e := range evts {
		if pod, is := e.InvolvedObject.(*corev1.Pod); is {
			s.events[pod.Namespace+"/"+pod.Name] = e.Message
		}
	}
}

type fedMirror struct {
	*fleet.Store
	feed *kube.Mirror
}

func (m fedMirror) Expect(c *v1.NodeClaim) { m.Store.Expect(m.feed.Claim(c)) }

// noCluster is Karpenter's mirror of a cluster that nothing disrupts.
type noCluster struct{}

func (noCluster) AckPods(...*corev1.Pod) {}
func (noCluster) MarkPodSchedulingDecisions(context.Context, map[*corev1.Pod]error, map[string][]*corev1.Pod, map[string][]*corev1.Pod) {
}
func (noCluster) UpdatePodToNodeClaimMapping(map[string][]*corev1.Pod) {}
func (noCluster) UpdateNodeClaim(*v1.NodeClaim)                        {}
func (noCluster) DeleteNodeClaim(string)                               {}
func (noCluster) NominateNodeForPod(context.Context, string)           {}
func (noCluster) Leaving() map[string]bool                             { return nil }

// verdictOn is what the snapshot says was decided on a pod, or nil.
func verdictOn(d *snapshot.Document, pod string) *snapshot.Verdict {
	for i := range d.Verdicts {
		if slices.Contains(d.Verdicts[i].Pods, pod) {
			return &d.Verdicts[i]
		}
	}
	return nil
}
