package consolidate

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// spreadBlock says of what was done since the mark that it moves pods to where a
// spread constraint would refuse them, or is nil. The scheduler counts a zone as soon
// as there is a node in it, whichever pods that was bought for: a first node in a zone
// that a pod cannot use makes the pod's other zones too full.
func spreadBlock(st *state.State, start int, nodes []int32) *model.KeptNode {
	bought := boughtOptions(st)
	if bought == nil {
		return nil
	}
	for _, c := range st.Since(start) {
		if c.Kind != state.Put || st.Problem.Classes[c.Class].Plain {
			continue
		}
		rules := st.Problem.Classes[c.Class].Levels[c.Level].Rules
		for k := range rules.Spread {
			s := &rules.Spread[k]
			for _, other := range st.Counts.Eligible.Outside(s, bought) {
				if st.Counts.Excess(s, st.Bins.Place(c.Bin), other) > 0 {
					return compiled.Keep(int(nodes[0]), model.ReasonSpread, "Giving back %s buys the first machine in a domain of %s "+
						"that pods of %s cannot use, and their spread would then refuse all places that are left.",
						st.Problem.NodeNames(nodes), st.Problem.Prepared.Topology.KeyName(s.Key), st.Problem.Owner(c.Class))
				}
			}
		}
	}
	return nil
}

// boughtOptions are the options (of Space) of all new nodes, nil when there are none.
func boughtOptions(st *state.State) bitset.Set {
	var bought bitset.Set
	for i := int32(len(st.Problem.Nodes)); int(i) < st.Bins.Len(); i++ {
		if !st.Bins.At(i).Removed {
			if bought == nil {
				bought = bitset.New(len(st.Problem.Space.Options))
			}
			bought.Add(st.Bins.Option(i).Option)
		}
	}
	return bought
}
