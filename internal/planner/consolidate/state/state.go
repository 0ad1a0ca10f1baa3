package state

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// State is the cluster as it would be. Its parts are read by others and changed by its
// own methods alone, which write every change to a log.
//
// Invariants: Counts has the pods of all bins that are not removed, as far as their
// classes are not plain; Ledger, Budgets and the price agree with which bins are
// removed and bought.
type State struct {
	Problem *compiled.Problem
	// Eligible is shared with the forks of the state.
	Eligible *eligibility.Table
	// Counts has the pods by topology domain.
	Counts *topology.Counts
	// Ledger has what is left of limits and quotas. New nodes take of it. Removed nodes that
	// exist give back what they hold of limits in resources and nodes, where what replaces them
	// takes their place; of quotas and limits in dollars nothing before they are gone. What is
	// given back may be capped in it between two commands; see builder.
	Ledger   *feasible.Ledger
	Bins     *Bins
	Unplaced Unplaced
	Budgets  *Budgets
	Index    *CapacityIndex
	// log are the changes since the state was sealed, oldest first. lifted has, for each of
	// them that took pods off a bin, in the same order, these pods.
	log    []Change
	lifted [][]Relocated
	// price of all bins that are not removed, per hour. evictionCost adds up the
	// EvictionCost of the nodes that are removed, in Money per hour.
	price        model.Money
	evictionCost float64
	// booked are the options (of Space) of new nodes that pending pods will get.
	booked []int
}

// New is the state of the cluster as it is.
func New(p *compiled.Problem, eligible *eligibility.Table) *State {
	s := &State{
		Problem: p, Eligible: eligible, Counts: p.Prepared.Topology.NewCounts(nil),
		Ledger: p.Space.NewLedger(), Bins: newBins(p), Budgets: newBudgets(p),
		Unplaced: newUnplaced(len(p.Classes)),
	}
	s.Index = newCapacityIndex(s.Bins, p.Levels)
	for n := range p.Planning.Nodes {
		s.price += p.Planning.Nodes[n].Price
	}
	s.Arrange()
	return s
}

// Fork is an independent state equal to this one: a new state on which the log is
// replayed.
// Precondition: nothing was sealed.
func (s *State) Fork() *State {
	out := New(s.Problem, s.Eligible)
	for _, option := range s.booked {
		out.Book(option)
	}
	for at := range s.log {
		switch c := &s.log[at]; c.Kind {
		case Put:
			out.Put(c.Bin, c.Relocated)
		case Lifted:
			out.Lift(c.Bin)
		case Removed:
			out.Remove(c.Bin)
		case Bought:
			i := out.Buy(s.Bins.At(c.Bin).Option)
			out.Bins.At(i).Frozen = s.Bins.At(c.Bin).Frozen
		case Exchanged:
			exchange(out, *c)
		}
	}
	out.Ledger = s.Ledger.Fork() // what commands give back was taken from it
	return out
}

// Seal makes everything so far the state from which further changes start: pods that
// have moved in stay, and nothing of it can be undone.
func (s *State) Seal() {
	for i := range s.Bins.list {
		s.Bins.list[i].Pods = nil
	}
	clear(s.Unplaced.count)
	s.log, s.lifted = s.log[:0], s.lifted[:0]
	s.Arrange()
}

// Book takes what a new node for pending pods draws from limits and quotas. The node
// takes in no other pods. Book is not undone.
func (s *State) Book(option int) {
	s.Ledger.Take(option, 1)
	s.booked = append(s.booked, option)
}

// Price is the price per hour of all bins that are not removed.
func (s *State) Price() model.Money { return s.price }

// Objective is what consolidation minimizes: the price, and what the evictions of the
// removed nodes must save, in Money per hour.
func (s *State) Objective() float64 { return float64(s.price) + s.evictionCost }

// MayRemove reports whether a node may be removed next to those that are: it is there,
// belongs to a NodePool, and budgets allow it.
func (s *State) MayRemove(n int32) bool { return !s.Bins.At(n).Removed && s.Budgets.Allow(n) }

// TopologyRoom is how many more pods of a class the rules of topology let onto a bin
// at a level.
// Precondition: the class is not plain.
func (s *State) TopologyRoom(c *compiled.Class, level int, i int32) int {
	return s.Counts.Room(c.Levels[level].Rules, s.Bins.Place(i), topology.Everything)
}

