package cloudprovider

import (
	"context"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/node/legacyrepair"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// repairFixture is a cluster of three half empty nodes, with Karpenter's controller that
// repairs nodes.
type repairFixture struct {
	t      *testing.T
	clock  *clocktesting.FakeClock
	kube   client.Client
	health *legacyrepair.Controller
}

// sells says what makes a node unhealthy.
type sells struct {
	karpcloud.CloudProvider
	port *Port
}

func (s sells) RepairPolicies() []karpcloud.RepairPolicy { return s.port.RepairPolicies() }

func newRepairFixture(t *testing.T) *repairFixture {
	t.Helper()
	c := &repairFixture{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "pool"}}
	pool.Spec.Disruption = karpv1.Disruption{
		ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: karpv1.MustParseNillableDuration("0s"),
		Budgets: []karpv1.Budget{{Nodes: "100%"}},
	}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"}
	pool.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
	objects := []client.Object{pool}
	for _, name := range []string{"silent", "well", "fine"} {
		objects = append(objects, c.machine(name)...)
	}
	c.kube = fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).WithStatusSubresource(&corev1.Node{}).
		WithIndex(&karpv1.NodeClaim{}, "status.providerID", func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Status.ProviderID}
		}).Build()
	c.health = legacyrepair.NewController(c.kube, sells{port: &Port{}}, c.clock, events.NewRecorder(&record.FakeRecorder{}))
	return c
}

// machine is a claim, its node of 4 vCPUs and a pod of one on it.
func (c *repairFixture) machine(name string) []client.Object {
	long := metav1.NewTime(c.clock.Now().Add(-24 * time.Hour))
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
	labels := map[string]string{
		karpv1.NodePoolLabelKey: "general", karpv1.CapacityTypeLabelKey: "on-demand",
		corev1.LabelInstanceTypeStable: "D4", corev1.LabelTopologyZone: "eastus-1",
		karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true", corev1.LabelHostname: name,
	}
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, UID: types.UID("claim-" + name),
			Labels: labels, Finalizers: []string{karpv1.TerminationFinalizer}, CreationTimestamp: long},
		Spec:   karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"}},
		Status: karpv1.NodeClaimStatus{NodeName: name, ProviderID: "azure:///" + name, Capacity: room, Allocatable: room},
	}
	for _, condition := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered,
		karpv1.ConditionTypeInitialized, karpv1.ConditionTypeConsolidatable} {
		claim.Status.Conditions = append(claim.Status.Conditions,
			status.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: condition, LastTransitionTime: long})
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: long},
		Spec:       corev1.NodeSpec{ProviderID: "azure:///" + name},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: long},
		}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-" + name,
			UID: types.UID("web-" + name), Labels: map[string]string{"app": "web"}, CreationTimestamp: long,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(bool)}}},
		Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &long, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	return []client.Object{claim, node, pod}
}

// falls gives a node a condition, and looks at the node as the controller does.
func (c *repairFixture) falls(name string, condition corev1.NodeConditionType, to corev1.ConditionStatus) {
	c.t.Helper()
	node := c.node(name)
	is := corev1.NodeCondition{Type: condition, Status: to, LastTransitionTime: metav1.NewTime(c.clock.Now())}
	if node.Status.Conditions[0].Type == condition {
		node.Status.Conditions[0] = is
	} else {
		node.Status.Conditions = append(node.Status.Conditions, is)
	}
	if err := c.kube.Status().Update(c.t.Context(), node); err != nil {
		c.t.Fatal(err)
	}
}

func (c *repairFixture) node(name string) *corev1.Node {
	c.t.Helper()
	node := &corev1.Node{}
	if err := c.kube.Get(c.t.Context(), types.NamespacedName{Name: name}, node); err != nil {
		c.t.Fatal(err)
	}
	return node
}

// visit lets the controller look at a node, and returns when it looks again and
// whether the machine is being given up.
func (c *repairFixture) visit(name string) (again time.Duration, givenUp bool) {
	c.t.Helper()
	res, err := c.health.Reconcile(c.t.Context(), c.node(name))
	if err != nil {
		c.t.Fatal(err)
	}
	claim := &karpv1.NodeClaim{}
	if err := c.kube.Get(c.t.Context(), types.NamespacedName{Name: "claim-" + name}, claim); err != nil {
		c.t.Fatal(err)
	}
	return res.RequeueAfter, !claim.DeletionTimestamp.IsZero()
}

type oneSize struct{}

func (oneSize) Catalog(context.Context, string) (*fleet.Catalog, error) {
	return &fleet.Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{
		Name: "D4", Labels: map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"},
		Capacity:  model.Resources{4000, 16 << 30, 0, 110},
		Offerings: []model.Offering{{Zone: "eastus-1", CapacityType: model.OnDemand, Price: model.USD(0.2), Available: true}},
	}}}, nil
}

