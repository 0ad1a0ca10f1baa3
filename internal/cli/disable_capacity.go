package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// capacity is which fixed machines are missing once the nodes of nap are gone.
type capacity struct {
	// nodes are those of nap, pods those that must find another place.
	nodes, pods int
	// size and count are of the one agent pool that holds most of these pods at the least
	// price; count is zero where they fit on the nodes that stay. cost is in dollars per
	// hour.
	size  string
	count int
	cost  float64
	// homeless is how many pods find no place even there.
	homeless int
	// waiting is how many pods have no node now, which are none of these.
	waiting int
}

// Bounds of how many sizes are tried, of which each is a plan: in all, and of those which
// promise the least price.
const (
	mostSizes     = 8
	mostPromising = 5
)

// labelFamily is the label of the family of a VM size.
const labelFamily = "karpenter.azure.com/sku-family"

// fixedPool is what plans call the agent pool that is supposed.
const fixedPool = "agent-pool"

// missingCapacity plans for the pods of nap's nodes without these nodes, with one agent
// pool of each size that comes into question.
func (c *planCommand) missingCapacity(ctx context.Context, read *planInput) (*capacity, error) {
	f := &fleetChange{lost: map[string]bool{}, pools: map[string]client.Object{}, settled: true}
	var sizes, arches []string
	families := []string{"D"} // as the default NodePools
	for _, node := range objectsOf[*corev1.Node](read.objects.Distinct()) {
		if node.Labels[v1.NodePoolLabelKey] != "" {
			f.lost[node.Name] = true
			// What the pods' images are for is not known, but what they run on.
			arches = append(arches, cmp.Or(node.Labels[corev1.LabelArchStable], "amd64"))
			if family := node.Labels[labelFamily]; family != "" {
				families = append(families, family)
			}
		}
		if size := node.Labels[corev1.LabelInstanceTypeStable]; size != "" {
			sizes = append(sizes, size)
		}
	}
	out := &capacity{nodes: len(f.lost), pods: f.evictions(read), waiting: waitingPods(read)}
	if out.pods == 0 {
		return out, nil
	}
	for name, pool := range read.pools {
		shut := pool.DeepCopy()
		shut.Spec.Limits = v1.Limits{corev1.ResourceCPU: resource.Quantity{}}
		f.pools[name] = shut
	}
	class := slices.Sorted(maps.Keys(read.classes))
	if len(class) == 0 {
		return nil, fmt.Errorf("the cluster has no AKSNodeClass, without which nothing can be planned")
	}
	read.pools[fixedPool] = agentPool(class[0]) // by which the catalogue finds the class
	defer delete(read.pools, fixedPool)
	source, err := read.source(ctx, c.input.catalogFlags)
	if err != nil {
		return nil, err
	}
	try := func(key string, values ...string) (*outcome, error) {
		f.pools[fixedPool] = agentPool(class[0], in(corev1.LabelArchStable, unique(arches)...), in(key, values...))
		return c.outcome(ctx, read, source, f)
	}
	free, err := try(labelFamily, unique(families)...)
	if err != nil || free.Bought == 0 {
		out.homeless = cmp.Or(free, &outcome{}).Pending
		return out, err
	}
	bought := slices.Sorted(maps.Keys(free.Buys))
	for i, what := range bought {
		bought[i], _, _ = strings.Cut(what, " ")
	}
	slices.Sort(sizes)
	catalog := source.ForClass(class[0])
	cheap := promising(catalog, families, arches, f.requests(read, catalog.Axes))
	all := unique(slices.Concat(cheap[:min(mostPromising, len(cheap))], bought, sizes))

	var best *outcome
	for _, size := range all[:min(mostSizes, len(all))] {
		found, err := try(corev1.LabelInstanceTypeStable, size)
		if err != nil {
			return nil, err
		}
		if best == nil || cmp.Or(cmp.Compare(found.Pending, best.Pending), cmp.Compare(found.HourlyCost, best.HourlyCost)) < 0 {
			best, out.size, out.count, out.homeless = found, size, found.Bought, found.Pending
		}
	}
	none, err := c.outcome(ctx, read, source, &fleetChange{lost: f.lost, pools: shutAlone(f.pools), settled: true})
	if err == nil {
		out.cost = best.HourlyCost - none.HourlyCost
	}
	return out, err
}

