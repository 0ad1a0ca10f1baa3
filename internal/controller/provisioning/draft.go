package provisioning

import (
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclaims"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/model"
)

// draft is a NodeClaim that is about to be created, with what is told about it.
type draft struct {
	// claim is replaced by the created object once there is one.
	claim *karpv1.NodeClaim
	// pods are those that the plan places on the node, pool the name of its NodePool.
	pods []model.PodRef
	pool string
	// plan is the id of the plan, workloads are those of the pods, at most as many as
	// are followed.
	plan      string
	workloads []purchasebackoff.Workload
	// best names the offering that the plan counts on, price is its price an hour,
	// allocatable what pods may use of it, and alternatives the number of other offerings that would do.
	best         string
	price        model.Money
	allocatable  model.Resources
	alternatives int
	// requests are those of the pods and of the daemons, as text.
	requests string
}

// drafter writes planned nodes as claims.
type drafter struct {
	// newID returns a fresh random word of n characters.
	newID func(n int) string
	// atAnyPrice reports whether machines are bought for workloads at any price.
	atAnyPrice func([]purchasebackoff.Workload) bool
}

// drafts writes the new nodes of the plan with this id as claims.
func (d *drafter) drafts(in *planInputs, plan *model.Plan, id string) []*draft {
	p := in.input.Problem
	writer := nodeclaims.NewWriter(p, plan.NewNodes, in.pools)
	workloads := purchasebackoff.Workloads{}
	var out []*draft
	for i := range plan.NewNodes {
		node := &plan.NewNodes[i]
		name := p.Pools[node.Pool].Name
		claim, offerings := writer.Write(node, name+"-"+d.newID(5))
		if claim == nil {
			// The pool was deleted between the two readings; its pods are tried again.
			continue
		}
		claim.Annotations[v1beta1.AnnotationPlan] = id
		bought := boughtFor(in, node, workloads)
		claim.Annotations[v1beta1.AnnotationBoughtFor] = purchasebackoff.Annotation(bought)
		if d.atAnyPrice(bought) {
			delete(claim.Annotations, v1beta1.AnnotationMostPrice)
		}
		best := node.Best()
		out = append(out, &draft{
			claim: claim, pods: in.input.Pods(node.Pods), pool: name, plan: id, workloads: bought,
			best:         nodeclaims.OfferingName(&p.Catalogs[p.Pools[node.Pool].Catalog], best),
			price:        best.Price,
			allocatable:  p.Catalogs[p.Pools[node.Pool].Catalog].InstanceTypes[best.InstanceType].Allocatable(),
			alternatives: len(offerings) - 1,
			requests:     node.Requests.Add(node.Daemons).Format(p.Axes),
		})
	}
	return out
}

// boughtFor are the workloads of a planned node's pods, each once, and no more than a
// claim can name.
func boughtFor(in *planInputs, node *model.NewNode, workloads purchasebackoff.Workloads) []purchasebackoff.Workload {
	var out []purchasebackoff.Workload
	for _, ref := range in.input.Pods(node.Pods) {
		record := in.input.Record(ref)
		if record == nil || len(out) == purchasebackoff.MostWorkloads {
			continue
		}
		if w := workloads.Of(record); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
