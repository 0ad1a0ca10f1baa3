package consolidate

import (
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
	"github.com/nodeautoprovision/nap/internal/planner/decompose"
)

// Recheck says whether a command still stands in a fresh problem: its nodes exist and
// nothing blocks them, budgets and PodDisruptionBudgets allow it, and all its pods,
// including those that came since, have a place on nodes that are ready, on its
// replacements, or, as far as these are not bought yet, on nodes like them. It must
// also still be worth it. An empty answer means that it stands.
//
// Where a node is replaced whatever that costs and its replacements are there, limits in resources
// and nodes that leave its pods no place are no objection.
//
// It is no objection that the command's own nodes are disrupting or leaving, or that
// its own replacements are nominated. Quiet times (consolidateAfter) were kept when the
// command was decided. Recheck does not ask for them again on the nodes that take pods
// in nor, once replacements were bought, on the command's own: pods come to and leave
// nodes all the time while new nodes start, and where they are now is what counts.
//
// Of a problem that is divided, as [Plan] does it, only the parts of the command are looked at.
func Recheck(f *model.DisruptionProblem, in Intent) []Objection {
	return recheckIn(f, in, decompose.From)
}

func recheckIn(f *model.DisruptionProblem, in Intent, from int) []Objection {
	nodes, pools := in.Nodes, []string(nil)
	for _, rep := range in.Replacements {
		if rep.Node != "" {
			nodes = append(nodes[:len(nodes):len(nodes)], rep.Node)
		} else {
			pools = append(pools, rep.Pool)
		}
	}
	f = decompose.Around(f, from, nodes, pools)
	own := map[string]bool{}
	for _, name := range in.Nodes {
		own[name] = true
	}
	p := compiled.Compile(withoutCommand(f, &in, own), nil)
	p = p.WithOptions(unlisted(p, in.Replacements))
	st := state.New(p, eligibility.New(p))
	reservePending(st, own)
	r := recheck{p: p, st: st, in: in}
	r.find()
	if len(r.found) == 0 {
		r.askEligibility()
	}
	if len(r.found) == 0 && !in.FromTemplate {
		r.askPlaces()
	}
	return r.found
}

// withoutCommand is the problem as if the command's own nodes, by name, were not
// disrupting and went for its reason alone, and as if pods had come and gone long ago: on
// the other nodes, and, when replacements were asked for, on its own too.
func withoutCommand(f *model.DisruptionProblem, in *Intent, own map[string]bool) *model.DisruptionProblem {
	fresh, p := *f, *f.Problem
	fresh.Problem = &p
	p.Nodes = slices.Clone(p.Nodes)
	fresh.Usages = slices.Clone(f.Usages)
	// The replacement of a static node exists by now, and counts.
	fresh.Policies = slices.Clone(f.Policies)
	for i := range fresh.Policies {
		fresh.Policies[i].Count = nil
	}
	for n := range p.Nodes {
		if len(in.Replacements) > 0 || !own[p.Nodes[n].Name] {
			fresh.Usages[n].InitializedAt, fresh.Usages[n].LastPodEvent = time.Time{}, time.Time{}
		}
		fresh.Usages[n].Ending, fresh.Usages[n].Returning = 0, 0 // what has begun does not stop for pods that end
		if own[p.Nodes[n].Name] {
			fresh.Usages[n].Disrupting = false
			goFor(in.Reason, &fresh.Usages[n])
			if p.Nodes[n].State == model.NodeLeaving {
				p.Nodes[n].State = model.NodeReady
			}
		}
	}
	return &fresh
}

// goFor leaves out for which other reasons a node would go by now: it depends on the reason which of
// its pods move, and those were planned for that of the command.
func goFor(reason model.DisruptionReason, usage *model.NodeUsage) {
	switch reason {
	case model.DisruptDrifted:
		usage.Unhealthy, usage.ExpiresAt = "", time.Time{}
	case model.DisruptExpired:
		usage.Unhealthy = ""
	default: // pods stay on nodes which drift or expire alone
	}
}

// unlisted are the options (of Space) of replacements to be bought that are available
// but not among the options worth buying.
func unlisted(p *compiled.Problem, replacements []Replacement) []int {
	var out []int
	for _, rep := range replacements {
		if rep.Node != "" || optionFor(p, rep) >= 0 {
			continue
		}
		for o := range p.Space.Options {
			if p.Space.Supply.Available.Has(o) && rep.matches(p, o) {
				if !slices.Contains(out, o) {
					out = append(out, o)
				}
				break
			}
		}
	}
	return out
}

// optionFor is the node option that a replacement names, -1 when there is none.
func optionFor(p *compiled.Problem, rep Replacement) int32 {
	return int32(slices.IndexFunc(p.Options, func(o compiled.NodeOption) bool { return rep.matches(p, o.Option) }))
}

