package instance

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// markBound ranks classes by their topology rules (see [Class.Bound]). Classes with
// rules on hosts are placed first, since other pods may join theirs on a node later;
// then those with rules on labels.
func markBound(classes []Class) {
	for i := range classes {
		for l := range classes[i].Levels {
			switch r := classes[i].Levels[l].Rules; {
			case r.PerHost():
				classes[i].Bound = 2
			case r.Bound():
				classes[i].Bound = max(classes[i].Bound, 1)
			}
		}
	}
}

// markColocated finds the classes that affinity on hosts ties to others: those that
// have such a term and those that it selects.
func markColocated(t *topology.Topology, classes []Class) {
	tied := map[int]bool{}
	for i := range classes {
		for l := range classes[i].Levels {
			for _, a := range classes[i].Levels[l].Rules.Affinity {
				if a.Key == topology.Host {
					classes[i].Colocated = true
					tied[a.Counter] = true
				}
			}
		}
	}
	for i := range classes {
		for _, c := range t.Adds(i) {
			classes[i].Colocated = classes[i].Colocated || tied[int(c)]
		}
	}
}

// followers lists, by counter, the classes that at their first level have affinity on hosts
// to its pods, ascending.
func followers(classes []Class) map[int][]int {
	out := map[int][]int{}
	for i := range classes {
		if len(classes[i].Levels) == 0 {
			continue
		}
		for _, a := range classes[i].Levels[0].Rules.Affinity {
			if list := out[a.Counter]; a.Key == topology.Host && (len(list) == 0 || list[len(list)-1] != i) {
				out[a.Counter] = append(list, i)
			}
		}
	}
	return out
}

// Followers lists the classes that, while no preference is given up, have affinity on hosts
// to pods of a class, ascending. Callers do not change the list.
func (in *Instance) Followers(class int) []int {
	var out []int
	lists := 0
	for _, c := range in.Topology.Adds(class) {
		switch list := in.followers[int(c)]; {
		case len(list) == 0:
			continue
		case lists == 0:
			out = slices.Clip(list)
		default:
			out = append(out, list...)
		}
		lists++
	}
	if lists > 1 {
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}

// maxDepth bounds how far chains of affinity are followed. A circle has no end.
const maxDepth = 16

// markDepth ranks classes after those that their affinity selects, and lends the
// latter the priority of the classes that wait for them.
func markDepth(t *topology.Topology, classes []Class) {
	wanted := map[int][]int{} // counter -> classes that want to be near its pods
	for i := range classes {
		if len(classes[i].Levels) > 0 {
			for _, a := range classes[i].Levels[0].Rules.Affinity {
				wanted[a.Counter] = append(wanted[a.Counter], i)
			}
		}
	}
	if len(wanted) == 0 {
		return
	}
	for range maxDepth {
		changed := false
		for i := range classes {
			for _, c := range t.Adds(i) {
				for _, waiting := range wanted[int(c)] {
					if waiting == i {
						continue
					}
					if d := classes[i].Depth + 1; d > classes[waiting].Depth && d <= maxDepth {
						classes[waiting].Depth, changed = d, true
					}
					if p := classes[waiting].Priority; p > classes[i].Priority {
						classes[i].Priority, changed = p, true
					}
				}
			}
		}
		if !changed {
			return
		}
	}
}
