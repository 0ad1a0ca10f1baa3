package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
)

// spotTypes is how many cheaper spot instance types a single spot node must have to
// choose from before one replaces it, and how many the replacement names. The node
// that is bought is then among the cheapest, and is not replaced again at once.
const spotTypes = 15

// terms are what a command of consolidation must be worth: it must earn its evictions,
// save the minimum, keep enough alternatives, and satisfy the policy Balanced.
type terms struct {
	p *compiled.Problem
	// scored is told of every score of the policy Balanced.
	scored func(model.BalancedScore)
}

// removed are the sums over the nodes that a command removes.
type removed struct {
	names string
	price model.Money
	// units and cost add up EvictionUnits and EvictionCost.
	units, cost float64
	// spot says that all of them are spot nodes.
	spot bool
}

func (t terms) sum(nodes []int) removed {
	out := removed{spot: true}
	var list []int32
	for _, n := range nodes {
		node := &t.p.Nodes[n]
		list = append(list, int32(n))
		out.price += node.Price
		out.units += node.EvictionUnits
		out.cost += node.EvictionCost
		out.spot = out.spot && node.Spot
	}
	out.names = t.p.NodeNames(list)
	return out
}

// apply says why a command of consolidation is not worth making, or is nil. It narrows
// the alternatives of its new nodes to those with which it is still worth it.
func (t terms) apply(c *model.Command) *model.KeptNode {
	if c.Evictions == 0 && len(c.New) == 0 {
		return nil
	}
	r := t.sum(c.Nodes)
	n := c.Nodes[0]
	due := model.Money(r.cost)
	if c.Saving < due || c.Saving < 0 {
		return t.p.DoesNotPay(n, r.names, "", c.Evictions, c.Saving, r.cost, r.units)
	}
	if len(c.New) > 0 {
		share := t.p.Input.LeastShare(c)
		least := model.Money(share * float64(r.price))
		if c.Saving < least || c.Saving == 0 {
			return compiled.Keep(n, model.ReasonSmallSaving, "Replacing %s would save %s of %s, less than the minimum of %.0f%%%s.",
				r.names, c.Saving, r.price, 100*share, t.forMore(share))
		}
		if why := t.narrow(c, &r, c.Saving-max(due, least)); why != nil {
			return why
		}
	}
	return t.balanced(c, r.price)
}

// forMore says that a minimum holds for commands that leave more machines, unless it holds
// for all.
func (t terms) forMore(share float64) string {
	if share > t.p.Input.Terms.MinimumSaving {
		return " for more machines"
	}
	return ""
}

// narrow keeps the alternatives of new nodes with which the command is still worth it:
// extra is how much of the saving may be given away, in equal parts. It says why too
// few are left, or is nil.
func (t terms) narrow(c *model.Command, r *removed, extra model.Money) *model.KeptNode {
	extra /= model.Money(len(c.New))
	n := c.Nodes[0]
	for i := range c.New {
		node := &c.New[i]
		choice := t.choiceOf(node)
		best := node.Best()
		isSpot, onDemand := choice.capacityType(best) == model.Spot, t.onDemand(r, node, choice)
		if why := t.spotBlock(n, r, choice, isSpot, onDemand(best)); why != nil {
			return why
		}
		mixed := false
		node.Offerings = slices.DeleteFunc(node.Offerings, func(o model.OfferingRef) bool {
			other := isSpot != (choice.capacityType(o) == model.Spot) && (isSpot || r.spot && !t.p.Input.Terms.SpotToSpot)
			mixed = mixed || other
			return other || onDemand(o) || o.Price > best.Price+extra || o.Price == best.Price+extra && extra > 0 && len(c.New) == 1 && o != best
		})
		if mixed {
			node.Requirements = choice.requireCapacityTypes()
		}
		if isSpot && r.spot && len(c.Nodes) == 1 && len(c.New) == 1 {
			if k := choice.keepTypes(spotTypes); k < spotTypes {
				return compiled.Keep(n, model.ReasonSpotTypes,
					"Replacing spot node %s by spot needs %d cheaper instance types to choose from, and there are %d.", r.names, spotTypes, k)
			}
		}
		if key, have, want := choice.lacking(); key != "" {
			return compiled.Keep(n, model.ReasonMinValues,
				"The machines that could replace %s and are cheaper have %d of the %d values of %s that NodePool %s wants to choose from.",
				r.names, have, want, key, choice.pool.Name)
		}
	}
	return nil
}

// spotBlock says why spot nodes are not replaced by a new node, which is a spot one or an on-demand
// one that is ruled out, or is nil.
func (t terms) spotBlock(n int, r *removed, choice choice, isSpot, ruledOut bool) *model.KeptNode {
	switch {
	case isSpot && r.spot && !t.p.Input.Terms.SpotToSpot:
		return compiled.Keep(n, model.ReasonSpotToSpot,
			"%s could only be replaced by a cheaper spot node, and replacing spot by spot is switched off.", r.names)
	case ruledOut:
		return compiled.Keep(n, model.ReasonNoCheaper,
			"%s could only be replaced by an on-demand node, and its pods and NodePool %s allow spot.", r.names, choice.pool.Name)
	}
	return nil
}

