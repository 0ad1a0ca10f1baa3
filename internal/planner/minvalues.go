package planner

import (
	"encoding/binary"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// asVaried reports whether a machine keeps the same choice, for pools with
// minValues, when another option is planned for it.
func (b *builder) asVaried(pl *Place, option int) bool {
	return len(b.inst.MinValues.Of(b.space.Options[option].Pool)) == 0 ||
		slices.Equal(b.inst.MinValues.Fixed(pl.Options, pl.Pods, pl.Option), b.inst.MinValues.Fixed(pl.Options, pl.Pods, option))
}

// variedFull caches [MinValues.Filled].
func (b *builder) variedFull(static int) feasible.Set {
	set, ok := b.brim[static]
	if !ok {
		set = b.inst.MinValues.Filled(static)
		b.brim[static] = set
	}
	return set
}

// loner answers whether single pods of a class have enough choice.
type loner struct {
	b     *builder
	class int
	// known are the answers so far, by pool and by what topology and alternatives
	// tell apart.
	known map[string]*instance.Shortage
}

// scant is the first label of which a machine of the option with just one pod of
// the class, which is this load, keeps fewer values than its pool asks for, or nil.
func (a *loner) scant(class, option int, load []int64) *instance.Shortage {
	b := a.b
	index := b.space.Options[option].Pool
	if len(b.inst.MinValues.Of(index)) == 0 {
		return nil
	}
	if a.known == nil || a.class != class {
		a.class, a.known = class, map[string]*instance.Shortage{}
	}
	c := &b.classes[class]
	last := len(c.Levels) - 1
	alone := &Place{Place: topology.Place{ID: -1, Node: -1, Option: option}, Options: feasible.NewSet(len(b.space.Options))}
	alone.Pods = []instance.PodCount{{Class: class, Level: last, Count: 1}}
	id := string(binary.AppendUvarint(b.domains(class, onNew, b.settled(alone), alone.Place), uint64(index)))
	known, ok := a.known[id]
	if ok && len(c.Spec.NodeAlternatives) < 2 && len(c.Spec.VolumeAlternatives) < 2 {
		return known
	}
	pool := b.space.PoolOf(option)
	alone.Options.AddRange(pool.First, pool.End)
	a.known[id] = b.inst.MinValues.Short(index, b.sharedOptions(c, last, alone), load)
	return a.known[id]
}
