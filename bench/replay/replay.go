// Package replay states the cluster that a plan makes, in Kubernetes objects
// alone: the nodes that exist and those that would be bought, and every planned
// pod on its node. A program that knows nothing of nap can then judge it; lab/judge does
// so with the filters of the real kube-scheduler.
//
//	plan + cluster ── World ──> nodes, bound pods, volumes ── lab/judge ──> refusals
package replay

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// AnnotationPlanned is on every pod that the plan has placed, since those are to be
// judged, and on every node that has yet to start.
const AnnotationPlanned = "nap.azure.com/planned"

// World returns the objects of the cluster after the plan. Pods that stay pending
// and Karpenter's own objects are left out. The input is not changed.
func World(in *workload.Input, stated *fleet.Input, plan *model.Plan) []client.Object {
	w := &world{in: in, stated: stated, where: map[types.NamespacedName]string{}}
	for _, pl := range plan.Placements {
		w.put(pl.Pods, stated.Problem.Nodes[pl.Node].Name)
	}
	for i := range plan.NewNodes {
		name := fmt.Sprintf("new-%03d", i)
		w.put(plan.NewNodes[i].Pods, name)
		w.buy(&plan.NewNodes[i], name)
	}
	w.comingNodes()
	for _, o := range in.Objects {
		switch o := o.(type) {
		case *v1.NodePool, *v1.NodeClaim, *appsv1.DaemonSet:
		case *corev1.Node:
			w.standing(o)
		case *corev1.Pod:
			w.pod(o)
		case *corev1.PersistentVolumeClaim:
			w.objects = append(w.objects, w.claim(o))
		default:
			w.objects = append(w.objects, o)
		}
	}
	return w.objects
}

type world struct {
	in      *workload.Input
	stated  *fleet.Input
	where   map[types.NamespacedName]string
	objects []client.Object
}

func (w *world) put(entries []model.ClassPods, node string) {
	for _, ref := range w.stated.Pods(entries) {
		w.where[types.NamespacedName(ref)] = node
	}
}

// comingNodes adds the machines that are on their way as the nodes that they
// become.
func (w *world) comingNodes() {
	known := map[string]bool{}
	for _, o := range w.in.Objects {
		if n, ok := o.(*corev1.Node); ok {
			known[n.Name] = true
		}
	}
	p := w.stated.Problem
	for i := range p.Nodes {
		if n := &p.Nodes[i]; !known[n.Name] {
			labels := maps.Clone(n.Labels)
			labels[corev1.LabelHostname] = n.Name
			w.node(n.Name, labels, n.Taints, kube.ResourceList(n.Allocatable, p.Axes)).Annotations = planned()
		}
	}
}

func planned() map[string]string { return map[string]string{AnnotationPlanned: "true"} }

// standing adds a node that exists as it is once it has started.
func (w *world) standing(node *corev1.Node) {
	for i := range w.stated.Problem.Nodes {
		if n := &w.stated.Problem.Nodes[i]; n.State == model.NodeRegistered &&
			n.Labels[corev1.LabelHostname] == node.Labels[corev1.LabelHostname] {
			w.node(node.Name, n.Labels, n.Taints, kube.ResourceList(n.Allocatable, w.stated.Problem.Axes))
			return
		}
	}
	w.objects = append(w.objects, node)
}

func (w *world) node(name string, labels map[string]string, taints []model.Taint, room corev1.ResourceList) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, t := range taints {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	w.objects = append(w.objects, node)
	return node
}

// pod adds a pod that has a node.
func (w *world) pod(p *corev1.Pod) {
	node, planned := w.where[client.ObjectKeyFromObject(p)]
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if p.Spec.NodeName == "" && !planned || over {
		return
	}
	if planned {
		p = p.DeepCopy()
		p.Spec.NodeName = node
		p.Annotations = maps.Clone(p.Annotations)
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[AnnotationPlanned] = "true"
	}
	w.objects = append(w.objects, p)
}

// claim is a volume claim as the controllers of volumes leave it: marked once it has
// its volume, and owned by the pod whose ephemeral volume it is.
func (w *world) claim(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c = c.DeepCopy()
	if c.Spec.VolumeName != "" {
		c.Annotations = maps.Clone(c.Annotations)
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	}
	for _, o := range w.in.Objects {
		p, ok := o.(*corev1.Pod)
		if !ok || p.Namespace != c.Namespace {
			continue
		}
		for i := range p.Spec.Volumes {
			if v := &p.Spec.Volumes[i]; v.Ephemeral != nil && p.Name+"-"+v.Name == c.Name {
				c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p, corev1.SchemeGroupVersion.WithKind("Pod"))}
			}
		}
	}
	return c
}

// buy adds a machine of the plan as the node that it becomes.
func (w *world) buy(n *model.NewNode, name string) {
	p := w.stated.Problem
	pool := &p.Pools[n.Pool]
	kind := &p.Catalogs[pool.Catalog].InstanceTypes[n.Best().InstanceType]
	offering := &kind.Offerings[n.Best().Offering]
	labels := map[string]string{corev1.LabelOSStable: "linux"}
	rules := slices.Concat(pool.Requirements, n.Requirements)
	allowed := func(key, value string, present bool) bool {
		return !slices.ContainsFunc(rules, func(r model.Requirement) bool { return r.Key == key && !r.Matches(value, present) })
	}
	pick := func(key string, values []string) {
		for _, v := range values {
			if _, set := labels[key]; !set && allowed(key, v, true) {
				labels[key] = v
			}
		}
	}
	for _, r := range rules {
		switch {
		case r.Operator == model.In:
			pick(r.Key, r.Values)
		case !allowed(r.Key, "", false):
			pick(r.Key, []string{"of-" + name}) // whatever no pod asks for
		}
	}
	for key, values := range kind.Choices {
		pick(key, values)
	}
	maps.Copy(labels, kind.Labels)
	maps.Copy(labels, pool.Labels)
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname: name, corev1.LabelInstanceTypeStable: kind.Name, v1.NodePoolLabelKey: pool.Name,
		corev1.LabelTopologyZone: offering.Zone, v1.CapacityTypeLabelKey: string(offering.CapacityType),
	})
	w.node(name, labels, pool.Taints, kube.ResourceList(kind.Allocatable(), p.Axes)).Annotations = planned()
	w.daemons(n, name)
}

// daemons adds pods that take what the DaemonSets will take on a new node.
func (w *world) daemons(n *model.NewNode, node string) {
	rest := kube.ResourceList(n.Daemons, w.stated.Problem.Axes)
	delete(rest, corev1.ResourcePods)
	for i := range n.Daemons.Get(model.Pods) {
		w.objects = append(w.objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprintf("daemon-%s-%d", node, i)},
			Spec: corev1.PodSpec{
				NodeName: node, Containers: []corev1.Container{{Name: "daemon", Resources: corev1.ResourceRequirements{Requests: rest}}},
			},
		})
		rest = nil // the first takes it all
	}
}
