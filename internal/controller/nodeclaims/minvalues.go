package nodeclaims

import (
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// distinct is how many values of a label offerings have.
func distinct(catalog *model.Catalog, offerings []model.OfferingRef, key string) int {
	seen := map[string]bool{}
	for _, ref := range offerings {
		if v, known := labelOf(catalog, ref, key); known {
			seen[v] = true
		}
	}
	return len(seen)
}

// labelOf is the value of a label on the node of an offering, where the offering
// decides it.
func labelOf(catalog *model.Catalog, ref model.OfferingRef, key string) (value string, known bool) {
	t := &catalog.InstanceTypes[ref.InstanceType]
	o := &t.Offerings[ref.Offering]
	switch key {
	case model.LabelInstanceType:
		return t.Name, true
	case model.LabelZone:
		return o.Zone, true
	case model.LabelCapacityType:
		return string(o.CapacityType), true
	}
	if v, own := o.Labels[key]; own {
		return v, true
	}
	value, known = t.Labels[key]
	return value, known
}

// relaxMinValues lowers the minValues of requirements to what the offerings have, and
// reports whether that was needed.
func relaxMinValues(reqs []karpv1.NodeSelectorRequirementWithMinValues, catalog *model.Catalog, offerings []model.OfferingRef) bool {
	relaxed := false
	for i := range reqs {
		r := &reqs[i]
		if r.MinValues == nil {
			continue
		}
		if n := distinct(catalog, offerings, r.Key); n > 0 && n < *r.MinValues {
			r.MinValues, relaxed = &n, true
		}
	}
	return relaxed
}
