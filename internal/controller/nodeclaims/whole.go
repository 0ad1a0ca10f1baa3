package nodeclaims

import (
	"cmp"
	"maps"
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Whole writes a NodeClaim for any machine that its pool's template allows, as for a
// pool that keeps a fixed number of nodes. As Karpenter does for such pools, it states
// the template's labels as requirements, too: a label like kubernetes.azure.com/mode
// decides what machine is made.
func Whole(pool *karpv1.NodePool, name string) *karpv1.NodeClaim {
	claim := FromTemplate(pool, name)
	requirements := intersect(claim, nil)
	maps.Copy(claim.Labels, customLabels(requirements, mayLack(claim, nil)))
	claim.Spec.Requirements = requirements.NodeSelectorRequirements()
	slices.SortStableFunc(claim.Spec.Requirements, func(a, b karpv1.NodeSelectorRequirementWithMinValues) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator))
	})
	return claim
}
