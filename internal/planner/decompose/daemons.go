package decompose

import (
	"encoding/binary"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
	"github.com/nodeautoprovision/nap/internal/planner/validate"
)

// daemonsOf are by NodePool the DaemonSets that may run on its machines, and malformed ones, for
// which the NodePool is refused. A part is compiled with all DaemonSets of its NodePools: those of
// other teams would cost it as much as its own.
func daemonsOf(p *model.Problem) [][]model.Daemon {
	out := make([][]model.Daemon, len(p.Pools))
	for i := range p.Pools {
		out[i] = p.Pools[i].Daemons
	}
	if len(p.Pools) == 0 || len(p.Pools[0].Daemons) == 0 {
		return out
	}
	all := p.Pools[0].Daemons // the same list for all NodePools, as a rule
	members := membersOf(p, all)
	known := map[string][]model.Daemon{} // NodePools with the same DaemonSets share a list
	for i, own := range out {
		if len(own) != len(all) || &own[0] != &all[0] || len(members[i]) == len(all) {
			continue
		}
		var key []byte
		for _, d := range members[i] {
			key = binary.AppendUvarint(key, uint64(d))
		}
		if _, found := known[string(key)]; !found {
			known[string(key)] = chosen(all, members[i])
		}
		out[i] = known[string(key)]
	}
	return out
}

// membersOf are by NodePool those of the DaemonSets that are not surely kept from its machines, by
// index.
func membersOf(p *model.Problem, daemons []model.Daemon) [][]int {
	out := make([][]int, len(p.Pools))
	pools, cloud := newPoolsByLabel(p), noderules.NewCloudLabels(p)
	for d := range daemons {
		daemon := &daemons[d]
		wrong := validate.Daemon(daemon, p.Axes) != nil
		rules := noderules.OfDaemon(daemon)
		candidates := pools.all
		if !wrong {
			candidates = pools.candidates(&rules)
		}
		for _, i := range candidates {
			if n := len(out[i]); n > 0 && out[i][n-1] == d {
				continue // it has several of the values that are asked for
			}
			if wrong || rules.Admits(&p.Pools[i], cloud) {
				out[i] = append(out[i], d)
			}
		}
	}
	return out
}
