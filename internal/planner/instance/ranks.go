package instance

import "github.com/nodeautoprovision/nap/internal/planner/topology"

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
