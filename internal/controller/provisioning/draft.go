package provisioning

import (
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclaims"
	"github.com/nodeautoprovision/nap/internal/model"
)

// draft is a NodeClaim that is about to be created, with what is told about it.
type draft struct {
	// claim is replaced by the created object once there is one.
	claim *karpv1.NodeClaim
	// pods are those that the plan places on the node, pool the name of its NodePool.
	pods []model.PodRef
	pool string
	// best names the offering that the plan counts on, price is its price an hour,
	// and alternatives the number of other offerings that would do.
	best         string
	price        model.Money
	alternatives int
	// requests are those of the pods and of the daemons, as text.
	requests string
}

// drafts writes the new nodes of the plan with this id as claims. newID returns a
// fresh random word of n characters.
func drafts(in *planInputs, plan *model.Plan, id string, newID func(n int) string) []*draft {
	p := in.input.Problem
	writer := nodeclaims.NewWriter(p, plan.NewNodes, in.pools)
	var out []*draft
	for i := range plan.NewNodes {
		node := &plan.NewNodes[i]
		name := p.Pools[node.Pool].Name
		claim, offerings := writer.Write(node, name+"-"+newID(5))
		if claim == nil {
			// The pool was deleted between the two readings; its pods are tried again.
			continue
		}
		claim.Annotations[v1beta1.AnnotationPlan] = id
		best := node.Best()
		out = append(out, &draft{
			claim: claim, pods: in.input.Pods(node.Pods), pool: name,
			best:  nodeclaims.OfferingName(&p.Catalogs[p.Pools[node.Pool].Catalog], best),
			price: best.Price, alternatives: len(offerings) - 1,
			requests: node.Requests.Add(node.Daemons).Format(p.Axes),
		})
	}
	return out
}
