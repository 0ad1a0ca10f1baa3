package provisioning

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// draft is a NodeClaim that is about to be created, with what is told about it.
type draft struct {
	claim *karpv1.NodeClaim
	pods  []model.PodRef
	pool  string
	// best is what the plan counts on; alternatives how many other ways there are.
	best         string
	price        model.Money
	alternatives int
	requests     string
}

// Writer writes the new nodes of one plan as NodeClaims.
type Writer struct {
	problem *model.Problem
	pools   map[string]*karpv1.NodePool
	room    *headroom
}

// NewWriter returns a writer for these nodes of a plan; pools are the NodePools of
// the problem, by name.
func NewWriter(p *model.Problem, nodes []model.NewNode, pools map[string]*karpv1.NodePool) *Writer {
	return &Writer{problem: p, pools: pools, room: newHeadroom(p, nodes)}
}

// Write writes a planned node as a NodeClaim of its pool, in the form in which
// Karpenter's controllers and the cloud provider read it. It names the offerings
// of the node, cheapest first, or as many as the pool's limits allow, and returns
// them. The claim is nil when the pool is gone.
func (w *Writer) Write(node *model.NewNode, name string) (*karpv1.NodeClaim, []model.OfferingRef) {
	pool := w.pools[w.problem.Pools[node.Pool].Name]
	if pool == nil {
		return nil, nil
	}
	offerings := w.room.take(node)
	claim := FromTemplate(pool, name)
	narrowed := narrow(claim, node.Requirements)
	maps.Copy(claim.Labels, ownLabels(narrowed, mayLack(claim, node.Requirements)))
	claim.Spec.Requirements = withOfferings(narrowed, w.problem.Catalogs[w.problem.Pools[node.Pool].Catalog], offerings)
	claim.Spec.Resources = karpv1.ResourceRequirements{Requests: kube.ResourceList(node.Requests.Add(node.Daemons), w.problem.Axes)}
	claim.Annotations[v1beta1.AnnotationWhy] = why(w.problem, node, offerings)
	return claim, offerings
}

// FromTemplate writes a NodeClaim that is what its pool's template says and no
// more, as for a pool that keeps a fixed number of nodes.
func FromTemplate(pool *karpv1.NodePool, name string) *karpv1.NodeClaim {
	template := pool.Spec.Template.DeepCopy()
	claim := template.ToNodeClaim()
	claim.Name = name
	claim.Labels = merged(claim.Labels, map[string]string{
		karpv1.NodePoolLabelKey: pool.Name,
		karpv1.NodeClassLabelKey(template.Spec.NodeClassRef.GroupKind()): template.Spec.NodeClassRef.Name,
	})
	claim.Annotations = merged(claim.Annotations, map[string]string{
		karpv1.NodePoolHashAnnotationKey:        pool.Hash(),
		karpv1.NodePoolHashVersionAnnotationKey: karpv1.NodePoolHashVersion,
	})
	block := true
	claim.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: apis.Group + "/v1", Kind: "NodePool",
		Name: pool.Name, UID: pool.UID, BlockOwnerDeletion: &block,
	}}
	return claim
}

func merged(a, b map[string]string) map[string]string {
	out := make(map[string]string, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// narrow intersects the pool's requirements and labels with what the node's pods
// need.
func narrow(claim *karpv1.NodeClaim, needs model.Requirements) scheduling.Requirements {
	reqs := scheduling.NewRequirements()
	reqs.Add(scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...).Values()...)
	reqs.Add(scheduling.NewLabelRequirements(claim.Labels).Values()...)
	for _, n := range needs {
		reqs.Add(scheduling.NewRequirement(n.Key, corev1.NodeSelectorOperator(n.Operator), n.Values...))
	}
	return reqs
}

// mayLack are the labels that requirements speak of without asking for them, such as
// team NotIn [red]: the plan counts on their absence.
func mayLack(claim *karpv1.NodeClaim, needs model.Requirements) map[string]bool {
	out := map[string]bool{}
	tell := func(key string, operator corev1.NodeSelectorOperator) {
		lacks := operator == corev1.NodeSelectorOpNotIn || operator == corev1.NodeSelectorOpDoesNotExist
		before, known := out[key]
		out[key] = lacks && (before || !known)
	}
	for _, r := range claim.Spec.Requirements {
		tell(r.Key, r.Operator)
	}
	for _, r := range needs {
		tell(r.Key, corev1.NodeSelectorOperator(r.Operator))
	}
	for key := range claim.Labels {
		out[key] = false
	}
	return out
}

// ownLabels gives every label that users have invented, and on which nothing of
// the machine depends, the value that the node will carry: the first by name of
// those that are allowed, so that equal plans make equal nodes. Labels that the node
// may lack, it lacks.
func ownLabels(reqs scheduling.Requirements, lacks map[string]bool) map[string]string {
	labels := map[string]string{}
	for key, r := range reqs {
		if karpv1.WellKnownLabels.Has(key) || karpv1.RestrictedLabels.Has(key) || lacks[key] {
			continue
		}
		if r.Operator() == corev1.NodeSelectorOpIn {
			labels[key] = slices.Min(r.Values())
			continue
		}
		// An open requirement is satisfied by any value, and some value is needed.
		if value := r.Any(); value != "" {
			labels[key] = value
		}
	}
	return labels
}

// withOfferings adds what can be bought: the instance types in the order of
// their price, the zones and the capacity types. Only what is named here may be
// launched.
func withOfferings(reqs scheduling.Requirements, catalog model.Catalog, offerings []model.OfferingRef) []karpv1.NodeSelectorRequirementWithMinValues {
	var types, zones, capacities []string
	for _, ref := range offerings {
		it := &catalog.InstanceTypes[ref.InstanceType]
		offering := &it.Offerings[ref.Offering]
		types = appendNew(types, it.Name)
		zones = appendNew(zones, offering.Zone)
		capacities = appendNew(capacities, string(offering.CapacityType))
	}
	minTypes := reqs.Get(corev1.LabelInstanceTypeStable).MinValues
	reqs.Add(scheduling.NewRequirement(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacities...))
	if !slices.Contains(zones, "") {
		reqs.Add(scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...))
	}
	var out []karpv1.NodeSelectorRequirementWithMinValues
	for _, r := range reqs.NodeSelectorRequirements() {
		if r.Key != corev1.LabelInstanceTypeStable {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b karpv1.NodeSelectorRequirementWithMinValues) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator))
	})
	// Karpenter's algebra keeps sets; the order of the types is the ranking, so
	// they are written past it.
	return append(out, karpv1.NodeSelectorRequirementWithMinValues{
		Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: types, MinValues: minTypes,
	})
}

func appendNew(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
