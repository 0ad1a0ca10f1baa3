package planner

import (
	"slices"
	"sync"

	"github.com/nodeautoprovision/nap/internal/model"
)

// offeringLists keeps each list of offerings once. Parts that are alike buy machines that may be of
// the same thousands of offerings: of 2,000 parts, these lists were two thirds of the memory. Any
// number of goroutines may use one. The zero value has no lists.
type offeringLists struct {
	mu sync.Mutex
	// known are the lists so far, by hash.
	known map[uint64][][]model.OfferingRef
}

// share replaces the lists of a plan's new nodes by equal ones of other plans. Lists must not
// change afterwards.
func (l *offeringLists) share(plan *model.Plan) {
	for i := range plan.NewNodes {
		node := &plan.NewNodes[i]
		node.Offerings = l.one(node.Offerings)
	}
}

// one is the list that is kept of those equal to it.
func (l *offeringLists) one(list []model.OfferingRef) []model.OfferingRef {
	const prime = 1_099_511_628_211 // of FNV-1a, 64 bits
	hash := uint64(14_695_981_039_346_656_037)
	for i := range list {
		for _, v := range [...]uint64{uint64(list[i].InstanceType), uint64(list[i].Offering), uint64(list[i].Price)} {
			hash = (hash ^ v) * prime
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, known := range l.known[hash] {
		if slices.Equal(known, list) {
			return known
		}
	}
	if l.known == nil {
		l.known = map[uint64][][]model.OfferingRef{}
	}
	l.known[hash] = append(l.known[hash], list)
	return list
}