// matches reports whether an option of Space is what the replacement names.
func (rep *Replacement) matches(p *compiled.Problem, option int) bool {
	t, offering := p.Space.Offering(option)
	pool := p.Planning.Pools[p.Space.Options[option].Pool].Name
	return pool == rep.Pool && t.Name == rep.InstanceType && offering.Zone == rep.Zone && offering.CapacityType == rep.CapacityType
}

// recheck asks again, step by step; each step may add objections.
type recheck struct {
	p  *compiled.Problem
	st *state.State
	in Intent
	// named are the nodes by their names and those of their NodeClaims.
	named map[string]int32
	// nodes are those of the command, bought its replacements that exist, toBuy those
	// that do not.
	nodes, bought []int32
	toBuy         []Replacement
	found         []Objection
}

func (r *recheck) object(node string, why *model.KeptNode) {
	o := Objection{Node: node, Reason: why.Reason, Message: why.Message}
	switch why.Reason {
	case model.ReasonNotInitialized, model.ReasonNominated:
		o.Passing = true
	case model.ReasonPoolBudget:
		o.Passing = true
		if r.closed(why.Node) {
			o.Until = why.Until
		}
	case model.ReasonPodBudget:
		o.Passing = !slices.ContainsFunc(r.p.Input.Budgets, func(b model.PodBudget) bool { return b.Blocking && b.String() == why.Budget })
	default: // the other reasons speak against the command
	}
	r.found = append(r.found, o)
}

// closed reports whether the budgets of a node's NodePool let none of its nodes go now, however
// many others are in disruption.
func (r *recheck) closed(node int) bool {
	allowed, limited := r.p.Input.Policies[r.p.Nodes[node].Policy].Budgeted[r.in.Reason]
	return limited && allowed == 0
}

// find looks up the command's nodes and replacements.
func (r *recheck) find() {
	r.named = map[string]int32{}
	for n := range r.p.Planning.Nodes {
		node := &r.p.Planning.Nodes[n]
		r.named[node.Name] = int32(n)
		if node.Claim != "" {
			r.named[node.Claim] = int32(n)
		}
	}
	for _, name := range r.in.Nodes {
		n, ok := r.named[name]
		if !ok {
			r.object(name, compiled.Keep(0, model.ReasonBeingDisrupted, "Node %s is gone.", name))
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
			r.object(rep.Node, compiled.Keep(0, model.ReasonNotInitialized, "Replacement %s is gone.", rep.Node))
			continue
		}
		r.bought = append(r.bought, n)
	}
}

// askEligibility asks again what was asked when the command was decided, node by node,
// and removes the nodes.
func (r *recheck) askEligibility() {
	for _, n := range r.nodes {
		if why := r.block(n); why != nil {
			r.object(r.p.NodeName(int(n)), why)
		}
		r.st.Unplaced.Begin()
		r.st.Remove(n)
	}
}

// block says why a node may not be removed for the command's reason, or is nil.
func (r *recheck) block(n int32) *model.KeptNode {
	node, name := &r.p.Nodes[n], r.p.NodeName(int(n))
	blocked := r.st.Eligible.Blocked(n)
	switch {
	case r.in.Draining:
		return nil
	case r.in.Reason == model.DisruptExpired:
		if node.Policy < 0 {
			return blocked
		}
		return nil
	case r.in.Reason == model.DisruptDrifted:
		if !r.st.Eligible.Rules.Drifts(int(n)) {
			return compiled.Keep(int(n), model.ReasonPolicy, "%s has not drifted any more.", name)
		}
		return forcedBlock(r.st, n, r.in.Reason)
	case r.in.Reason == model.DisruptUnhealthy:
		if !r.st.Eligible.Rules.Unhealthy(int(n)) {
			return compiled.Keep(int(n), model.ReasonPolicy, "%s is not unhealthy any more, or must not be repaired.", name)
		}
		return forcedBlock(r.st, n, r.in.Reason)
	case blocked != nil && blocked.Reason != model.ReasonPriceUnknown && blocked.Reason != model.ReasonDoesNotPay &&
		blocked.Reason != model.ReasonUnbalanced:
		return blocked
	case r.in.Reason == model.DisruptEmpty && !node.Empty():
		return compiled.Keep(int(n), model.ReasonPolicy, "%s is not empty any more: it runs %s.", name, compiled.Plural(node.Evictions, "pod"))
	}
	return r.st.Budgets.Block(n, r.in.Reason)
}

