package instance

import (
	"encoding/binary"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
	"github.com/nodeautoprovision/nap/internal/planner/validate"
)

// Class is a class of pods prepared for placing. A class that is not valid has only
// its index, its specification and what is wrong with it.
type Class struct {
	// Index is that of the class in the problem and in [Instance.Classes].
	Index int
	Spec  *model.PodClass
	// Own is what every pod takes of each dimension of the space. Shared are the
	// disks that all pods of the class use together; they take a slot once per node
	// and are not part of Own.
	Own    []int64
	Shared []model.Volume
	// Levels are the states of the preferences, from all honoured to none: at least
	// one. A pod is placed at the first level at which it finds a place.
	Levels []Level
	// Invalid says what is wrong with the class. It is empty when nothing is.
	Invalid string
	// Priority is the class's own or the highest of the classes that wait for it.
	Priority int32
	// Depth is how many affinity terms, one after the other, have to be served before
	// the class can be placed.
	Depth int
	// Bound is 2 for a class with topology rules on hosts, 1 for one with rules on
	// labels alone, else 0.
	Bound int
	// Buyable reports whether an option can be bought for a pod of the class.
	Buyable bool
	// Colocated marks a class with affinity on hosts, and one that such a term selects.
	Colocated bool
}

// Level is one state of a class's preferences. Its sets belong to the instance.
type Level struct {
	// Options can be bought for one pod right now. Classes with equal options at
	// their last levels share one set.
	Options bitset.Set
	// Static numbers the interned set of options that labels, taints and ports
	// allow, whatever the size of the pod and whatever is available.
	Static int
	// Nodes are the existing nodes that labels and taints allow, whatever their room.
	Nodes bitset.Set
	// Rules are the topology rules that hold.
	Rules *topology.Rules
	// GivenUp names the preference that was given up to get here from the level before.
	GivenUp string
}

// compileClasses prepares all classes of the space's problem, but for their ranks
// (see markBound, markColocated and markDepth), and numbers the sets of their levels.
func compileClasses(s *feasible.Space, sets *bitset.Interned) ([]Class, *topology.Topology) {
	p := s.Problem
	classes, terms := make([]Class, len(p.Classes)), make([][]topology.Level, len(p.Classes))
	k := compiler{space: s, sets: sets, soft: hasSoftTaints(p), hard: map[string]Level{}, holding: map[string]bitset.Set{}}
	// Most classes have one level.
	levels, ofLevels := make([]Level, len(classes)), make([]topology.Level, len(classes))
	for i := range p.Classes {
		c := &classes[i]
		c.Index, c.Spec = i, &p.Classes[i]
		c.Levels, terms[i] = levels[i:i:i+1], ofLevels[i:i:i+1]
		c.Priority = c.Spec.Priority
		if err := validate.Class(c.Spec, p.Axes); err != nil {
			c.Invalid = err.Error()
			continue
		}
		pod := s.Pod(c.Spec)
		c.Own = pod.Size
		for _, v := range c.Spec.Volumes {
			if d := s.Dims.OfDriver(v.Driver); v.ID != "" && d >= 0 && !slices.Contains(c.Shared, v) {
				if len(c.Shared) == 0 {
					c.Own = slices.Clone(pod.Size)
				}
				c.Shared = append(c.Shared, v)
				c.Own[d]--
			}
		}
		terms[i] = k.addLevels(c, pod, terms[i])
	}
	compiled := topology.Compile(s, terms)
	for i := range classes {
		for l := range classes[i].Levels {
			classes[i].Levels[l].Rules = compiled.Rules(i, l)
		}
	}
	return classes, compiled
}

// compiler prepares classes, and remembers what many of them have in common.
type compiler struct {
	space *feasible.Space
	// sets numbers the sets of options of all levels.
	sets *bitset.Interned
	// soft reports whether a pool or node has a PreferNoSchedule taint.
	soft bool
	// hard are levels without preferences and sizes, by the key of the constraints
	// on the class.
	hard map[string]Level
	// holding are the options that hold a pod, by its static set and the key of the
	// constraints on its size.
	holding map[string]bitset.Set
	// zoned are the options whose machines are in a zone, nil before a class asks.
	zoned bitset.Set
	// key is storage for the keys of both.
	key []byte
}

// hardLevel is the level of a class with all preferences given up, whatever its
// size: its options are not set yet. Classes whose constraints depend on equal
// things share it.
func (k *compiler) hardLevel(pod *feasible.Pod) Level {
	s := k.space
	k.key = s.AppendKey(k.key[:0], feasible.ForClass, pod)
	base, known := k.hard[string(k.key)]
	if !known {
		base = Level{Static: k.sets.Intern(s.Allowed(feasible.ForClass, pod)), Nodes: s.AllowedNodes(pod)}
		k.hard[string(k.key)] = base
	}
	return base
}

// options can be bought for one pod, whose static set is given. Classes with the
// same options share one set, so that caches may compare addresses.
func (k *compiler) options(pod *feasible.Pod, static int) bitset.Set {
	s := k.space
	k.key = binary.AppendVarint(k.key[:0], int64(static))
	k.key = s.AppendKey(k.key, feasible.ForSize, pod)
	set, known := k.holding[string(k.key)]
	if !known {
		set = s.Allowed(feasible.ForSize, pod)
		set.And(s.Supply.Available)
		set.And(k.sets.Set(static))
		set = k.sets.Set(k.sets.Intern(set))
		k.holding[string(k.key)] = set
	}
	return set
}

func hasSoftTaints(p *model.Problem) bool {
	soft := func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule }
	for i := range p.Pools {
		if slices.ContainsFunc(p.Pools[i].Taints, soft) {
			return true
		}
	}
	for i := range p.Nodes {
		if slices.ContainsFunc(p.Nodes[i].Taints, soft) {
			return true
		}
	}
	return false
}

// Size is what one pod takes on a node that has none of its shared disks. The caller
// does not change it.
func (c *Class) Size(s *feasible.Space) []int64 {
	if len(c.Shared) == 0 {
		return c.Own
	}
	size := slices.Clone(c.Own)
	for _, v := range c.Shared {
		size[s.Dims.OfDriver(v.Driver)]++
	}
	return size
}
