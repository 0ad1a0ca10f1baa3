package nodeclaims

import (
	"fmt"

	"github.com/nodeautoprovision/nap/internal/model"
)

// explain says in one sentence why a node was planned as it is, for the annotation
// v1beta1.AnnotationWhy. The first of the offerings is the one that the plan counts on.
func explain(p *model.Problem, node *model.NewNode, offerings []model.OfferingRef) string {
	pods := 0
	for _, c := range node.Pods {
		pods += len(c.Pods)
	}
	catalog := &p.Catalogs[p.Pools[node.Pool].Catalog]
	best := offerings[0]
	text := fmt.Sprintf("%s at %s for %s (%s)", OfferingName(catalog, best),
		best.Price, counted(pods, "pod"), withoutPods(node.Requests).Format(p.Axes))
	next := nextBest(catalog, offerings)
	if next == nil {
		return text + ": no other size would do"
	}
	return fmt.Sprintf("%s: the cheapest of %d ways; next %s at %s", text, len(offerings), OfferingName(catalog, *next), next.Price)
}

// counted is a number of things: "1 pod", "7 pods".
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// withoutPods leaves out the axis that counts pods, which the sentence names
// already.
func withoutPods(r model.Resources) model.Resources {
	return r.Sub(model.Resources{model.Pods: r.Get(model.Pods)})
}

// nextBest is the cheapest offering of another size, or of the same size paid
// for in another way; zones of one size are no choice worth telling.
func nextBest(catalog *model.Catalog, offerings []model.OfferingRef) *model.OfferingRef {
	best := offerings[0]
	how := func(r model.OfferingRef) model.CapacityType {
		return catalog.InstanceTypes[r.InstanceType].Offerings[r.Offering].CapacityType
	}
	for i := range offerings[1:] {
		if o := &offerings[1+i]; o.InstanceType != best.InstanceType || how(*o) != how(best) {
			return o
		}
	}
	return nil
}

// OfferingName names an offering as people read it: instance type, zone and capacity
// type.
func OfferingName(catalog *model.Catalog, ref model.OfferingRef) string {
	it := &catalog.InstanceTypes[ref.InstanceType]
	offering := &it.Offerings[ref.Offering]
	return fmt.Sprintf("%s %s %s", it.Name, model.ZoneName(offering.Zone), offering.CapacityType)
}
