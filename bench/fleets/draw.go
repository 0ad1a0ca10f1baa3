package fleets

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/bench/workload"
)

// Fleet is one line of the benchmark.
type Fleet struct {
	Name  string
	Nodes int
	// Guarded fleets have a PodDisruptionBudget of a tenth of its pods for every
	// deployment, and a third of the deployments spread over zones.
	Guarded bool
	About   string
}

// All lists the fleets in the order of the table: every size as it is and guarded.
func All() []Fleet {
	var out []Fleet
	for _, nodes := range []int{100, 500, 2_000, 5_000} {
		plain := Fleet{Name: fmt.Sprint("fleet-", nodes), Nodes: nodes, About: "mixed sizes, 30 percent used, at most 30 pods a node"}
		guarded := Fleet{
			Name: plain.Name + "-guarded", Nodes: nodes, Guarded: true,
			About: "as " + plain.Name + ", with a PodDisruptionBudget of a tenth of its pods for every deployment and a zonal " +
				"spread for a third of them",
		}
		out = append(out, plain, guarded)
	}
	return out
}

// The nodes are used up to this share, and have at most so many pods.
const (
	usedShare = 0.30
	podsAtAll = 30
	// podsPerNode are drawn, which is more than there is room for.
	podsPerNode = 8
)

// Draw makes a fragmented fleet: nodes of mixed sizes of 4 to 32 vCPUs, each
// filled with pods of lognormal deployments up to 30 percent of its CPU or
// memory. The same fleet always comes out the same.
func Draw(f Fleet) (*Cluster, error) {
	chosen, err := workload.Select("^deployments-50000/DEF64$")
	if err != nil {
		return nil, err
	}
	source := chosen[0]
	source.Pods = max(source.Pods, podsPerNode*f.Nodes) // large fleets need more than the workload has
	in, err := source.Build(podsPerNode * f.Nodes)
	if err != nil {
		return nil, err
	}
	c := newCluster(in.InstanceTypes)
	d := &drawing{Cluster: c, fleet: f, rng: rand.New(rand.NewPCG(7, uint64(f.Nodes))), perZone: map[string]map[string]int{}}
	for _, o := range in.Objects {
		switch o := o.(type) {
		case *v1.NodePool:
			o.Spec.Disruption = v1.Disruption{
				ConsolidationPolicy: v1.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: v1.MustParseNillableDuration("0s"),
				Budgets: []v1.Budget{{Nodes: "100%"}},
			}
			o.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
			o.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
			c.Fixed = append(c.Fixed, o)
		case *corev1.Pod:
			d.waiting = append(d.waiting, o)
		}
	}
	d.rng.Shuffle(len(d.waiting), func(i, j int) { d.waiting[i], d.waiting[j] = d.waiting[j], d.waiting[i] })
	d.sizes = d.middling()
	for range f.Nodes {
		if err := d.node(); err != nil {
			return nil, err
		}
	}
	if f.Guarded {
		d.guard()
	}
	return c, c.check()
}

type drawing struct {
	*Cluster
	fleet   Fleet
	rng     *rand.Rand
	waiting []*corev1.Pod
	sizes   []*cloudprovider.InstanceType
	// perZone counts the pods of every app by zone.
	perZone map[string]map[string]int
}

// middling are the sizes that fleets are made of: those of the NodePool's
// families with 4 to 32 vCPUs, on demand.
func (d *drawing) middling() []*cloudprovider.InstanceType {
	np := d.Fixed[0].(*v1.NodePool)
	var out []*cloudprovider.InstanceType
	for _, t := range d.Types {
		cores := t.Capacity.Cpu().Value()
		ok := cores >= 4 && cores <= 32 && len(t.Offerings) > 0
		for _, r := range np.Spec.Template.Spec.Requirements {
			if has := t.Requirements.Get(r.Key); r.Operator == corev1.NodeSelectorOpIn && !slices.ContainsFunc(r.Values, has.Has) {
				ok = false
			}
		}
		if ok {
			out = append(out, t)
		}
	}
	return out
}

// node adds a node and fills it.
func (d *drawing) node() error {
	t := d.sizes[d.rng.IntN(len(d.sizes))]
	var sold []*cloudprovider.Offering
	for _, o := range t.Offerings {
		if o.Available && o.CapacityType() == v1.CapacityTypeOnDemand {
			sold = append(sold, o)
		}
	}
	zone := sold[d.rng.IntN(len(sold))].Zone()
	name, err := d.buy(t.Name, zone, v1.CapacityTypeOnDemand)
	if err != nil {
		return err
	}
	room := t.Allocatable()
	cpu, memory := int64(usedShare*float64(room.Cpu().MilliValue())), int64(usedShare*float64(room.Memory().Value()))
	for n, misses := 0, 0; n < podsAtAll && misses < 8 && len(d.waiting) > 0; {
		i := d.rng.IntN(len(d.waiting))
		p := d.waiting[i]
		r := p.Spec.Containers[0].Resources.Requests
		app := appOf(p)
		if r.Cpu().MilliValue() > cpu || r.Memory().Value() > memory || d.spreads(app) && !d.evens(app, zone) {
			misses++
			continue
		}
		cpu, memory = cpu-r.Cpu().MilliValue(), memory-r.Memory().Value()
		d.waiting = slices.Delete(d.waiting, i, i+1)
		d.settle(p, app, name, zone)
		n++
	}
	return nil
}

func (d *drawing) settle(p *corev1.Pod, app, node, zone string) {
	p.UID = types.UID(p.Namespace + "/" + p.Name)
	p.CreationTimestamp = quietSince
	p.Spec.NodeName = node
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &quietSince, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}}
	if d.spreads(app) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}}
	}
	if d.perZone[app] == nil {
		d.perZone[app] = map[string]int{}
	}
	d.perZone[app][zone]++
	d.pods[client.ObjectKeyFromObject(p)] = p
}

func appOf(p *corev1.Pod) string { return p.Labels["app"] }

// spreads chooses a third of the apps of guarded fleets.
func (d *drawing) spreads(app string) bool {
	sum := 0
	for _, c := range app {
		sum += int(c)
	}
	return d.fleet.Guarded && sum%3 == 0
}

// evens reports whether one more pod in the zone keeps the app's spread.
func (d *drawing) evens(app, zone string) bool {
	least := 1 << 30
	for _, z := range []string{"eastus-1", "eastus-2", "eastus-3"} {
		least = min(least, d.perZone[app][z])
	}
	return d.perZone[app][zone] <= least
}

// guard gives every app a PodDisruptionBudget.
func (d *drawing) guard() {
	for _, app := range sorted(d.perZone) {
		total := 0
		for _, n := range d.perZone[app] {
			total += n
		}
		allowed := max(1, total/10)
		d.Fixed = append(d.Fixed, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: &intstr.IntOrString{IntVal: int32(allowed)},
				Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			},
			Status: policyv1.PodDisruptionBudgetStatus{
				DisruptionsAllowed: int32(allowed), CurrentHealthy: int32(total), DesiredHealthy: int32(total - allowed), ExpectedPods: int32(total),
			},
		})
	}
}

func (c *Cluster) isTrue(condition string) status.Condition {
	return status.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: condition, LastTransitionTime: c.now}
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K {
	var keys []K
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func compare(a, b string) int { return cmp.Compare(a, b) }
