package instance

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Instance is a compiled problem. [New] completes it and nothing changes it
// afterwards, so that any number of goroutines may read one.
type Instance struct {
	// Space numbers the problem's options, labels and limits.
	Space *feasible.Space
	// Classes are those of the problem, by the same index, invalid ones included.
	Classes []Class
	// Sets numbers the sets of options that levels name by number ([Level.Static]).
	Sets *bitset.Interned
	// MinValues are the pools' minValues and the labels that the buyer chooses.
	MinValues *MinValues
	// Menu are the options worth buying while nothing but reservations is scarce;
	// see [Instance.Undominated].
	Menu bitset.Set
	// Topology has the rules of the classes' levels and counts pods for them.
	Topology *topology.Topology
	// followers are what [Instance.Followers] makes its lists of.
	followers map[int][]int
}

// New compiles the problem of a space.
func New(s *feasible.Space) *Instance {
	in := &Instance{Space: s, Sets: &bitset.Interned{}}
	in.Classes, in.Topology = compileClasses(s, in.Sets)
	in.MinValues = newMinValues(s, in.Sets, in.Classes)
	markBound(in.Classes)
	markColocated(in.Topology, in.Classes)
	in.followers = followers(in.Classes)
	markDepth(in.Topology, in.Classes)
	in.Menu = in.Undominated(nil)
	return in
}

// Policy is the problem's.
func (in *Instance) Policy() *model.Policy { return &in.Space.Problem.Policy }

// LastLevel is a valid class's level with all preferences given up.
func (in *Instance) LastLevel(class int) *Level {
	levels := in.Classes[class].Levels
	return &levels[len(levels)-1]
}

// HardRules are the topology rules of a valid class with all preferences given up.
func (in *Instance) HardRules(class int) *topology.Rules {
	return in.LastLevel(class).Rules
}

// Hopeless reports whether there is a valid class of which no single pod can be bought a
// machine, whatever else is planned.
func (in *Instance) Hopeless() bool {
	return slices.ContainsFunc(in.Classes, func(c Class) bool {
		return c.Invalid == "" && !c.Levels[len(c.Levels)-1].Options.Any()
	})
}

// Attracts reports whether hard affinity of a class selects pods of another one.
func (in *Instance) Attracts(other, class int) bool {
	return slices.ContainsFunc(in.HardRules(class).Affinity, func(a topology.Affinity) bool {
		return slices.Contains(in.Topology.Adds(other), int32(a.Counter))
	})
}

// PodCounts is how many pods each class has, 0 for invalid ones.
func (in *Instance) PodCounts() []int {
	out := make([]int, len(in.Classes))
	for i := range in.Classes {
		if in.Classes[i].Invalid == "" {
			out[i] = len(in.Classes[i].Spec.Pods)
		}
	}
	return out
}

// TotalRequests is what all pods of all classes take, by dimension.
func (in *Instance) TotalRequests() []float64 {
	sum := make([]float64, in.Space.Dims.Count)
	for i, n := range in.PodCounts() {
		for d, v := range in.Classes[i].Own {
			sum[d] += float64(v) * float64(n)
		}
	}
	return sum
}

// UsedDims are the dimensions in which some valid pod takes something, ascending.
func (in *Instance) UsedDims() []int {
	used := make([]bool, in.Space.Dims.Count)
	for i := range in.Classes {
		if in.Classes[i].Invalid != "" {
			continue
		}
		for d, v := range in.Classes[i].Own {
			used[d] = used[d] || v > 0
		}
		for _, v := range in.Classes[i].Shared {
			used[in.Space.Dims.OfDriver(v.Driver)] = true
		}
	}
	var dims []int
	for d, u := range used {
		if u {
			dims = append(dims, d)
		}
	}
	return dims
}

// PoolOptions are all options of an option's pool. The caller owns the set.
func (in *Instance) PoolOptions(option int) bitset.Set {
	pool := in.Space.PoolOf(option)
	set := bitset.New(len(in.Space.Options))
	set.AddRange(pool.First, pool.End)
	return set
}