// waitingPods is how many pods have no node.
func waitingPods(read *planInput) int {
	n := 0
	for p := range read.store.Snapshot().Pods() {
		if !p.Bound() && !p.Daemon && !p.Static && !p.Terminal {
			n++
		}
	}
	return n
}

// requests are those of all pods that lose their node, as if they were one.
func (f *fleetChange) requests(read *planInput, axes model.Axes) model.Resources {
	sum := make(model.Resources, len(axes))
	for p := range read.store.Snapshot().Pods() {
		if p.Bound() && !p.Daemon && !p.Static && f.lost[p.Node] {
			sum = sum.Add(p.Spec.Requests.Vector(axes))
		}
	}
	return sum
}

// promising are the sizes of the families and architectures, the one first whose machines would hold
// the requests at the least price if these could be divided at will.
func promising(catalog *fleet.Catalog, families, arches []string, need model.Resources) []string {
	type bid struct {
		size  string
		price model.Money
	}
	var bids []bid
	for i := range catalog.InstanceTypes {
		t := &catalog.InstanceTypes[i]
		machines := dividedAmong(need, t.Allocatable())
		if machines == 0 || !slices.Contains(families, t.Labels[labelFamily]) || !slices.Contains(arches, t.Labels[corev1.LabelArchStable]) {
			continue
		}
		best := model.Money(0)
		for o := range t.Offerings {
			if x := &t.Offerings[o]; x.Available && !x.Unpriced && x.CapacityType == model.OnDemand && (best == 0 || x.Price < best) {
				best = x.Price
			}
		}
		if best > 0 {
			bids = append(bids, bid{t.Name, best * model.Money(machines)})
		}
	}
	slices.SortFunc(bids, func(a, b bid) int { return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.size, b.size)) })
	out := make([]string, len(bids))
	for i := range bids {
		out[i] = bids[i].size
	}
	return out
}

// dividedAmong is how many machines with so much room hold what is needed, at least one, if that
// could be divided at will; zero where they lack something altogether.
func dividedAmong(need, room model.Resources) int64 {
	machines := int64(1)
	for axis := range need {
		n, has := need.Get(axis), room.Get(axis)
		if n > 0 && has <= 0 {
			return 0
		}
		if n > 0 {
			machines = max(machines, (n+has-1)/has)
		}
	}
	return machines
}

// shutAlone are the pools without the supposed one.
func shutAlone(pools map[string]client.Object) map[string]client.Object {
	out := maps.Clone(pools)
	delete(out, fixedPool)
	return out
}

// unique drops what is there twice, and keeps the order.
func unique(all []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// in is a requirement on the values of a label.
func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// agentPool is an agent pool of on-demand machines as a NodePool with these requirements.
func agentPool(class string, of ...v1.NodeSelectorRequirementWithMinValues) *v1.NodePool {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: fixedPool}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.azure.com", Kind: nodeClassKind, Name: class}
	pool.Spec.Template.Spec.Requirements = append(of,
		in(corev1.LabelOSStable, "linux"), in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand))
	pool.Status.Conditions = []status.Condition{{Type: status.ConditionReady, Status: metav1.ConditionTrue}}
	return pool
}

// command adds the agent pool that is missing; empty where none is.
func (c *capacity) command() string {
	if c.count == 0 {
		return ""
	}
	return fmt.Sprintf("az aks nodepool add --resource-group $ARM_RESOURCE_GROUP --cluster-name $CLUSTER_NAME --name fixed "+
		"--mode User --node-vm-size %s --node-count %d", c.size, c.count)
}

// document is what is missing for programs.
func (c *capacity) document() *dryMissing {
	out := &dryMissing{Nodes: c.nodes, Pods: c.pods, Count: c.count, Command: c.command(), WithoutPlace: c.homeless}
	if c.count > 0 {
		out.InstanceType, out.HourlyCost = c.size, c.cost
	}
	return out
}

