// Package savings says what a cluster's nodes cost, and what the same pods would cost on
// nodes that nap buys, whatever made the nodes: agent pools, the cluster autoscaler,
// Karpenter. nap savings answers with it once, the shadow again and again: both take the same
// nodes, pods and prices into account, and neither touches anything.
//
// Start with [Now], which prices the nodes, [Unplaced], which takes them away, and [Replan].
package savings

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// Prices price the nodes of a cluster.
type Prices interface {
	// OfferingOf is what a node was bought as, with its price, by its size, zone and capacity
	// type; false where that has no price.
	OfferingOf(node *corev1.Node) (model.Offering, bool)
}

// Fleet are the nodes of a cluster that nap could replace.
type Fleet struct {
	// Goes are their names.
	Goes map[string]bool
	// prices are what they cost, by name.
	prices map[string]model.Money
	// Stay is how many others there are: of mode system, or without a price.
	Stay int
	// Price is what they cost per hour; Disk and Node are the parts of it for managed
	// operating system disks and for what the user adds to every node.
	Price, Disk, Node model.Money
}

// Now prices the nodes among a cluster's objects.
func Now(objects []client.Object, prices Prices) Fleet {
	out := Fleet{Goes: map[string]bool{}, prices: map[string]model.Money{}}
	for _, o := range objects {
		node, is := o.(*corev1.Node)
		if !is {
			continue
		}
		offering, known := prices.OfferingOf(node)
		if !known || node.Labels[model.LabelMode] == "system" {
			out.Stay++
			continue
		}
		out.Goes[node.Name], out.prices[node.Name] = true, offering.Price
		out.Price += offering.Price
		out.Disk += offering.DiskPrice
		out.Node += offering.NodePrice
	}
	return out
}

// Held is how many nodes of the fleet some pods run on, and what these cost per hour. They cannot
// go while the pods find no other place.
func (f *Fleet) Held(objects []client.Object, pods map[string]bool) (nodes int, price model.Money) {
	held := map[string]bool{}
	for _, o := range objects {
		pod, is := o.(*corev1.Pod)
		if !is || !f.Goes[pod.Spec.NodeName] || held[pod.Spec.NodeName] {
			continue
		}
		if ref := (model.PodRef{Namespace: pod.Namespace, Name: pod.Name}); pods[ref.String()] {
			held[pod.Spec.NodeName] = true
			price += f.prices[pod.Spec.NodeName]
		}
	}
	return len(held), price
}

// Unplaced are a cluster's objects without any node, in which the pods of some nodes, by
// name, wait. Pods of other nodes and those that wait now are left out.
func Unplaced(objects []client.Object, goes map[string]bool) []client.Object {
	var out []client.Object
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node, *v1.NodeClaim:
		case *corev1.Pod:
			if !goes[o.Spec.NodeName] {
				continue
			}
			pod := o.DeepCopy()
			pod.Spec.NodeName, pod.Status.NominatedNodeName = "", ""
			out = append(out, pod)
		default:
			out = append(out, o)
		}
	}
	return out
}

// Planned is what nap would do for the pods of some objects that wait.
type Planned struct {
	Store *fleet.Store
	Input *fleet.Input
	Plan  *model.Plan
}

// Replan plans for objects as they are given, with what is assumed beside them.
func Replan(ctx context.Context, objects, assumed []client.Object, catalogs fleet.Catalogs, options fleet.Options) (*Planned, error) {
	out := &Planned{Store: fleet.NewStore()}
	mirror := kube.NewMirror(out.Store, kube.Settings{EveryPod: true})
	for _, o := range slices.Concat(objects, assumed) {
		mirror.Apply(o)
	}
	var err error
	if out.Input, err = out.Store.Snapshot().Problem(ctx, catalogs, options); err != nil {
		return nil, err
	}
	out.Plan = planner.Solve(out.Input.Problem)
	return out, nil
}
