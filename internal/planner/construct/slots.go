package construct

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// slot is a source of room for a class: all existing nodes, all new nodes or all
// options that share the class's topology domains.
type slot struct {
	kind slotKind
	// rep is one of the places, to ask topology about.
	rep topology.Place
	// queue are the places, the best first; it is empty for options.
	queue queue
	// options are those on which a node may be opened, and cost is what a pod costs on
	// the best of them. They are valid for options alone.
	options bitset.Set
	cost    float64
	// open says that nodes of the options need not be in one domain.
	open bool
	// dead slots have no room for a pod any more.
	dead bool
}

type slotKind int

// The kinds of slots, in the order of preference.
const (
	onNodes slotKind = iota
	onNewNodes
	onOptions
)

// nodesOnly, in place of a tier of pools, leaves new nodes out.
const nodesOnly = -1

// slotFinder lists the slots of a class in the order in which they are tried.
type slotFinder struct {
	state  *placement.State
	index  *OptionIndex
	params *Params
	// collecting says that the bin packer chooses new nodes.
	collecting bool
}

// held groups the existing and new nodes that can take a pod of the class by their
// topology domains: initialized nodes first, then best fit. Of new nodes only those of
// NodePools of at least the tier's weight count: before a pod goes to one of a lighter
// NodePool, options of the heavier one are tried.
func (f slotFinder) held(c *instance.Class, l int, keys []int, tier int) []slot {
	s := f.state
	if len(s.Nodes)+len(s.NewNodes) == 0 {
		return nil
	}
	f.index.work.Spend(listSteps + int64(len(s.Nodes)+len(s.NewNodes))*placeSteps)
	joins := f.params.joins(s.Instance, c)
	g := grouper{state: s, class: c, rules: c.Levels[l].Rules, keys: keys, index: map[string]int{}, places: len(s.Nodes) + len(s.NewNodes)}
	g.room, _ = waitingRoom(s, c)
	for _, pl := range s.Nodes {
		if c.Levels[l].Nodes.Has(pl.Node) && s.Capacity(c, pl, pl.Free) > 0 {
			g.add(onNodes, pl)
		}
	}
	all, newNodes := tier >= s.Instance.Space.Tiers-1, s.NewNodes
	if tier == nodesOnly {
		newNodes = nil
	}
	for _, pl := range newNodes {
		if !all && s.Instance.Space.PoolOf(pl.Option).Tier > tier {
			continue
		}
		suits := c.Levels[l].Options.Has(pl.Option) || joins && pl.Options.Intersects(c.Levels[l].Options)
		if suits && (joins || s.Capacity(c, pl, pl.Free) > 0) {
			g.add(onNewNodes, pl)
		}
	}
	for i := range g.slots {
		queue := g.slots[i].queue
		if inOrder := joins && (!f.params.Join || g.slots[i].kind == onNewNodes); inOrder || f.params.Reserved != nil {
			slices.SortFunc(queue, better)
		} else {
			queue.order()
		}
	}
	slices.SortStableFunc(g.slots, func(a, b slot) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind)
		}
		return better(a.queue[0], b.queue[0])
	})
	return g.slots
}

// grouper groups places that can take a pod of a class into slots.
type grouper struct {
	state *placement.State
	class *instance.Class
	rules *topology.Rules
	// keys are those whose domains tell places apart.
	keys []int
	// room is what the pods need that can only go where this one goes, or nil.
	room []int64
	// index is the slot of places that are alike, in slots.
	index map[string]int
	slots []slot
	// lastID is what made the last place alike to others, and last its slot; they mostly come in rows.
	lastID []byte
	last   int
	// places is how many there are at most.
	places int
}

// fewSlots is up to how many slots each may get most of the places.
const fewSlots = 4

