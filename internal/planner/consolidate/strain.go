package consolidate

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// strained says of what was done since the mark that it moves pods to where a
// spread constraint would refuse them, or is nil. The scheduler counts a zone as
// soon as there is a node in it, whoever that was bought for: a first machine in a
// zone that a pod cannot use makes the pod's other zones too full.
func (m *maker) strained(start int, nodes []int32) *model.KeptNode {
	var bought feasible.Set
	for i := len(m.nodes); i < len(m.bins); i++ {
		if !m.bins[i].shut {
			if bought == nil {
				bought = feasible.NewSet(len(m.space.Options))
			}
			bought.Add(m.menu[m.bins[i].ware].option)
		}
	}
	if bought == nil {
		return nil
	}
	for at := start; at < len(m.log); at++ {
		c := &m.log[at]
		if c.kind != didPut || m.kinds[c.class].plain {
			continue
		}
		rules := m.kinds[c.class].levels[c.level].Rules
		for k := range rules.Spread {
			s := &rules.Spread[k]
			for _, other := range m.counts.Eligible.Outside(s, bought) {
				if m.counts.Excess(s, m.place(c.bin), other) > 0 {
					return stay(int(nodes[0]), model.ReasonSpread, "Giving back %s buys the first machine in a domain of %s that pods of %s cannot use, and their spread would then refuse all places that are left.",
						m.names(nodes), m.ground.Topology.KeyName(s.Key), m.owner(c.class))
				}
			}
		}
	}
	return nil
}
