package consolidate

import (
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Intent is a move as whoever makes it remembers it: in names, because indices do
// not outlive a Fleet.
type Intent struct {
	Reason model.DisruptionReason
	// Nodes are given back, named as in Problem.Nodes.
	Nodes []string
	// Replacements are the machines bought for it, or to be bought.
	Replacements []Replacement
	// FromTemplate is as in model.Command.
	FromTemplate bool
	// Homes names the nodes, or the claims of replacements, on which the plan has
	// places for pods, where anybody remembers. They are tried first.
	Homes map[model.PodRef]string
	// Draining moves have begun to evict their pods. What guards nodes and pods was
	// asked before; PodDisruptionBudgets are used up by the move itself now.
	Draining bool
}

// Replacement is a machine of an [Intent].
type Replacement struct {
	// Node names the machine once it is one of Problem.Nodes, by the name of its
	// Node or NodeClaim; empty while it is not bought.
	Node string
	// Pool, InstanceType, Zone and CapacityType say what is to be bought. They are
	// not looked at when Node is set.
	Pool, InstanceType, Zone string
	CapacityType             model.CapacityType
}

// Objection is something that speaks against making a move.
type Objection struct {
	// Node is the node concerned, empty when it is the move as a whole.
	Node    string
	Reason  model.Reason
	Message string
	// Passing objections may end by themselves soon: a budget that others draw on
	// at the moment, a machine that is not ready again. Whoever has bought
	// replacements does better to ask again than to give them back.
	Passing bool
}

// IntentOf puts a move of this fleet into names.
func IntentOf(f *model.DisruptionProblem, mv *model.Command) Intent {
	in := Intent{Reason: mv.Reason, FromTemplate: mv.FromTemplate}
	for _, n := range mv.Nodes {
		in.Nodes = append(in.Nodes, f.Problem.Nodes[n].Name)
	}
	for i := range mv.New {
		pool := &f.Problem.Pools[mv.New[i].Pool]
		best := mv.New[i].Best()
		t := &f.Problem.Catalogs[pool.Catalog].InstanceTypes[best.InstanceType]
		o := &t.Offerings[best.Offering]
		in.Replacements = append(in.Replacements, Replacement{Pool: pool.Name, InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType})
	}
	return in
}

// Recheck says whether a move still stands in a fresh fleet: its nodes exist and
// nothing holds them, budgets and PodDisruptionBudgets allow it, and all its
// pods, those that came since included, have a place on nodes that are ready, on
// its replacements, or, as far as these are not bought yet, on machines like
// them. It must also still be worth making. An empty answer means that it stands.
//
// That the move's own nodes are marked as being given up, or leaving, and that
// its own replacements are nominated, is no objection. Quiet times
// (consolidateAfter) were kept when the move was decided. They are not asked for
// again of the nodes that take its pods in, nor, once replacements were bought,
// of its own: pods come to and leave nodes all the time while machines boot, and
// where they are now is what counts.
func Recheck(f *model.DisruptionProblem, in Intent) []Objection {
	own := map[string]bool{}
	for _, name := range in.Nodes {
		own[name] = true
	}
	fresh := unmark(f, own, len(in.Replacements) > 0)
	s := newSite(fresh)
	b := newBoard(s)
	b.reserve(own)
	r := rechecker{maker: &maker{board: b, rejected: map[model.Reason]int64{}, refused: map[int32]*model.KeptNode{}}, in: in, named: map[string]int32{}}
	r.find()
	if len(r.found) == 0 {
		r.guards()
	}
	if len(r.found) == 0 && !in.FromTemplate {
		r.places()
	}
	return r.found
}

// unmark is the fleet as if the named nodes were not being given up, and as if
// pods had come and gone long ago: on the other nodes, and with calm on these.
func unmark(f *model.DisruptionProblem, own map[string]bool, calm bool) *model.DisruptionProblem {
	fresh, p := *f, *f.Problem
	fresh.Problem = &p
	p.Nodes = append([]model.Node(nil), p.Nodes...)
	fresh.Usages = append([]model.NodeUsage(nil), f.Usages...)
	for n := range p.Nodes {
		if calm || !own[p.Nodes[n].Name] {
			fresh.Usages[n].InitializedAt, fresh.Usages[n].LastPodEvent = time.Time{}, time.Time{}
		}
		if own[p.Nodes[n].Name] {
			fresh.Usages[n].Disrupting = false
			if p.Nodes[n].State == model.NodeLeaving {
				p.Nodes[n].State = model.NodeReady
			}
		}
	}
	return &fresh
}

type rechecker struct {
	*maker
	in Intent
	// named are the nodes by their names and those of their claims.
	named map[string]int32
	nodes []int32
	// bought are the replacements that exist, toBuy those that do not.
	bought []int32
	toBuy  []Replacement
	found  []Objection
}

func (r *rechecker) object(node string, st *model.KeptNode) {
	o := Objection{Node: node, Reason: st.Reason, Message: st.Message}
	switch st.Reason {
	case model.ReasonNotInitialized, model.ReasonNominated, model.ReasonPoolBudget:
		o.Passing = true
	case model.ReasonPodBudget:
		o.Passing = !slices.ContainsFunc(r.fleet.Budgets, func(b model.PodBudget) bool { return b.Blocking && b.String() == st.Budget })
	}
	r.found = append(r.found, o)
}

// find looks the move's machines up.
func (r *rechecker) find() {
	for n := range r.problem.Nodes {
		node := &r.problem.Nodes[n]
		r.named[node.Name] = int32(n)
		if node.Claim != "" {
			r.named[node.Claim] = int32(n)
		}
	}
	for _, name := range r.in.Nodes {
		n, ok := r.named[name]
		if !ok {
			r.object(name, stay(0, model.ReasonBeingDisrupted, "Node %s is gone.", name))
			continue
		}
		r.nodes = append(r.nodes, n)
	}
	for _, rep := range r.in.Replacements {
		if rep.Node == "" {
			r.toBuy = append(r.toBuy, rep)
			continue
		}
		n, ok := r.named[rep.Node]
		if !ok {
			r.object(rep.Node, stay(0, model.ReasonNotInitialized, "Replacement %s is gone.", rep.Node))
			continue
		}
		r.bought = append(r.bought, n)
	}
}

// guards asks again what was asked when the move was decided.
func (r *rechecker) guards() {
	for _, n := range r.nodes {
		l := &r.board.nodes[n]
		var st *model.KeptNode
		switch {
		case r.in.Draining:
		case r.in.Reason == model.DisruptExpired:
			if l.policy < 0 {
				st = l.stay
			}
		case r.in.Reason == model.DisruptDrifted:
			if t := &r.fleet.Usages[n]; t.Drift == "" {
				st = stay(int(n), model.ReasonPolicy, "%s has not drifted any more.", r.name(int(n)))
			} else {
				st = r.guardDrift(n)
			}
		default:
			switch {
			case l.stay != nil && l.stay.Reason != model.ReasonDoesNotPay && l.stay.Reason != model.ReasonUnbalanced:
				st = l.stay
			case r.in.Reason == model.DisruptEmpty && !l.empty():
				st = stay(int(n), model.ReasonPolicy, "%s is not empty any more: it runs %s.", r.name(int(n)), r.movablePods(int(n)))
			default:
				if k := r.overspent(n); k >= 0 {
					st = r.budgetSpent(int(n), k)
				} else if !r.withinPolicy(n) {
					st = r.poolBudget(int(n), r.in.Reason, r.fleet.Policies[l.policy].Allowed[r.in.Reason], int(r.takenEmpty[l.policy]+r.takenRunning[l.policy]))
				}
			}
		}
		if st != nil {
			r.object(r.name(int(n)), st)
		}
		r.needed = r.needed[:0]
		r.shut(n)
	}
}

// places asks whether all pods of the move still have a place, and for
// consolidation whether it is still worth it.
func (r *rechecker) places() {
	b := r.board
	b.needed = b.needed[:0]
	for class := range b.need {
		if b.need[class] > 0 {
			b.needed = append(b.needed, int32(class))
		}
	}
	for _, n := range r.bought {
		t := &r.fleet.Usages[n]
		if !t.Initialized || !t.Ready || t.Disrupting {
			r.object(r.name(int(n)), stay(int(n), model.ReasonNotInitialized, "Replacement %s is not ready yet.", r.name(int(n))))
			return
		}
		b.nodes[n].host = !b.bins[n].shut
	}
	b.shelf.fill(b)
	var price, spent model.Money
	toll := 0.0
	for _, n := range r.nodes {
		price += b.nodes[n].price
		toll += b.nodes[n].toll
	}
	var wares []int32
	for _, rep := range r.toBuy {
		w := r.wareOf(rep)
		if w < 0 {
			r.object("", stay(0, model.ReasonUnavailable, "A machine of NodePool %s, %s in %s (%s), cannot be bought any more.", rep.Pool, rep.InstanceType, rep.Zone, rep.CapacityType))
			return
		}
		spent += b.menu[w].price
		wares = append(wares, w)
	}
	for _, n := range r.bought {
		spent += b.nodes[n].price
	}
	if !r.housed(wares) {
		r.object("", r.homeless(int(r.nodes[0])))
		return
	}
	if r.in.Reason == model.DisruptUnderutilized && price-spent < model.Money(toll) {
		r.object("", stay(0, model.ReasonDoesNotPay, "Giving back %s saves %s by now, less than evicting their pods costs.", r.names(r.nodes), price-spent))
	}
}

// housed finds places for all pods in need: on the move's machines first, or, if
// some then have none, in the room that there is first. Where the plan's own places
// are known they come before. Pods that refuse each other may fit in one order and
// not in another, so both are tried.
func (r *rechecker) housed(wares []int32) bool {
	start := r.mark()
	r.sortNeeded()
	if r.goHome(); r.houseInOrder() {
		return true
	}
	r.undo(start)
	for range 2 {
		r.stockAll(wares)
		if r.houseInOrder() {
			return true
		}
		r.undo(start)
		r.sortNeeded()
		slices.Reverse(r.needed)
	}
	if r.house() {
		return true
	}
	r.stockAll(wares)
	return r.nobodyWaits()
}

// goHome lets pods in where the plan has places for them, as far as these are still
// there.
func (r *rechecker) goHome() {
	if len(r.in.Homes) == 0 {
		return
	}
	var slots []slot
	for _, n := range r.nodes {
		for _, cp := range r.fleet.Usages[n].Pods {
			class := r.first + cp.Class
			for _, at := range cp.Pods {
				home, known := r.named[r.in.Homes[r.fleet.Movable[cp.Class].Pods[at]]]
				if !known || r.bins[home].shut {
					continue
				}
				if level := r.levelOn(class, int(home)); level >= 0 {
					slots = append(slots, slot{home, guest{int32(class), 1, level}})
				}
			}
		}
	}
	r.enterAll(nil, nil, slots)
}

func (r *rechecker) stockAll(wares []int32) {
	for _, w := range wares {
		r.stock(r.buy(w))
	}
}

// wareOf finds what is to be bought, on the menu or among all options.
func (r *rechecker) wareOf(rep Replacement) int32 {
	matches := func(o int) bool {
		t, offering := r.space.Offering(o)
		return r.problem.Pools[r.space.Options[o].Pool].Name == rep.Pool && t.Name == rep.InstanceType && offering.Zone == rep.Zone && offering.CapacityType == rep.CapacityType
	}
	for w := range r.menu {
		if matches(r.menu[w].option) {
			return int32(w)
		}
	}
	for o := range r.space.Options {
		if r.space.Available.Has(o) && matches(o) {
			option := &r.space.Options[o]
			r.site.menu = append(r.site.menu, ware{option: o, price: option.Price, net: r.project(option.Net), spot: rep.CapacityType == model.Spot})
			return int32(len(r.menu) - 1)
		}
	}
	return -1
}