// add puts a place that may have room for a pod into its slot, unless rules on hosts keep
// pods of the class from it.
func (g *grouper) add(kind slotKind, pl *placement.Place) {
	if g.state.Domains.Counts.Room(g.rules, pl.Place, topology.Hosts) == 0 {
		return
	}
	id := append(g.state.Domains.ID(g.class.Index, g.keys, pl.Place), byte(kind))
	roomy := g.room == nil || placement.Fitting(g.class.Own, g.room, pl.Free) > 0
	if !roomy {
		id = append(id, 'f')
	}
	if pl.Open { // it may be in another domain
		id = binary.AppendVarint(append(id, 'o'), int64(pl.ID))
	}
	i, ok := g.last, bytes.Equal(id, g.lastID)
	if !ok {
		i, ok = g.index[string(id)]
		g.last, g.lastID = i, append(g.lastID[:0], id...)
	}
	if !ok {
		i = len(g.slots)
		g.index[string(id)], g.last = i, i
		g.slots = append(g.slots, slot{kind: kind, rep: pl.Place})
		if i < fewSlots {
			g.slots[i].queue = make(queue, 0, g.places/fewSlots)
		}
	}
	g.slots[i].queue = append(g.slots[i].queue, candidate{pl, pl.Ready, roomy, feasible.Slack(g.class.Own, pl.Free)})
}

// forOptions groups the options of a tier on which nodes for a class may be bought by
// the class's topology domains, the cheapest for this class first.
func (f slotFinder) forOptions(c *instance.Class, l, tier int, keys []int) []slot {
	f.index.work.Spend(listSteps)
	set := f.buyable(c, l, tier)
	if !set.Any() {
		return nil
	}
	s := f.state
	whole := f.index.allowed(f.index.inTier(s.Instance.Sets.Set(c.Levels[l].Static), tier))
	parts := f.index.divide(s.Domains, c, set, keys)
	rules := c.Levels[l].Rules
	most := rules.PerNode()
	if len(c.Spec.HostPorts) > 0 {
		most = 1
	}
	out := make([]slot, len(parts))
	for i := range parts {
		p := &parts[i]
		out[i] = slot{kind: onOptions, rep: topology.Place{ID: -1, Node: -1, Option: p.first}, options: p.options}
		if len(parts) > 1 {
			most := most
			if f.params.ByCount {
				most = min(most, s.Left[c.Index], s.Domains.Counts.SpreadRoom(rules, out[i].rep))
			}
			out[i].cost = f.index.cheapest(c, p, whole, pods{most: most, counted: f.params.ByCount}, s.Ledger)
		}
	}
	slices.SortStableFunc(out, func(a, b slot) int { return cmp.Compare(a.cost, b.cost) })
	rng := f.params.Perturb
	if rng != nil && len(out) > 1 && rng.IntN(4) == 0 {
		first := rng.IntN(len(out))
		out[0], out[first] = out[first], out[0]
	}
	open := f.openOptions(c, l, set)
	if len(open) > 0 && rng != nil && rng.IntN(4) == 0 {
		return append(open, out...)
	}
	return append(out, open...)
}

// buyable are the options of a tier on which nodes for a class may be bought.
func (f slotFinder) buyable(c *instance.Class, l, tier int) bitset.Set {
	set := f.index.allowed(f.index.inTier(c.Levels[l].Options, tier))
	if f.collecting && !c.Colocated && f.state.Instance.MinValues.Any() {
		set = set.Clone()
		set.And(f.index.filled(c.Levels[l].Static, tier))
	}
	return set
}

// openOptions are the options of a set as far as nodes of them may be open for a class
// at a level, by the domains of the keys that have to be settled all the same.
func (f slotFinder) openOptions(c *instance.Class, l int, set bitset.Set) []slot {
	in, d := f.state.Instance, f.state.Domains
	if !in.MinValues.Any() || f.params.Reserved != nil || len(d.Tied(c.Index, l)) == len(d.Keys(c.Index, l)) {
		return nil
	}
	keys, own := d.Keys(c.Index, l), set.Clone()
	for o := range own.All {
		nowhere := func(k int) bool { return in.Space.Labels.OptionValue(k, o) < 0 }
		if len(in.MinValues.Of(int(in.Space.Options[o].Pool))) == 0 || slices.ContainsFunc(keys, nowhere) {
			own.Remove(o)
		}
	}
	d.Counts.KeepAdmitting(c.Levels[l].Rules, -1, own)
	cells, _ := f.index.partition(d, c, d.Tied(c.Index, l))
	var out []slot
	for _, cell := range cells {
		part := cell.Clone()
		part.And(own)
		if first := part.Next(0); first >= 0 {
			out = append(out, slot{kind: onOptions, rep: topology.Place{ID: -1, Node: -1, Option: first}, options: part, open: true})
		}
	}
	return out
}