// onDemand says of offerings whether a new node must not be one of them: only spot nodes are
// removed, it is an on-demand one, and some of the pods may be on spot in the NodePool.
func (t terms) onDemand(r *removed, node *model.NewNode, choice choice) func(model.OfferingRef) bool {
	return func(ref model.OfferingRef) bool {
		offering := &choice.types[ref.InstanceType].Offerings[ref.Offering]
		return r.spot && slices.ContainsFunc(node.Pods, func(cp model.ClassPods) bool {
			return t.p.StaysSpot(int32(t.p.FirstMovable+cp.Class), node.Pool, offering)
		})
	}
}

// requireCapacityTypes adds to the node's requirements the capacity types of its offerings. Should
// there be no spot node, it is better to leave the nodes alone than to pay for an on-demand one.
func (c choice) requireCapacityTypes() model.Requirements {
	out := slices.DeleteFunc(slices.Clone(c.node.Requirements), func(r model.Requirement) bool { return r.Key == model.LabelCapacityType })
	var types []string
	for _, o := range c.node.Offerings {
		if is := string(c.capacityType(o)); !slices.Contains(types, is) {
			types = append(types, is)
		}
	}
	slices.Sort(types)
	return append(out, model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: types})
}

// balanced applies the policy Balanced of the pools that a command removes nodes of.
// What it saves is theirs in proportion to what their nodes cost.
func (t terms) balanced(c *model.Command, price model.Money) *model.KeptNode {
	shares := make([]compiled.PoolTotals, len(t.p.Pools))
	for _, n := range c.Nodes {
		node := &t.p.Nodes[n]
		shares[node.Policy].Price += node.Price
		shares[node.Policy].Disruption += 1 + node.EvictionUnits
	}
	for i, share := range shares {
		policy := &t.p.Input.Policies[i]
		if share.Disruption == 0 || policy.Consolidation != model.Balanced {
			continue
		}
		saving := float64(c.Saving)
		if price > 0 {
			saving *= float64(share.Price) / float64(price)
		}
		savingShare, disruptionShare, ok := eligibility.Balanced(&t.p.Pools[i], saving, share.Disruption)
		t.scored(model.BalancedScore{Policy: i, Nodes: c.Nodes, Saving: savingShare, Disruption: disruptionShare, Approved: ok})
		if !ok {
			return compiled.Keep(c.Nodes[0], model.ReasonUnbalanced, "The move saves %.1f%% of what NodePool %s costs and "+
				"causes %.1f%% of its disruption; Balanced wants at least half as much saving as disruption.",
				100*savingShare, policy.Pool, 100*disruptionShare)
		}
	}
	return nil
}

// choice is the alternatives of a new node.
type choice struct {
	node  *model.NewNode
	pool  *model.Pool
	types []model.InstanceType
	// relaxed says that minValues need not be met.
	relaxed bool
}

func (t terms) choiceOf(node *model.NewNode) choice {
	p := t.p.Planning
	pool := &p.Pools[node.Pool]
	return choice{node, pool, p.Catalogs[pool.Catalog].InstanceTypes, p.Policy.RelaxMinValues}
}

func (c choice) capacityType(ref model.OfferingRef) model.CapacityType {
	return c.types[ref.InstanceType].Offerings[ref.Offering].CapacityType
}

// keepTypes keeps the offerings of the n cheapest instance types, more where minValues
// ask for that, and returns how many types there were.
func (c choice) keepTypes(n int) int {
	for _, r := range c.pool.Requirements {
		if !c.relaxed {
			n = max(n, r.MinValues)
		}
	}
	seen, kept := map[int]bool{}, map[int]bool{}
	for _, o := range c.node.Offerings {
		seen[o.InstanceType] = true
		if len(kept) < n {
			kept[o.InstanceType] = true
		}
	}
	c.node.Offerings = slices.DeleteFunc(c.node.Offerings, func(o model.OfferingRef) bool { return !kept[o.InstanceType] })
	return len(seen)
}

// lacking names a minValues requirement that the offerings do not meet, with how many
// values they have and how many it wants; empty when they meet all.
func (c choice) lacking() (key string, have, want int) {
	if c.relaxed {
		return "", 0, 0
	}
	for _, r := range c.pool.Requirements {
		if r.MinValues == 0 {
			continue
		}
		values := map[string]bool{}
		for _, o := range c.node.Offerings {
			if v, ok := c.value(o, r.Key); ok {
				values[v] = true
			}
		}
		if len(values) < r.MinValues {
			return r.Key, len(values), r.MinValues
		}
	}
	return "", 0, 0
}

// value is the value that a node of an offering has for a label.
func (c choice) value(ref model.OfferingRef, key string) (string, bool) {
	t := &c.types[ref.InstanceType]
	offering := &t.Offerings[ref.Offering]
	switch key {
	case model.LabelInstanceType:
		return t.Name, true
	case model.LabelZone:
		return offering.Zone, true
	case model.LabelCapacityType:
		return string(offering.CapacityType), true
	}
	if v, ok := offering.Labels[key]; ok {
		return v, true
	}
	v, ok := t.Labels[key]
	return v, ok
}
