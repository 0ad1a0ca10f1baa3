package consolidate

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// spotTypes is how many cheaper spot instance types a single spot node must have
// to choose from before it is replaced by one, and how many the replacement
// names: so the machine that is bought is among the cheapest, and not replaced
// again at once.
const spotTypes = 15

// balance is Karpenter's k of the policy Balanced: a move is worth it when its
// share of the pool's price is at least 1/k of its share of the pool's
// disruption.
const balance = 2

// judge says why a move of consolidation is not worth making, or nil. It narrows
// the alternatives of new machines to those with which the move is still worth
// it.
func (m *maker) judge(mv *model.Command) *model.KeptNode {
	terms := &m.fleet.Terms
	var nodes []int32
	var price model.Money
	cost, toll := 0.0, 0.0
	spot := true
	for _, n := range mv.Nodes {
		nodes = append(nodes, int32(n))
		price += m.nodes[n].price
		cost += m.nodes[n].cost
		toll += m.nodes[n].toll
		spot = spot && m.nodes[n].spot
	}
	n, names := mv.Nodes[0], m.names(nodes)
	if mv.Evictions == 0 && len(mv.New) == 0 {
		return nil
	}
	due := model.Money(toll)
	if mv.Saving < due || mv.Saving < 0 {
		return stay(n, model.ReasonDoesNotPay, "Giving back %s saves %s, which within %s earns less than evicting %s costs (%s each, %s in all)%s.",
			names, mv.Saving, model.FormatDuration(terms.Payback), plural(mv.Evictions, "pod"), dollars(terms.EvictionPrice), dollars(model.Money(float64(terms.EvictionPrice)*cost)), again(toll-m.rate*cost))
	}
	if len(mv.New) > 0 {
		least := terms.LeastSaving(price)
		if mv.Saving < least || mv.Saving == 0 {
			return stay(n, model.ReasonSmallSaving, "Replacing %s would save %s of %s, less than the minimum of %.0f%%.", names, mv.Saving, price, 100*terms.MinimumSaving)
		}
		if st := m.narrow(mv, spot, names, mv.Saving-max(due, least)); st != nil {
			return st
		}
	}
	return m.balanced(mv, price)
}

// narrow keeps the alternatives of new machines with which the move is worth it.
// Extra is how much of the saving may be given away.
func (m *maker) narrow(mv *model.Command, spot bool, names string, extra model.Money) *model.KeptNode {
	extra /= model.Money(len(mv.New))
	for i := range mv.New {
		node := &mv.New[i]
		best := node.Best()
		isSpot := m.capacityType(node, best) == model.Spot
		if isSpot && spot && !m.fleet.Terms.SpotToSpot {
			return stay(mv.Nodes[0], model.ReasonSpotToSpot, "%s could only be replaced by a cheaper spot node, and replacing spot by spot is switched off.", names)
		}
		mixed := false
		node.Offerings = slices.DeleteFunc(node.Offerings, func(o model.OfferingRef) bool {
			other := isSpot && m.capacityType(node, o) != model.Spot
			mixed = mixed || other
			return other || o.Price > best.Price+extra || o.Price == best.Price+extra && extra > 0 && len(mv.New) == 1 && o != best
		})
		if mixed {
			node.Requirements = pinSpot(node.Requirements)
		}
		if isSpot && spot && len(mv.Nodes) == 1 && len(mv.New) == 1 {
			if k := m.keepTypes(node, spotTypes); k < spotTypes {
				return stay(mv.Nodes[0], model.ReasonSpotTypes, "Replacing spot node %s by spot needs %d cheaper instance types to choose from, and there are %d.", names, spotTypes, k)
			}
		}
		if key, have, want := m.lacking(node); key != "" {
			return stay(mv.Nodes[0], model.ReasonMinValues, "The machines that could replace %s and are cheaper have %d of the %d values of %s that NodePool %s wants to choose from.",
				names, have, want, key, m.problem.Pools[node.Pool].Name)
		}
	}
	return nil
}

func (m *maker) capacityType(node *model.NewNode, ref model.OfferingRef) model.CapacityType {
	return m.typeOf(node, ref).Offerings[ref.Offering].CapacityType
}

func (m *maker) typeOf(node *model.NewNode, ref model.OfferingRef) *model.InstanceType {
	return &m.problem.Catalogs[m.problem.Pools[node.Pool].Catalog].InstanceTypes[ref.InstanceType]
}

// pinSpot adds that the machine is a spot one: should there be none, it is better
// to leave the node alone than to pay for an on-demand one.
func pinSpot(rs model.Requirements) model.Requirements {
	out := slices.DeleteFunc(slices.Clone(rs), func(r model.Requirement) bool { return r.Key == model.LabelCapacityType })
	return append(out, model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{string(model.Spot)}})
}

