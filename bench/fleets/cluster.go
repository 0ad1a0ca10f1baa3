package fleets

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// pool is the name of the NodePool that all nodes belong to.
const pool = "default"

// Cluster is a cluster whose machines appear and vanish, and whose pods move, as
// soon as they are told to.
type Cluster struct {
	// Fixed are the objects that do not change: the NodePool and the budgets.
	Fixed []client.Object
	Types []*cloudprovider.InstanceType

	nodes map[string]*machine
	pods  map[types.NamespacedName]*corev1.Pod
	made  int
	// now is the moment at which things happen.
	now metav1.Time
	// followers are told what has changed.
	followers []follower
}

// follower is told of changes.
type follower struct{ put, drop func(client.Object) }

// machine is a node with its claim and its price.
type machine struct {
	node  *corev1.Node
	claim *v1.NodeClaim
	price float64
}

// quietSince is when everything in a fleet has happened.
var quietSince = metav1.Unix(1_700_000_000, 0)

func newCluster(instanceTypes []*cloudprovider.InstanceType) *Cluster {
	return &Cluster{Types: instanceTypes, nodes: map[string]*machine{}, pods: map[types.NamespacedName]*corev1.Pod{}, now: quietSince}
}

// Copy returns a cluster that can be changed on its own.
func (c *Cluster) Copy() *Cluster {
	out := newCluster(c.Types)
	out.Fixed, out.made, out.now = c.Fixed, c.made, c.now
	for name, m := range c.nodes {
		out.nodes[name] = &machine{m.node.DeepCopy(), m.claim.DeepCopy(), m.price}
	}
	for name, p := range c.pods {
		out.pods[name] = p.DeepCopy()
	}
	return out
}

// Follow tells of every change from now on, beside those who are told already.
func (c *Cluster) Follow(put, drop func(client.Object)) {
	c.followers = append(c.followers, follower{put, drop})
}

func (c *Cluster) put(o client.Object) {
	for _, f := range c.followers {
		f.put(o)
	}
}

func (c *Cluster) drop(o client.Object) {
	for _, f := range c.followers {
		f.drop(o)
	}
}

// Objects are all objects, nodes and claims first.
func (c *Cluster) Objects() []client.Object {
	out := slices.Clone(c.Fixed)
	for _, name := range sorted(c.nodes) {
		out = append(out, c.nodes[name].claim, c.nodes[name].node)
	}
	var keys []types.NamespacedName
	for key := range c.pods {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return compare(a.String(), b.String()) })
	for _, key := range keys {
		out = append(out, c.pods[key])
	}
	return out
}

// Cost is dollars per hour.
func (c *Cluster) Cost() float64 {
	sum := 0.0
	for _, name := range sorted(c.nodes) { // always the same sum
		sum += c.nodes[name].price
	}
	return sum
}

// Nodes and Pods count.
func (c *Cluster) Nodes() int { return len(c.nodes) }

// Pods counts the pods.
func (c *Cluster) Pods() int { return len(c.pods) }

// buy adds a ready node and returns its name.
func (c *Cluster) buy(size, zone, capacity string) (string, error) {
	i := slices.IndexFunc(c.Types, func(t *cloudprovider.InstanceType) bool { return t.Name == size })
	if i < 0 {
		return "", fmt.Errorf("no size %q", size)
	}
	t := c.Types[i]
	j := slices.IndexFunc(t.Offerings, func(o *cloudprovider.Offering) bool { return o.Zone() == zone && o.CapacityType() == capacity })
	if j < 0 {
		return "", fmt.Errorf("size %s is not sold in %s as %s", size, zone, capacity)
	}
	c.made++
	name := nodeName(c.made)
	labels := map[string]string{
		v1.NodePoolLabelKey: pool, v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true",
		corev1.LabelInstanceTypeStable: size, corev1.LabelTopologyZone: zone, v1.CapacityTypeLabelKey: capacity, corev1.LabelHostname: name,
	}
	for key, r := range t.Requirements {
		if r.Operator() == corev1.NodeSelectorOpIn && r.Len() == 1 && labels[key] == "" {
			labels[key] = r.Values()[0]
		}
	}
	id := "azure:///" + name
	m := &machine{price: t.Offerings[j].Price}
	m.claim = &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, UID: types.UID("claim-" + name), Labels: labels, CreationTimestamp: c.now},
		Spec:       v1.NodeClaimSpec{NodeClassRef: &v1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}},
		Status:     v1.NodeClaimStatus{NodeName: name, ProviderID: id, Capacity: t.Capacity, Allocatable: t.Allocatable()},
	}
	for _, condition := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered,
		v1.ConditionTypeInitialized, v1.ConditionTypeConsolidatable} {
		m.claim.Status.Conditions = append(m.claim.Status.Conditions, c.isTrue(condition))
	}
	m.node = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: c.now},
		Spec:       corev1.NodeSpec{ProviderID: id},
		Status: corev1.NodeStatus{
			Capacity: t.Capacity, Allocatable: t.Allocatable(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	c.nodes[name] = m
	c.put(m.claim)
	c.put(m.node)
	return name, nil
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// place binds a pod to a node.
func (c *Cluster) place(pod types.NamespacedName, node string) {
	p := c.pods[pod]
	before := p.Spec.NodeName
	p.Spec.NodeName = node
	c.put(p)
	c.touch(before)
	c.touch(node)
}

// wait makes a pod one that waits.
func (c *Cluster) wait(key types.NamespacedName) {
	p := c.pods[key]
	p.Spec.NodeName = ""
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}
	c.put(p)
}

// touch notes that a pod has come to or left a node.
func (c *Cluster) touch(node string) {
	m := c.nodes[node]
	if m == nil || m.claim.Status.LastPodEventTime.Equal(&c.now) {
		return
	}
	m.claim.Status.LastPodEventTime = c.now
	c.put(m.claim)
}

// giveBack removes a node. Its pods must have been placed elsewhere before.
func (c *Cluster) giveBack(name string) {
	m := c.nodes[name]
	delete(c.nodes, name)
	c.drop(m.node)
	c.drop(m.claim)
}

// check fails when a pod is on a node that does not exist, or a node is over its
// capacity.
func (c *Cluster) check() error {
	used := map[string][2]int64{}
	for key, p := range c.pods {
		if c.nodes[p.Spec.NodeName] == nil {
			return fmt.Errorf("pod %s is on node %q, which does not exist", key, p.Spec.NodeName)
		}
		r := p.Spec.Containers[0].Resources.Requests
		u := used[p.Spec.NodeName]
		used[p.Spec.NodeName] = [2]int64{u[0] + r.Cpu().MilliValue(), u[1] + r.Memory().Value()}
	}
	for name, u := range used {
		room := c.nodes[name].node.Status.Allocatable
		if u[0] > room.Cpu().MilliValue() || u[1] > room.Memory().Value() {
			return fmt.Errorf("node %s is over its capacity: %dm CPU of %dm, %d bytes of %d",
				name, u[0], room.Cpu().MilliValue(), u[1], room.Memory().Value())
		}
	}
	return nil
}
