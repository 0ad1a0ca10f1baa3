package consolidate

import (
	"cmp"
	"fmt"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// makeRest tries, one by one, what the search meant to keep or what could not be
// made as it was meant.
func (m *maker) makeRest() {
	for n := range m.nodes {
		if !m.candidate(int32(n)) || m.bins[n].shut || len(m.bins[n].guests) > 0 {
			continue
		}
		start := m.mark()
		if m.attempt(&trial{shut: []int32{int32(n)}, buy: true}) > 0 {
			m.record(start, model.DisruptUnderutilized, []int32{int32(n)})
		}
	}
}

// stays says of every node of a NodePool that is kept why.
func (m *maker) stays() []model.KeptNode {
	var out []model.KeptNode
	for n := range m.nodes {
		l := &m.nodes[n]
		if l.policy < 0 || m.bins[n].shut && m.problem.Nodes[n].State != model.NodeLeaving {
			continue
		}
		st := m.refused[int32(n)]
		if st == nil || l.stay != nil && l.stay.Reason == model.ReasonReceivesPods {
			if l.stay != nil {
				st = l.stay
			}
		}
		if st == nil {
			st = m.whyKept(int32(n))
			m.rejected[st.Reason]++
		}
		out = append(out, *st)
	}
	return out
}

// whyKept tries to give a node back and says what speaks against it.
func (m *maker) whyKept(n int32) *model.KeptNode {
	l := &m.nodes[n]
	if st := cmp.Or(l.kept, m.budgetOf(n), l.later); st != nil {
		return st
	}
	start := m.mark()
	m.needed = m.needed[:0]
	t := trial{shut: []int32{n}}
	m.clear(&t)
	defer m.undo(start)
	if m.house() {
		return stay(int(n), model.ReasonNoCheaper, "%s costs %s and its pods have room elsewhere only together with other moves.", m.name(int(n)), l.price)
	}
	out := m.outside()
	before := m.price
	due := model.Money(l.toll) + m.fleet.Terms.LeastSaving(l.price)
	if m.shop.noSpot {
		m.shop.noSpot = false
		if m.purchase(l.price - due - 1) {
			return stay(int(n), model.ReasonSpotToSpot, "Spot node %s (%s) could be replaced by spot machines for %s, but replacing spot by spot is switched off.", m.name(int(n)), l.price, m.price-before)
		}
		m.shop.noSpot = true
	}
	if !m.purchase(anyPrice) {
		return m.homeless(int(n))
	}
	cost := m.price - before
	if cost < l.price {
		return stay(int(n), model.ReasonSmallSaving, "%s of %s fit on no other node, and the cheapest machines for them cost %s; with that, giving %s back saves %s of %s, and it would have to save %s.",
			out, m.name(int(n)), cost, m.name(int(n)), l.price-cost, l.price, due)
	}
	return stay(int(n), model.ReasonNoCheaper, "%s of %s fit on no other node, and the cheapest machines for them cost %s; %s costs %s.", out, m.name(int(n)), cost, m.name(int(n)), l.price)
}

// budgetOf says which budget keeps a node from being given back next to those
// that are, or nil.
func (m *maker) budgetOf(n int32) *model.KeptNode {
	if k := m.overspent(n); k >= 0 {
		return m.budgetSpent(int(n), k)
	}
	if m.withinPolicy(n) {
		return nil
	}
	l := &m.nodes[n]
	reason := model.DisruptUnderutilized
	if l.empty() {
		reason = model.DisruptEmpty
	}
	taken := int(m.takenEmpty[l.policy] + m.takenRunning[l.policy])
	return m.poolBudget(int(n), reason, m.fleet.Policies[l.policy].Allowed[reason], taken)
}

// outside names the pods that found no room.
func (m *maker) outside() string {
	text, classes := "", 0
	for _, c := range m.needed {
		if m.need[c] == 0 {
			continue
		}
		if classes++; classes == 1 {
			text = fmt.Sprintf("%s of %s", plural(int(m.need[c]), "pod"), m.owner(c))
		}
	}
	if classes > 1 {
		text += fmt.Sprintf(" and %s", plural(classes-1, "other group"))
	}
	return text
}

// owner names a class by its workload, or by its first pod.
func (s *site) owner(class int32) string {
	c := &s.problem.Classes[class]
	switch {
	case c.Owner != "":
		return c.Owner
	case len(c.Pods) > 0:
		return c.Pods[0].String()
	}
	return "no workload"
}

// homeless says of the pods that found neither room nor a machine what keeps
// them out.
func (m *maker) homeless(n int) *model.KeptNode {
	st := stay(n, model.ReasonNoPlace, "The pods of %s have no place elsewhere.", m.name(n))
	for _, c := range m.needed {
		if m.need[c] == 0 {
			continue
		}
		k := &m.kinds[c]
		st.Message = fmt.Sprintf("%s of %s on %s fit on no other node and on no machine that can be bought", plural(int(m.need[c]), "pod"), m.owner(c), m.name(n))
		if l := &m.fleet.Usages[n]; true {
			for _, cp := range l.Pods {
				if m.first+cp.Class == int(c) && len(cp.Pods) > 0 {
					st.Pod = m.fleet.Movable[cp.Class].Pods[cp.Pods[0]]
				}
			}
		}
		if refusal := m.refusal(k); refusal != nil {
			st.Reason = refusal.Reason
			st.Message += fmt.Sprintf(": where there is room there is %s, wanted is %s", refusal.Have, refusal.Want)
		} else if line := m.exhausted(c); line != nil {
			st.Reason = line.Reason
			st.Message += fmt.Sprintf(": %s leaves no room for one while %s exists", line.Name, m.name(n))
		}
		st.Message += "."
		break
	}
	return st
}

// exhausted is the limit or quota that keeps a machine for a pod of the class from
// being bought, or nil.
func (m *maker) exhausted(class int32) *feasible.Line {
	for o := range m.space.Allowed(feasible.ForClass, m.space.Pod(&m.problem.Classes[class])).All {
		option := &m.space.Options[o]
		if _, offering := m.space.Offering(o); !offering.Available || !under(m.kinds[class].own, m.project(option.Net)) {
			continue
		}
		for _, u := range option.Uses {
			if u.Amount > m.ledger.Left(u.Line) {
				return &m.space.Lines[u.Line]
			}
		}
	}
	return nil
}

// refusal is the rule of topology that keeps a pod from a bin that has room.
func (m *maker) refusal(k *kind) *topology.Refusal {
	last := len(k.levels) - 1
	for _, i := range m.shelf.bins {
		if i < 0 || m.bins[i].shut || !under(k.own, m.room(i)) {
			continue
		}
		if w := m.bins[i].ware; w >= 0 || !k.levels[last].Nodes.Has(int(i)) {
			continue
		}
		if r := m.counts.Refusal(k.levels[last].Rules, m.place(i)); r != nil {
			return r
		}
	}
	return nil
}

// LowerBound is a floor under the price per hour of any set of nodes that holds
// the fleet's pods: see [model.Commands].
func LowerBound(f *model.DisruptionProblem) model.Money { return newSite(f).bound() }
