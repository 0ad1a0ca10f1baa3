package construct

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/offers"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Constructor builds one plan. It serves one goroutine, with its forks.
type Constructor struct {
	// State is the plan so far.
	State *placement.State
	// Index knows which options are worth buying for a class.
	Index *OptionIndex

	params Params
	// sequence lists the valid classes in the order in which they are placed.
	sequence []int
	// total is what all pods take, by dimension, for Strategy.ScarcityFirst; else nil.
	total []float64
	// demands collect the pods that the bin packer has to find new nodes for. If they
	// are nil, the constructor opens new nodes by itself.
	demands *demands
}

// New begins an empty plan on copies of the given nodes, under a decision on domain
// conflicts.
func New(in *instance.Instance, nodes []*placement.Place, d placement.Decision, p Params) *Constructor {
	c := &Constructor{Index: newOptionIndex(in, d.Shut), params: p}
	c.sequence = order(in, p.Strategy, nodes, c.Index)
	c.State = placement.New(in, nodes, d, c.sequence, p.onlyHard(in))
	if p.ScarcityFirst {
		c.total = in.TotalRequests()
	}
	return c
}

// Fork is an independent constructor at the same point, with the same order of
// classes, which continues by other parameters. ScarcityFirst must stay as it is.
func (c *Constructor) Fork(p Params) *Constructor {
	f := *c
	f.State, f.Index, f.params = c.State.Fork(), c.Index.fork(), p
	c.Index.work.Spend(forkSteps + int64(len(c.State.Nodes)+len(c.State.NewNodes)+len(c.State.Left))*copySteps)
	return &f
}

// CountInto has the constructor and its forks count what they do.
func (c *Constructor) CountInto(w *meter.Work) { c.Index.work = w }

// Spend counts work that others do for the plan.
func (c *Constructor) Spend(steps int64) { c.Index.work.Spend(steps) }

// What the constructor's work is taken to last, in steps of the meter (see
// [meter.StepTime]): measured on generated clusters, right within a factor of two or
// three.
const (
	forkSteps   = 1_000 // of a fork
	copySteps   = 25    // of each place and class of a fork
	placeSteps  = 10    // of each node that is looked at for a class
	listSteps   = 100   // of each list of slots
	slotSteps   = 50    // of each attempt to fill a slot
	optionSteps = 15    // of each option that is told apart by topology
	wordSteps   = 2     // of each word of a set that is divided
)

// enlargeLooks is how many looks at an option for a node that grows are a step.
const enlargeLooks = 2

// with continues the same plan by other parameters.
func (c *Constructor) with(p Params) *Constructor {
	other := *c
	other.params = p
	return &other
}

// Params say how the constructor works.
func (c *Constructor) Params() Params { return c.params }

// Sequence lists the valid classes in the order in which they are placed. Callers do
// not change it.
func (c *Constructor) Sequence() []int { return c.sequence }

// Reorder sorts the classes again, for a fork with a strategy that asks for another order.
func (c *Constructor) Reorder() {
	c.sequence = order(c.State.Instance, c.params.Strategy, c.State.Nodes, c.Index)
}

// PlaceAll places all classes in order, and then those again that found no place at
// first, for as long as that helps: what they wait for may have come since.
func (c *Constructor) PlaceAll() {
	s := c.State
	for {
		s.Rounds++
		before := s.Unplaced()
		for _, i := range c.sequence {
			if class := &s.Instance.Classes[i]; s.Left[i] > 0 && (s.Rounds == 1 || c.mayPlaceAgain(class)) {
				c.Place(class)
			}
		}
		if after := s.Unplaced(); after == 0 || after == before && (c.demands != nil || !offers.New(s.Instance).RightSize(s)) {
			return
		}
	}
}

// mayPlaceAgain prepares a class that has had its turn for another one, and reports
// whether it may have one. A class whose spread constraints no longer mattered to
// classes after it waits until the packer has decided where those are; from then on
// its constraints matter.
func (c *Constructor) mayPlaceAgain(class *instance.Class) bool {
	for l := range class.Levels {
		if rules := class.Levels[l].Rules; c.State.Domains.Order.ReadsEarly(rules) {
			if c.demands != nil || c.State.Domains.Order.HardOnly() { // open nodes cannot be tied down any more
				return false
			}
			c.State.Domains.SetOrder(c.State.Domains.Order.Reading(rules))
		}
	}
	return true
}