// tier is the weight of the NodePools, as in [compiled.Problem.Tier], on whose new nodes pods of
// a listed class may go: that of the heaviest which can hold one and has room in limits and
// quotas, so that nothing is bought of a lighter one because it is cheaper.
func (s *State) tier(class int32) int {
	p := s.Problem
	if len(p.Permitted.ByTier) == 0 || s.Unplaced.anyWeight {
		return p.Space.Tiers
	}
	for t, set := range p.Permitted.ByTier[class] {
		for at := range set.All {
			if o := &p.Options[at]; feasible.Fits(p.Classes[class].Size, o.Net) && s.Ledger.Admits(o.Option) {
				return t
			}
		}
	}
	return p.Space.Tiers
}

// tooLight reports whether a bin is a new node of a NodePool that weighs less than the one to
// which pods of a listed class may go.
func (s *State) tooLight(class, i int32) bool {
	return len(s.Problem.Permitted.ByTier) > 0 && !s.Bins.IsNode(i) && s.Problem.Tier(int(s.Bins.At(i).Option)) > s.tier(class)
}

// countPods tells topology that n more pods of a class are on a bin.
func (s *State) countPods(class, i, n int32) {
	if !s.Problem.Classes[class].Plain {
		s.Counts.Add(int(class), s.Bins.Place(i), int(n))
	}
}

// account adds what removing a bin does to price, limits and budgets; sign -1 takes it
// back.
func (s *State) account(i int32, sign int32) {
	if !s.Bins.IsNode(i) {
		o := s.Bins.Option(i)
		s.price -= model.Money(sign) * o.Price
		s.Ledger.Take(o.Option, -int(sign))
		return
	}
	node := &s.Problem.Nodes[i]
	s.price -= model.Money(sign) * node.Price
	s.evictionCost += float64(sign) * node.EvictionCost
	s.Ledger.Return(node.Returns, int(sign))
	s.Budgets.Count(i, sign)
}

// Arrange puts the bins that may take in pods into the index: what earns its price
// best comes first and is filled first, so that what is last becomes empty.
func (s *State) Arrange() {
	s.Index.arrange(s.Ranked(s.Eligible.Receives, s.valuePerPrice))
}

// Ranked lists the bins that are neither removed nor frozen, nodes only where they are
// eligible, by descending worth; equals stay in the order of the bins.
func (s *State) Ranked(eligible func(node int32) bool, worth func(bin int32) float64) []int32 {
	var order []int32
	value := make([]float64, s.Bins.Len())
	for i := range int32(s.Bins.Len()) {
		bin := s.Bins.At(i)
		if bin.Removed || bin.Frozen || s.Bins.IsNode(i) && !eligible(i) {
			continue
		}
		order = append(order, i)
		value[i] = worth(i)
	}
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(value[y], value[x]) })
	return order
}

// permanent is the valuePerPrice of nodes that cannot be removed: they come before all
// others.
const permanent = 1e18

// valuePerPrice is the shadow price of the pods in a bin over the price of the bin.
func (s *State) valuePerPrice(i int32) float64 {
	var price, value float64
	if s.Bins.IsNode(i) {
		node := &s.Problem.Nodes[i]
		if node.Policy < 0 || s.Eligible.Blocked(i) != nil || node.Price == 0 {
			return permanent
		}
		price, value = float64(node.Price), s.Problem.ValueOfPods(node)
	} else {
		price = float64(s.Bins.Option(i).Price)
	}
	for _, r := range s.Bins.At(i).Pods {
		value += s.Problem.Classes[r.Class].Value * float64(r.Count)
	}
	return value / max(1, price)
}

// Gain is what removing a bin saves per hour, per shadow price of the pods which then
// need room elsewhere. The search tries bins in this order.
func (s *State) Gain(i int32) float64 {
	value := 1.0
	var gain float64
	if s.Bins.IsNode(i) {
		node := &s.Problem.Nodes[i]
		gain = float64(node.Price) - node.EvictionCost
		for _, g := range node.Pods {
			value += s.Problem.Classes[g.Class].Value * float64(g.Count)
		}
	} else {
		gain = float64(s.Bins.Option(i).Price)
	}
	for _, r := range s.Bins.At(i).Pods {
		value += s.Problem.Classes[r.Class].Value * float64(r.Count)
	}
	return gain / value
}
