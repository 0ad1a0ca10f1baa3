package offers

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// Alternatives finds for each new node everything that could be bought instead. It
// remembers what many nodes have in common and serves one goroutine; the states that it
// is asked about may be any of the instance's.
type Alternatives struct {
	in *instance.Instance
	// pools index what a pool can buy, by the pool's index, once asked for.
	pools map[int]*poolIndex
	// mentions are, by class, the keys that its own rules mention; asked says for
	// which classes they are known.
	mentions [][]int
	asked    []bool
	// daemons are the requests of each set of DaemonSets, by its number in the space.
	daemons []model.Resources
}

// New indexes nothing yet.
func New(in *instance.Instance) *Alternatives {
	a := &Alternatives{in: in, pools: map[int]*poolIndex{}, mentions: make([][]int, len(in.Classes)), asked: make([]bool, len(in.Classes))}
	axes := in.Space.Dims.Axes
	for i := range in.Space.DaemonSets {
		a.daemons = append(a.daemons, slices.Clone(in.Space.DaemonSets[i].Requests[:axes]))
	}
	return a
}

// poolOf indexes the pool of an option.
func (a *Alternatives) poolOf(option int) *poolIndex {
	pool := a.in.Space.PoolOf(option)
	p, ok := a.pools[pool.Index]
	if !ok {
		p = newPoolIndex(a.in, pool)
		a.pools[pool.Index] = p
	}
	return p
}

// RightSize plans every new node of a state as the cheapest option that holds its
// pods, that the ledger affords and that leaves the same choice, so that other pods can
// use what larger ones held back. It reports whether any node changed.
//
// Postcondition: no node costs more than before, each holds the same pods, and the ledger
// has booked the options of all of them.
func (a *Alternatives) RightSize(s *placement.State) bool {
	changed := false
	options := a.in.Space.Options
	for _, pl := range s.NewNodes {
		p := a.poolOf(pl.Option)
		fits := p.fitting(s, pl, s.Used(pl))
		for _, o := range p.order { // cheapest first, so the first that will do is the best
			if options[o].Price >= options[pl.Option].Price {
				break
			}
			if p.has(fits, o) && s.Affords(pl.Option, o) && s.SameChoice(pl, o) {
				s.Exchange(pl, o)
				changed = true
				break
			}
		}
	}
	return changed
}

// NewNode describes a new node: the offerings that hold its pods, the cheapest that
// can be bought first, and the labels that it must have. It plans the node as the
// first of them.
//
// Preconditions: the node is bought, so the ledger has booked its option, and it holds its
// pods as that option. Postcondition: there is at least one offering, the first is in the
// ledger instead, and the node is no dearer.
func (a *Alternatives) NewNode(s *placement.State, pl *placement.Place) model.NewNode {
	used, p := s.Used(pl), a.poolOf(pl.Option)
	fits := p.fitting(s, pl, used)
	s.Ledger.Take(pl.Option, -1) // what the node itself takes is there for its alternatives
	c := p.choose(p.affordable(s.Ledger, fits), -1)
	pl.Option = c.options[0]
	s.Ledger.Take(pl.Option, 1)
	if !p.enough(c.options) { // then minValues counts what cannot be afforded now as well
		c = p.choose(fits, pl.Option)
	}
	axes := a.in.Space.Dims.Axes
	return model.NewNode{
		Pool:         int(a.in.Space.Options[pl.Option].Pool),
		Offerings:    c.refs,
		Requirements: a.requirements(s, pl, c),
		Requests:     model.Resources(used[:axes:axes]),
		Daemons:      a.daemons[a.in.Space.Options[pl.Option].Daemons],
	}
}

// requirements narrows the pool's: for every label that the instance type does not
// settle and that the pods' rules or topology depend on, the values that the
// offerings have. Other labels stay open, since each requirement takes away some choice
// from the cloud. Choices that are equal share the result: do not change it.
func (a *Alternatives) requirements(st *placement.State, pl *placement.Place, c *choice) model.Requirements {
	s := a.in.Space
	needed := bitset.New(len(s.Labels.Keys()))
	add := func(keys []int) {
		for _, k := range keys {
			if s.Labels.Varies(k) {
				needed.Add(k)
			}
		}
	}
	add(st.Domains.Settled(pl))
	for _, pc := range pl.Pods {
		add(a.mentioned(pc.Class))
		if pl.Open { // not in the domains that are left out
			add(st.Domains.Keys(pc.Class, pc.Level))
		}
	}
	if !needed.Any() {
		return nil
	}
	id := make([]byte, 0, 8) // the needed keys, two bytes each
	for k := range needed.All {
		id = append(id, byte(k), byte(k>>8))
	}
	if known, ok := c.requirements[string(id)]; ok {
		return known
	}
	var out model.Requirements
	for k := range needed.All {
		if values := a.values(k, c.options); len(values) > 0 {
			out = append(out, model.Requirement{Key: s.Labels.Keys()[k], Operator: model.In, Values: values})
		}
	}
	c.requirements[string(id)] = out
	return out
}

// values lists the values of a label that the options have, sorted, and none if one
// of them lacks the label: a requirement would exclude it.
func (a *Alternatives) values(key int, options []int) []string {
	s := a.in.Space
	seen := make([]bool, s.Labels.Values(key))
	var values []string
	for _, o := range options {
		v := s.Labels.OptionValue(key, o)
		if v < 0 {
			return nil
		}
		if seen[v] {
			continue
		}
		seen[v] = true
		if name, ok := s.Labels.ValueName(key, v); ok {
			values = append(values, name)
		}
	}
	slices.Sort(values)
	return values
}

// mentioned lists the keys that a class's own rules on nodes mention, by their index in
// the space. Keys may come twice; what topology reads is not among them.
func (a *Alternatives) mentioned(class int) []int {
	if a.asked[class] {
		return a.mentions[class]
	}
	var keys []int
	mention := func(rs model.Requirements) {
		for i := range rs {
			keys = append(keys, a.in.Space.Labels.KeyIndex(rs[i].Key))
		}
	}
	spec := a.in.Classes[class].Spec
	mention(spec.NodeRequirements)
	mention(spec.Devices)
	for _, alternatives := range [][]model.Requirements{spec.NodeAlternatives, spec.VolumeAlternatives} {
		for _, rs := range alternatives {
			mention(rs)
		}
	}
	for i := range spec.NodePreferences {
		mention(spec.NodePreferences[i].Requirements)
	}
	a.asked[class], a.mentions[class] = true, keys
	return keys
}
