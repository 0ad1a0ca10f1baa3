package fleet

import "github.com/nodeautoprovision/nap/internal/model"

// selectorIndex answers quickly whether any of many terms selects a pod: most
// terms ask for one value of one label, and only those that ask for a label of
// the pod are looked at.
type selectorIndex struct {
	byLabel map[labelValue][]*model.AffinityTerm
	others  []*model.AffinityTerm
	keys    map[string]bool
}

type labelValue struct{ key, value string }

func newSelectorIndex() selectorIndex {
	return selectorIndex{byLabel: map[labelValue][]*model.AffinityTerm{}, keys: map[string]bool{}}
}

func (x *selectorIndex) add(t *model.AffinityTerm) {
	if t.Selector == nil {
		return
	}
	for _, r := range t.Selector.Requirements {
		x.keys[r.Key] = true
	}
	for _, r := range t.Selector.Requirements {
		if r.Operator == model.In {
			for _, v := range r.Values {
				x.byLabel[labelValue{r.Key, v}] = append(x.byLabel[labelValue{r.Key, v}], t)
			}
			return
		}
	}
	x.others = append(x.others, t)
}

func (x *selectorIndex) selects(namespace string, labels map[string]string) bool {
	for k, v := range labels {
		for _, t := range x.byLabel[labelValue{k, v}] {
			if t.Selects(namespace, labels) {
				return true
			}
		}
	}
	for _, t := range x.others {
		if t.Selects(namespace, labels) {
			return true
		}
	}
	return false
}
