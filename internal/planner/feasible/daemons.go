package feasible

import (
	"encoding/binary"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// addDaemons works out which DaemonSet pods run on each option, and with that
// what every option leaves for pods, and groups neighbours that leave the same.
func (s *Space) addDaemons() {
	for i := range s.Pools {
		s.addPoolDaemons(&s.Pools[i])
	}
	for i := range s.Options {
		if n := len(s.Runs); n > 0 && i > 0 && s.Options[i].Pool == s.Options[i-1].Pool && slices.Equal(s.Runs[n-1].Net, s.Options[i].Net) {
			s.Runs[n-1].End = i + 1
			s.Options[i].Net = s.Runs[n-1].Net
		} else {
			s.Runs = append(s.Runs, Run{First: i, End: i + 1, Net: s.Options[i].Net})
		}
		s.Options[i].Run = len(s.Runs) - 1
	}
}

// netsAtOnce is for how many kinds of machines storage is made at a time.
const netsAtOnce = 64

func (s *Space) addPoolDaemons(pool *Pool) {
	src := &s.Problem.Pools[pool.Index]
	var here []int
	var where []Set
	for d := range src.Daemons {
		if model.Untolerated(src.Taints, src.Daemons[d].Tolerations) == nil {
			here = append(here, d)
			where = append(where, s.anyOf(src.Daemons[d].Requirements))
		}
	}
	sets := map[string]int{}
	var cells []int64 // storage for what pods can use, yet to be laid out
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
			set = s.newDaemonSet(src, here, where, i)
			sets[string(key)] = set
		}
		o := &s.Options[i]
		o.Daemons = set
		if i > pool.First && s.Options[i-1].Type == o.Type && s.Options[i-1].Daemons == set {
			o.Net = s.Options[i-1].Net
			continue
		}
		if len(cells) == 0 {
			cells = make([]int64, netsAtOnce*s.Dims)
		}
		net := cells[:s.Dims:s.Dims]
		cells = cells[s.Dims:]
		for d := range net {
			net[d] = o.Net[d] - s.DaemonSets[set].Requests[d]
		}
		o.Net = net
	}
}

func (s *Space) newDaemonSet(pool *model.Pool, here []int, where []Set, option int) int {
	var sum model.Resources
	var ports []model.HostPort
	for j, d := range here {
		if where[j] != nil && !where[j].Has(option) {
			continue
		}
		sum = sum.Add(withPodSlot(pool.Daemons[d].Requests))
		ports = append(ports, pool.Daemons[d].HostPorts...)
	}
	set := DaemonSet{Requests: s.Vector(sum, nil), Ports: ports}
	for i, v := range set.Requests {
		set.Requests[i] = min(v, Unlimited)
	}
	s.DaemonSets = append(s.DaemonSets, set)
	return len(s.DaemonSets) - 1
}

// withPodSlot returns requests that take at least one pod slot.
func withPodSlot(r model.Resources) model.Resources {
	if r.Get(model.Pods) > 0 {
		return r
	}
	return r.Add(model.Resources{model.Pods: 1})
}

// Size is what one pod of a class takes, along the space's dimensions.
func (s *Space) Size(c *model.PodClass) []int64 {
	if len(c.Volumes) == 0 {
		size := s.Vector(c.Requests, nil)
		if size[model.Pods] <= 0 {
			size[model.Pods]++
		}
		return size
	}
	disks := map[string]int{}
	seen := map[model.Volume]bool{}
	for _, v := range c.Volumes {
		if v.ID != "" && seen[v] {
			continue
		}
		seen[v] = true
		disks[v.Driver]++
	}
	return s.Vector(withPodSlot(c.Requests), disks)
}