// keepTypes keeps the offerings of the cheapest so many instance types, more
// where minValues ask for that, and returns how many types there were.
func (m *maker) keepTypes(node *model.NewNode, n int) int {
	for _, r := range m.problem.Pools[node.Pool].Requirements {
		if !m.problem.Policy.RelaxMinValues {
			n = max(n, r.MinValues)
		}
	}
	seen := map[int]bool{}
	kept := map[int]bool{}
	for _, o := range node.Offerings {
		seen[o.InstanceType] = true
		if len(kept) < n {
			kept[o.InstanceType] = true
		}
	}
	node.Offerings = slices.DeleteFunc(node.Offerings, func(o model.OfferingRef) bool { return !kept[o.InstanceType] })
	return len(seen)
}

// lacking names a minValues requirement that the offerings do not meet.
func (m *maker) lacking(node *model.NewNode) (key string, have, want int) {
	if m.problem.Policy.RelaxMinValues {
		return "", 0, 0
	}
	pool := &m.problem.Pools[node.Pool]
	for _, r := range pool.Requirements {
		if r.MinValues == 0 {
			continue
		}
		values := map[string]bool{}
		for _, o := range node.Offerings {
			t := m.typeOf(node, o)
			offering := &t.Offerings[o.Offering]
			switch v, ok := offering.Labels[r.Key]; {
			case r.Key == model.LabelInstanceType:
				values[t.Name] = true
			case r.Key == model.LabelZone:
				values[offering.Zone] = true
			case r.Key == model.LabelCapacityType:
				values[string(offering.CapacityType)] = true
			case ok:
				values[v] = true
			default:
				if v, ok := t.Labels[r.Key]; ok {
					values[v] = true
				}
			}
		}
		if len(values) < r.MinValues {
			return r.Key, len(values), r.MinValues
		}
	}
	return "", 0, 0
}

// balanced judges a move by the policy Balanced of the pools that it takes nodes
// from; what it saves is theirs in proportion to what their nodes cost.
func (m *maker) balanced(mv *model.Command, price model.Money) *model.KeptNode {
	type share struct {
		price      model.Money
		disruption float64
	}
	shares := make([]share, len(m.pools))
	for _, n := range mv.Nodes {
		l := &m.nodes[n]
		shares[l.policy].price += l.price
		shares[l.policy].disruption += 1 + l.cost
	}
	for i, sh := range shares {
		if sh.disruption == 0 || m.fleet.Policies[i].Consolidation != model.Balanced {
			continue
		}
		saving := float64(mv.Saving)
		if price > 0 {
			saving *= float64(sh.price) / float64(price)
		}
		if savingShare, disruptionShare, ok := m.pools[i].approves(saving, sh.disruption); !ok {
			return stay(mv.Nodes[0], model.ReasonUnbalanced, "The move saves %.1f%% of what NodePool %s costs and causes %.1f%% of its disruption; Balanced wants at least half as much saving as disruption.",
				100*savingShare, m.fleet.Policies[i].Pool, 100*disruptionShare)
		}
	}
	return nil
}

// approves is Balanced's rule. A pool that costs nothing approves of nothing.
func (t *poolTotals) approves(saving, disruption float64) (savingShare, disruptionShare float64, ok bool) {
	if t.price <= 0 || t.disruption <= 0 {
		return 0, 0, false
	}
	savingShare, disruptionShare = saving/float64(t.price), disruption/t.disruption
	return savingShare, disruptionShare, savingShare >= disruptionShare/balance
}

func dollars(m model.Money) string {
	return "$" + trimmed(m.Dollars())
}

// again says that pods were moved a short time ago, for so much per hour.
func again(earned float64) string {
	if earned < 1 {
		return ""
	}
	return fmt.Sprintf(" and the %s that moving them here was to save", model.Money(earned))
}

// worthless says why giving back a node would not be worth it even if its pods
// found room without anything being bought, or nil.
func (s *site) worthless(n int) *model.KeptNode {
	l, terms := &s.nodes[n], &s.fleet.Terms
	if l.price <= 0 {
		return stay(n, model.ReasonDoesNotPay, "%s runs %s and costs nothing that nap knows of, so giving it back saves nothing.", s.name(n), plural(l.evictions, "pod"))
	}
	if float64(l.price) < l.toll {
		return stay(n, model.ReasonDoesNotPay, "Giving back %s saves %s, which within %s earns less than evicting its %s costs (%s each, %s in all)%s.",
			s.name(n), l.price, model.FormatDuration(terms.Payback), plural(l.evictions, "pod"), dollars(terms.EvictionPrice), dollars(model.Money(float64(terms.EvictionPrice)*l.cost)), again(l.toll-s.rate*l.cost))
	}
	policy := &s.fleet.Policies[l.policy]
	if policy.Consolidation != model.Balanced || l.empty() {
		return nil
	}
	if savingShare, disruptionShare, ok := s.pools[l.policy].approves(float64(l.price), 1+l.cost); !ok {
		return stay(n, model.ReasonUnbalanced, "%s is %.1f%% of what NodePool %s costs and giving it back causes %.1f%% of its disruption; Balanced wants at least half as much saving as disruption.",
			s.name(n), 100*savingShare, policy.Pool, 100*disruptionShare)
	}
	return nil
}