// Place places the remaining pods of a class until that helps no more: pods that must
// join the first of their kind come before others fill its node.
func (c *Constructor) Place(class *instance.Class) {
	left := c.State.Left
	for before := 0; left[class.Index] > 0 && left[class.Index] != before; {
		before = left[class.Index]
		c.placeOnce(class)
		if !class.Colocated {
			return
		}
	}
}

// placeOnce places as many as it can of the remaining pods of a class, giving up one
// preference after the other.
func (c *Constructor) placeOnce(class *instance.Class) {
	for l := range class.Levels {
		if c.State.Left[class.Index] == 0 {
			return
		}
		if c.params.HardOnly && !c.params.Keep[class.Index] && l < len(class.Levels)-1 {
			continue
		}
		c.placeLevel(class, l)
	}
}

func (c *Constructor) placeLevel(class *instance.Class, l int) {
	if c.params.Join {
		c.joinAll(class, l)
		return
	}
	keys := c.State.Domains.Keys(class.Index, l)
	find := c.slots()
	if fillNodes(c, class, l, keys) {
		return
	}
	for tier := range c.State.Instance.Space.Tiers {
		slots := find.forOptions(class, l, tier, keys)
		if held := find.held(class, l, keys, tier); len(held) > 0 {
			// Rather a new node than one without room for the pods that have to follow.
			at := slices.IndexFunc(held, func(s slot) bool { return s.kind == onNewNodes && !s.queue[0].roomy })
			if at < 0 {
				at = len(held)
			}
			slots = slices.Concat(held[:at], slots, held[at:])
		}
		if c.fill(class, l, slots) {
			return
		}
	}
}

// fillNodes takes room of existing nodes, and reports whether no pod is left. Where pods
// spread over hosts, a node that was as full as the others let it be may take more once
// these have some.
func fillNodes(c *Constructor, class *instance.Class, l int, keys []int) bool {
	rules := class.Levels[l].Rules
	for {
		before := c.State.Domains.SpreadFloor(rules)
		if c.fill(class, l, c.slots().held(class, l, keys, nodesOnly)) {
			return true
		}
		if !rules.PerHost() || c.State.Domains.SpreadFloor(rules) == before {
			return false
		}
	}
}

// fill takes room from the slots in order for as long as topology admits the class, and
// reports whether no pod is left.
func (c *Constructor) fill(class *instance.Class, l int, slots []slot) bool {
	s, rules := c.State, class.Levels[l].Rules
	if foreign := s.Instance.Topology.OtherSpreads(rules, s.Domains.Keys(class.Index, l)); len(foreign) > 0 && len(slots) > 1 {
		return c.fillEvenly(class, l, slots, foreign)
	}
	for at := 0; at < len(slots) && s.Left[class.Index] > 0; {
		s.Steps++
		c.Spend(slotSteps)
		sl := &slots[at]
		room := 0
		if !sl.dead {
			room = s.Domains.Counts.Room(rules, sl.rep, topology.Labels)
		}
		if room == 0 {
			at++
			continue
		}
		before := s.Domains.SpreadFloor(rules)
		n := c.takeFrom(class, l, sl, min(room, s.Left[class.Index]))
		if n == 0 {
			sl.dead = true
			continue
		}
		s.Left[class.Index] -= n
		if len(rules.Affinity) > 0 || s.Domains.SpreadFloor(rules) != before {
			at = 0
		}
	}
	return s.Left[class.Index] == 0
}

// fillEvenly is fill for pods that spread constraints of other classes count: among
// slots of one kind they go, one by one, where the fewest such pods are, so that those
// other classes stay free to go anywhere. The foreign counters are theirs.
func (c *Constructor) fillEvenly(class *instance.Class, l int, slots []slot, foreign []int) bool {
	s, rules := c.State, class.Levels[l].Rules
	for s.Left[class.Index] > 0 {
		var best *slot
		var least int64
		for i := range slots {
			s.Steps++
			c.Spend(slotSteps)
			sl := &slots[i]
			if sl.dead || best != nil && sl.kind > best.kind || s.Domains.Counts.Room(rules, sl.rep, topology.Labels) == 0 {
				continue
			}
			if crowd := s.Domains.Counts.Sum(foreign, sl.rep); best == nil || crowd < least {
				best, least = sl, crowd
			}
		}
		if best == nil {
			return false
		}
		n := c.takeFrom(class, l, best, 1)
		best.dead = n == 0
		s.Left[class.Index] -= n
	}
	return true
}

