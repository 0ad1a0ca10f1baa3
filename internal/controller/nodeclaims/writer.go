package nodeclaims

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Writer writes the new nodes of one plan as NodeClaims. Each node is written at
// most once, since its alternatives use up limit headroom. One goroutine uses it.
type Writer struct {
	problem *model.Problem
	// pools are the NodePools as the API server has them, by name.
	pools    map[string]*karpv1.NodePool
	headroom *limitHeadroom
}

// NewWriter returns a writer for these nodes of a plan; pools are the NodePools of
// the problem, by name.
func NewWriter(p *model.Problem, nodes []model.NewNode, pools map[string]*karpv1.NodePool) *Writer {
	return &Writer{problem: p, pools: pools, headroom: newLimitHeadroom(p, nodes)}
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
	offerings := w.headroom.take(node)
	claim := FromTemplate(pool, name)
	requirements := intersect(claim, node.Requirements)
	maps.Copy(claim.Labels, customLabels(requirements, mayLack(claim, node.Requirements)))
	catalog := &w.problem.Catalogs[w.problem.Pools[node.Pool].Catalog]
	claim.Spec.Requirements = withOfferings(requirements, *catalog, offerings)
	if w.problem.Policy.RelaxMinValues && relaxMinValues(claim.Spec.Requirements, catalog, offerings) {
		claim.Annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] = "true"
	}
	noteOverlays(claim.Annotations, catalog, offerings)
	claim.Spec.Resources = karpv1.ResourceRequirements{Requests: w.registered(node.Requests.Add(node.Daemons))}
	if drivers := deviceDrivers(node, w.problem.Axes); drivers != "" {
		claim.Annotations[karpv1.DRADriversAnnotationKey] = drivers
	}
	claim.Annotations[v1beta1.AnnotationWhy] = explain(w.problem, node, offerings)
	best := catalog.InstanceTypes[offerings[0].InstanceType].Offerings[offerings[0].Offering]
	claim.Annotations[v1beta1.AnnotationPlannedPrice] = strconv.FormatFloat(best.Price.Dollars(), 'f', -1, 64)
	dearest := dearestCover(&catalog.InstanceTypes[offerings[0].InstanceType], &best)
	most := best.Price + w.headroom.spend(node, dearest-best.Price+dearest/replannedAt)
	claim.Annotations[v1beta1.AnnotationMostPrice] = strconv.FormatFloat(most.Dollars(), 'f', -1, 64)
	return claim, offerings
}

// dearestCover is the highest price of an offering of a plan. What is paid in advance by several
// lines has several prices, and which of several machines gets which shows only when they are bought.
func dearestCover(t *model.InstanceType, best *model.Offering) model.Money {
	dearest := best.Price
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if best.Uncovered != 0 && o.Uncovered != 0 && o.Zone == best.Zone && o.CapacityType == best.CapacityType {
			dearest = max(dearest, o.Price)
		}
	}
	return dearest
}

// noteOverlays annotates a NodeClaim as Karpenter does where NodeOverlays decide a price or the
// size of something that it may become.
func noteOverlays(annotations map[string]string, catalog *model.Catalog, offerings []model.OfferingRef) {
	for _, ref := range offerings {
		t := &catalog.InstanceTypes[ref.InstanceType]
		if t.Offerings[ref.Offering].PriceOverlaid {
			annotations[v1alpha1.PriceOverlayAppliedAnnotationKey] = "true"
		}
		if t.CapacityOverlaid {
			annotations[v1alpha1.CapacityOverlayAppliedAnnotationKey] = "true"
		}
	}
}

// registered are requests as a NodeClaim has them. Karpenter holds its node uninitialized
// until the kubelet reports all of these, which it never does of what a driver brings.
func (w *Writer) registered(requests model.Resources) corev1.ResourceList {
	list := kube.ResourceList(requests, w.problem.Axes)
	for _, name := range w.problem.ByDriver {
		delete(list, corev1.ResourceName(name))
	}
	return list
}

// deviceDrivers are the drivers of the devices that a planned node's pods ask for by resource
// claims, sorted and separated by commas. Karpenter holds the node uninitialized until they
// list its devices.
func deviceDrivers(node *model.NewNode, axes model.Axes) string {
	var drivers []string
	for i, axis := range axes {
		if driver := model.DeviceDriver(axis); driver != "" && node.Requests.Get(i) > 0 {
			drivers = append(drivers, driver)
		}
	}
	slices.Sort(drivers)
	return strings.Join(slices.Compact(drivers), ",")
}

// replannedAt is the part of its planned price by which a machine may cost more: beyond 5
// percent another plan may be the better one.
const replannedAt = 20

// FromTemplate writes a NodeClaim that is what its pool's template says and no
// more.
func FromTemplate(pool *karpv1.NodePool, name string) *karpv1.NodeClaim {
	template := pool.Spec.Template.DeepCopy()
	claim := template.ToNodeClaim()
	claim.Name = name
	// Karpenter's lifecycle controller would add it before it launches the machine: another
	// write, after which it waits for its turn again.
	claim.Finalizers = []string{karpv1.TerminationFinalizer}
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