// decide asks what to give back with the cluster as it is.
func (c *repairFixture) decide() (*fleet.DisruptionInput, *model.Commands) {
	c.t.Helper()
	store := fleet.NewStore()
	mirror := kube.NewMirror(store, kube.Settings{})
	for _, list := range []client.ObjectList{&karpv1.NodePoolList{}, &karpv1.NodeClaimList{}, &corev1.NodeList{}, &corev1.PodList{}} {
		if err := c.kube.List(c.t.Context(), list); err != nil {
			c.t.Fatal(err)
		}
		switch l := list.(type) {
		case *karpv1.NodePoolList:
			apply(mirror, l.Items)
		case *karpv1.NodeClaimList:
			apply(mirror, l.Items)
		case *corev1.NodeList:
			apply(mirror, l.Items)
		case *corev1.PodList:
			apply(mirror, l.Items)
		}
	}
	in, err := store.Snapshot().Disruption(c.t.Context(), oneSize{},
		fleet.DisruptionOptions{Options: fleet.Options{Now: c.clock.Now()}, Terms: model.DefaultConsolidationTerms()})
	if err != nil {
		c.t.Fatal(err)
	}
	return in, consolidate.Plan(in.Disruption)
}

func apply[T any, P interface {
	*T
	client.Object
}](mirror *kube.Mirror, items []T) {
	for i := range items {
		mirror.Apply(P(&items[i]))
	}
}

// touches fails when a move gives a node back or counts on it for pods.
func (c *repairFixture) touches(in *fleet.DisruptionInput, moves *model.Commands, name string) {
	c.t.Helper()
	for i := range moves.Commands {
		for _, n := range moves.Commands[i].Nodes {
			if in.Problem.Nodes[n].Name == name {
				c.t.Errorf("a move gives %s back (%s)", name, moves.Commands[i].Reason)
			}
		}
		for _, p := range moves.Commands[i].Placements {
			if in.Problem.Nodes[p.Node].Name == name {
				c.t.Errorf("a move sends pods to %s", name)
			}
		}
	}
}

func TestRepairOfUnknownNodeExcludesItFromConsolidation(t *testing.T) {
	c := newRepairFixture(t)
	c.falls("silent", corev1.NodeReady, corev1.ConditionUnknown)
	c.clock.Step(4 * time.Minute)
	if again, givenUp := c.visit("silent"); givenUp || again != 6*time.Minute {
		t.Errorf("after 4 of 10 minutes: given up %v, looked at again in %s", givenUp, again)
	}
	in, moves := c.decide()
	c.touches(in, moves, "silent")
	if len(moves.Commands) != 1 || moves.Commands[0].Evictions != 1 {
		t.Errorf("the two others, half empty, should become one: %+v", moves.Commands)
	}
	c.clock.Step(6 * time.Minute)
	if _, givenUp := c.visit("silent"); !givenUp {
		t.Fatal("after 10 minutes the machine is still kept")
	}
	in, moves = c.decide()
	c.touches(in, moves, "silent")
	if in.Problem.PodCount() != 1 {
		t.Errorf("%d pods need a place, want the one of the machine that is given up", in.Problem.PodCount())
	}
}

func TestRepairOfNodeWithReportedConditionIsImmediate(t *testing.T) {
	for _, condition := range []corev1.NodeCondition{
		{Type: "kubernetes.azure.com/NodeHealthy", Status: corev1.ConditionFalse}, {Type: "PreemptionScheduled", Status: corev1.ConditionTrue},
	} {
		c := newRepairFixture(t)
		if again, givenUp := c.visit("silent"); givenUp || again != 0 {
			t.Errorf("healthy, and yet given up %v or looked at again in %s", givenUp, again)
		}
		c.falls("silent", condition.Type, condition.Status)
		if _, givenUp := c.visit("silent"); !givenUp {
			t.Errorf("%s is %s, and the machine is kept", condition.Type, condition.Status)
		}
		in, moves := c.decide()
		c.touches(in, moves, "silent")
	}
}

// When more than a fifth of a pool are sick, something else is wrong.
func TestRepairStopsWhileManyNodesOfPoolAreUnhealthy(t *testing.T) {
	c := newRepairFixture(t)
	for _, name := range []string{"silent", "well"} {
		c.falls(name, corev1.NodeReady, corev1.ConditionFalse)
	}
	c.clock.Step(time.Hour)
	if _, givenUp := c.visit("silent"); givenUp {
		t.Error("a machine was given up though two of three are sick")
	}
	in, moves := c.decide()
	c.touches(in, moves, "silent")
	c.touches(in, moves, "well")
}
