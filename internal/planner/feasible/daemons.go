package feasible

import (
	"encoding/binary"

	"github.com/nodeautoprovision/nap/internal/model"
)

// netsAtOnce is for how many kinds of machines storage is made at a time.
const netsAtOnce = 64

// addDaemons works out which DaemonSet pods run on each option of a pool, and with that
// what every option leaves for pods. Preconditions: Net is what the machine offers, and
// the labels can answer requirements.
func (k *compiler) addDaemons(pool *Pool) {
	src := &k.problem.Pools[pool.Index]
	// here are the daemons that the taints of the pool let in, by index in the pool, and
	// where[j] the options on which daemon here[j] runs, nil for all.
	var here []int
	var where []Set
	for d := range src.Daemons {
		if model.Untolerated(src.Taints, src.Daemons[d].Tolerations) == nil {
			here = append(here, d)
			where = append(where, k.labels.labels.anyOf(src.Daemons[d].Requirements))
		}
	}
	sets := map[string]int{} // numbers of the sets of daemons, by their members
	var cells []int64        // storage for what pods can use, yet to be laid out
	key := make([]byte, 0, 2*len(here))
	for i := pool.First; i < pool.End; i++ {
		key = key[:0]
		for j, d := range here {
			if where[j] == nil || where[j].Has(i) {
				key = binary.AppendUvarint(key, uint64(d))
			}
		}
		set, ok := sets[string(key)]
		if !ok {
			set = k.newDaemonSet(src, here, where, i)
			sets[string(key)] = set
		}
		o := &k.options[i]
		o.Daemons = set
		if i > pool.First && k.options[i-1].Type == o.Type && k.options[i-1].Daemons == set {
			o.Net = k.options[i-1].Net
			continue
		}
		if len(cells) == 0 {
			cells = make([]int64, netsAtOnce*k.dims.Count)
		}
		net := cells[:k.dims.Count:k.dims.Count]
		cells = cells[k.dims.Count:]
		for d := range net {
			net[d] = o.Net[d] - k.daemonSets[set].Requests[d]
		}
		o.Net = net
	}
}

// newDaemonSet adds up those daemons of a pool that run on an option, and returns the
// number of their set. See addDaemons for here and where. Sums are capped at Unlimited, so
// that what is left stays in range.
func (k *compiler) newDaemonSet(pool *model.Pool, here []int, where []Set, option int) int {
	var sum model.Resources
	var ports []model.HostPort
	for j, d := range here {
		if where[j] != nil && !where[j].Has(option) {
			continue
		}
		sum = sum.Add(withPodSlot(pool.Daemons[d].Requests))
		ports = append(ports, pool.Daemons[d].HostPorts...)
	}
	set := DaemonSet{Requests: k.dims.Vector(sum, nil), Ports: ports}
	for i, v := range set.Requests {
		set.Requests[i] = min(v, Unlimited)
	}
	k.daemonSets = append(k.daemonSets, set)
	return len(k.daemonSets) - 1
}