// askPlaces asks whether all pods of the command still have a place, and for
// consolidation whether it is still worth it.
func (r *recheck) askPlaces() {
	r.st.Unplaced.Relist()
	if r.in.Draining || r.in.Reason != model.DisruptEmpty && r.in.Reason != model.DisruptUnderutilized {
		r.st.Unplaced.Release() // they go wherever their pods go
	}
	for _, n := range r.bought {
		name, usage := r.p.NodeName(int(n)), &r.p.Input.Usages[n]
		if !usage.Initialized || !usage.Ready || usage.Disrupting {
			r.object(name, compiled.Keep(int(n), model.ReasonNotInitialized, "Replacement %s is not ready yet.", name))
			return
		}
		r.st.Eligible.SetReceives(n, !r.st.Bins.At(n).Removed)
	}
	r.st.Arrange()
	var price, spent model.Money
	evictionCost := 0.0
	for _, n := range r.nodes {
		price += r.p.Nodes[n].Price
		evictionCost += r.p.Nodes[n].EvictionCost
	}
	var options []int32
	for _, rep := range r.toBuy {
		o := optionFor(r.p, rep)
		if o < 0 {
			r.object("", compiled.Keep(0, model.ReasonUnavailable,
				"A machine of NodePool %s, %s in %s (%s), cannot be bought any more.", rep.Pool, rep.InstanceType, rep.Zone, rep.CapacityType))
			return
		}
		spent += r.p.Options[o].Price
		options = append(options, o)
	}
	for _, n := range r.bought {
		spent += r.p.Nodes[n].Price
	}
	if !r.place(options) {
		if r.isReplaced() && (unplaceable{st: r.st}).forLimits() {
			return
		}
		r.object("", r.noPlace())
		return
	}
	if r.in.Reason == model.DisruptUnderutilized && price-spent < model.Money(evictionCost) {
		r.object("", compiled.Keep(0, model.ReasonDoesNotPay,
			"Giving back %s saves %s by now, less than evicting their pods costs.", r.p.NodeNames(r.nodes), price-spent))
	}
}

// noPlace is what the pods without a place wait for, machines on their way that have room for all of
// them, such as those of other commands; or why they have none. Pods that come meanwhile take any
// room, that of a replacement, too, and leave what was bought for themselves.
func (r *recheck) noPlace() *model.KeptNode {
	n := int(r.nodes[0])
	start := r.st.Mark()
	coming := slices.DeleteFunc(r.st.Eligible.Coming(), func(i int32) bool { return r.st.Bins.At(i).Removed })
	if len(coming) > 0 && state.NewPlacer(r.st).PlaceOn(coming) {
		var taken []int32
		for _, c := range r.st.Since(start) {
			if !slices.Contains(taken, c.Bin) {
				taken = append(taken, c.Bin)
			}
		}
		return compiled.Keep(n, model.ReasonNotInitialized,
			"The pods of %s have room on %s, not ready yet.", r.p.NodeNames(r.nodes), r.p.NodeNames(taken))
	}
	r.st.Undo(start)
	return unplaceable{st: r.st, now: true}.explain(n)
}

// isReplaced reports whether all that was to be bought in the place of a node which goes whatever
// that costs is there. Pods that waited may have taken its room, because limits left them none. They
// do so every time: the node would never go, and what was bought for it is needed and stays.
func (r *recheck) isReplaced() bool {
	if len(r.bought) == 0 || len(r.toBuy) > 0 {
		return false
	}
	return r.in.Reason == model.DisruptDrifted || r.in.Reason == model.DisruptUnhealthy || r.in.Reason == model.DisruptExpired
}

// place finds places for all unplaced pods: where the plan has them, if that is known;
// otherwise on the replacements to be bought first, or, if some pods then have none, in
// the room that there is first. Pods that refuse each other may fit in one order and
// not in another, so both are tried.
func (r *recheck) place(options []int32) bool {
	placer, buyer, unplaced := state.NewPlacer(r.st), state.NewBuyer(r.st), &r.st.Unplaced
	buyAll := func() {
		for _, o := range options {
			buyer.Fill(r.st.Buy(o))
		}
	}
	start := r.st.Mark()
	unplaced.Sort(r.p.Rank)
	placer.PutAll(r.planned())
	if placer.PlaceInOrder() {
		return true
	}
	r.st.Undo(start)
	for range 2 {
		buyAll()
		if placer.PlaceInOrder() {
			return true
		}
		r.st.Undo(start)
		unplaced.Sort(r.p.Rank)
		unplaced.Reverse()
	}
	if placer.PlaceAll() {
		return true
	}
	buyAll()
	return unplaced.None()
}

// planned are the places that the plan has for pods, as far as these are still there.
func (r *recheck) planned() []state.Assignment {
	if len(r.in.Homes) == 0 {
		return nil
	}
	var out []state.Assignment
	for _, n := range r.nodes {
		for _, cp := range r.p.Nodes[n].Moving {
			class := r.p.FirstMovable + cp.Class
			for _, at := range cp.Pods {
				home, known := r.named[r.in.Homes[r.p.Input.Movable[cp.Class].Pods[at]]]
				if !known || r.st.Bins.At(home).Removed {
					continue
				}
				if level := r.p.Classes[class].LevelOn(int(home)); level >= 0 {
					out = append(out, state.Assignment{Bin: home, Relocated: state.Relocated{Class: int32(class), Count: 1, Level: level}})
				}
			}
		}
	}
	return out
}