// takeFrom places up to want pods in a slot and returns how many.
func (c *Constructor) takeFrom(class *instance.Class, l int, s *slot, want int) int {
	if s.kind == onOptions && c.demands != nil && !c.decidedHere(class, l) {
		return c.demands.add(c.State, class, l, s, want)
	}
	if s.kind == onOptions {
		return c.opener().open(class, l, s, want)
	}
	if c.params.joins(c.State.Instance, class) && !c.params.Join { // room that is there comes before nodes that grow
		for _, cand := range s.queue {
			if n := c.takeRoom(class, l, want, cand.pl, false); n > 0 {
				return n
			}
		}
	}
	for len(s.queue) > 0 {
		if n := c.takeRoom(class, l, want, s.queue[0].pl, true); n > 0 {
			return n
		}
		s.queue.drop()
	}
	return 0
}

// takeRoom puts up to want pods on a place and returns how many. With grow, a new node
// is exchanged for a larger one for pods that must join others.
func (c *Constructor) takeRoom(class *instance.Class, l, want int, pl *placement.Place, grow bool) int {
	s := c.State
	n := min(want, s.Domains.Counts.Room(class.Levels[l].Rules, pl.Place, topology.Hosts))
	if n == 0 {
		return 0
	}
	if room := s.RoomOn(class, l, n, pl); room > 0 || !grow || pl.Node >= 0 || !c.params.joins(s.Instance, class) {
		n = room
	} else {
		n = enlarger{s, c.Index.work}.enlarge(class, l, n, pl)
	}
	if n > 0 {
		s.Put(class, l, n, pl)
		if pl.Node < 0 {
			pl.Options.And(class.Levels[l].Options)
		}
	}
	return n
}

// decidedHere reports whether new nodes for the class are opened by the constructor
// even while it collects demands. The packer knows nothing of pods that must meet, of
// disks that pods share, or of minValues within one domain.
func (c *Constructor) decidedHere(class *instance.Class, l int) bool {
	return class.Colocated || len(class.Shared) > 0 ||
		c.State.Instance.MinValues.Any() && len(c.State.Domains.Keys(class.Index, l)) > 0
}

func (c *Constructor) slots() slotFinder {
	return slotFinder{state: c.State, index: c.Index, params: &c.params, collecting: c.demands != nil}
}

func (c *Constructor) opener() opener {
	return opener{state: c.State, params: &c.params, total: c.total}
}

// Stranded lists the classes with pods that have no place although there are options
// or nodes for them as far as everything but other pods goes, in the order of placing.
func (c *Constructor) Stranded() []int {
	var out []int
	for _, i := range c.sequence {
		if c.State.Left[i] == 0 || c.missesCompany(i) {
			continue
		}
		suits := func(pl *placement.Place) bool { return c.Suits(i, pl) }
		if c.Index.allowed(c.State.Instance.LastLevel(i).Options).Any() || slices.ContainsFunc(c.State.Nodes, suits) {
			out = append(out, i)
		}
	}
	return out
}

// Suits reports whether a place would hold a pod of a class if no other pod of the plan
// were there.
func (c *Constructor) Suits(class int, pl *placement.Place) bool {
	in := c.State.Instance
	last := in.LastLevel(class)
	if pl.Node < 0 {
		return last.Options.Has(pl.Option)
	}
	return last.Nodes.Has(pl.Node) && feasible.Fits(in.Classes[class].Own, in.Space.NodeFree(pl.Node))
}

// missesCompany reports whether affinity of a class selects pods that are not there
// and will not come.
func (c *Constructor) missesCompany(class int) bool {
	counts, adds := c.State.Domains.Counts, c.State.Instance.Topology.Adds
	return slices.ContainsFunc(c.State.Instance.HardRules(class).Affinity, func(a topology.Affinity) bool {
		return counts.Total(a.Counter) == 0 && !slices.ContainsFunc(c.sequence, func(i int) bool {
			return slices.Contains(adds(i), int32(a.Counter))
		})
	})
}

// Undominate replaces the options worth buying by those that are when the given lines
// of the ledger are scarce.
func (c *Constructor) Undominate(scarce []int) bitset.Set {
	c.Index.setWorth(c.State.Instance.Undominated(scarce))
	return c.Index.Worth()
}