// write says which machines are missing.
func (c *capacity) write(to *command.Streams) error {
	var text strings.Builder
	switch {
	case c.pods == 0:
		fmt.Fprintf(&text, "Step 3: no pod runs on the %s of nap.\n", plural(c.nodes, "node"))
	case c.count == 0 && c.homeless == 0:
		fmt.Fprintf(&text, "Step 3: %s of %s of nap: the other nodes have room.\n", moves(c.pods), plural(c.nodes, "node"))
	case c.count > 0:
		fmt.Fprintf(&text, "Step 3: for the %s of %s of nap %d x %s are missing (%s/h). Add them:\n", plural(c.pods, "pod"),
			plural(c.nodes, "node"), c.count, c.size, dollars(c.cost))
		fmt.Fprintf(&text, "  %s\n", c.command())
	}
	if c.waiting > 0 {
		fmt.Fprintf(&text, "  Not counted: %s %s for a node now.\n", plural(c.waiting, "pod"), verbFor(c.waiting, "waits"))
	}
	if c.homeless > 0 {
		fmt.Fprintf(&text, "  %s no place on machines of an agent pool of one size, because of selectors, taints or their size: "+
			"nap what-if says more\n", findsNo(c.homeless))
	}
	_, err := io.WriteString(to.Out, offeredIn(to, text.String()))
	return err
}

func moves(pods int) string {
	if pods == 1 {
		return "1 pod moves"
	}
	return fmt.Sprintf("%d pods move", pods)
}

func findsNo(pods int) string {
	if pods == 1 {
		return "1 pod finds"
	}
	return fmt.Sprintf("%d pods find", pods)
}

// frozenPools names the NodePools of which no node is removed voluntarily now.
func frozenPools(pools map[string]*v1.NodePool, now time.Time) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		if kube.FreezeOf(pools[name]).Holds(now) {
			out = append(out, fmt.Sprintf("NodePool %s is frozen: nap thaw %s", name, name))
		}
	}
	return out
}

// immovable names the pods on nodes of nap which would never leave them, with why and what
// to change, the first of each cause.
func immovable(objects []client.Object) []string {
	own := map[string]bool{}
	for _, node := range objectsOf[*corev1.Node](objects) {
		own[node.Name] = node.Labels[v1.NodePoolLabelKey] != ""
	}
	var pods []*corev1.Pod
	out := []string{}
	for _, p := range objectsOf[*corev1.Pod](objects) {
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if owner := metav1.GetControllerOf(p); !own[p.Spec.NodeName] || ended || owner != nil && owner.Kind == "DaemonSet" {
			continue
		}
		pods = append(pods, p)
		if p.Annotations[v1.DoNotDisruptAnnotationKey] == "true" {
			out = append(out, fmt.Sprintf("pod %s/%s on %s has the annotation %s: remove it, or end the pod",
				p.Namespace, p.Name, p.Spec.NodeName, v1.DoNotDisruptAnnotationKey))
		}
	}
	for _, budget := range objectsOf[*policyv1.PodDisruptionBudget](objects) {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || !neverAllows(budget) {
			continue
		}
		for _, p := range pods {
			if p.Namespace == budget.Namespace && selector.Matches(labels.Set(p.Labels)) {
				out = append(out, fmt.Sprintf("pod %s/%s on %s has the PodDisruptionBudget %s, which never allows an eviction: "+
					"set maxUnavailable to 1, or run one pod more than minAvailable", p.Namespace, p.Name, p.Spec.NodeName, budget.Name))
				break
			}
		}
	}
	slices.Sort(out)
	if more := len(out) - 10; more > 0 {
		out = append(out[:10], fmt.Sprintf("and %d more", more))
	}
	return out
}

// neverAllows reports whether a budget allows no eviction, although all of its pods are
// healthy.
func neverAllows(b *policyv1.PodDisruptionBudget) bool {
	s := &b.Status
	return s.DisruptionsAllowed == 0 && s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods
}
