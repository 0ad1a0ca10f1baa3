package consolidate

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// ExpiryLead is how long before a node expires its replacement is bought: time
// enough for a machine to be launched, to join and to become ready, and for the
// node to be drained.
const ExpiryLead = 15 * time.Minute

// anyPrice is the budget where price does not matter.
const anyPrice = model.Money(math.MaxInt64 / 4)

// expires reports whether a node's end is near enough to prepare for.
func (s *site) expires(n int) bool {
	t := &s.fleet.Usages[n]
	return t.Policy >= 0 && !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(s.fleet.Now.Add(ExpiryLead))
}

// drifts reports whether a node has drifted.
func (s *site) drifts(n int) bool {
	t := &s.fleet.Usages[n]
	return t.Policy >= 0 && t.Drift != ""
}

// force empties the nodes that end soon and those that have drifted, one by one,
// whatever it costs. Such nodes take no pods in.
func (m *maker) force() {
	var expiring, drifting []int32
	for n := range m.nodes {
		if st := m.guardNode(n); st != nil && (st.Reason == model.ReasonBeingDisrupted || st.Reason == model.ReasonNotInitialized || st.Reason == model.ReasonMoveFailed) {
			continue
		}
		switch {
		case m.expires(n):
			expiring = append(expiring, int32(n))
		case m.drifts(n):
			drifting = append(drifting, int32(n))
		}
	}
	for _, n := range slices.Concat(expiring, drifting) {
		m.shelf.remove(n)
		m.nodes[n].host = false
	}
	slices.SortStableFunc(expiring, func(x, y int32) int {
		return m.fleet.Usages[x].ExpiresAt.Compare(m.fleet.Usages[y].ExpiresAt)
	})
	for _, n := range expiring {
		if st := m.awaited(int(n)); st != nil {
			m.refuse(&parcel{nodes: []int32{n}}, st)
			continue
		}
		m.replace(n, model.DisruptExpired)
	}
	slices.SortStableFunc(drifting, func(x, y int32) int {
		return cmp.Or(
			cmp.Compare(min(1, m.nodes[x].evictions), min(1, m.nodes[y].evictions)),
			m.fleet.Usages[x].DriftSince.Compare(m.fleet.Usages[y].DriftSince),
			strings.Compare(m.name(int(x)), m.name(int(y))),
		)
	})
	for _, n := range drifting {
		if st := m.guardDrift(n); st != nil {
			m.refuse(&parcel{nodes: []int32{n}}, st)
			continue
		}
		m.replace(n, model.DisruptDrifted)
	}
}

// guardDrift says why a drifted node cannot be replaced now, or nil.
func (m *maker) guardDrift(n int32) *model.KeptNode {
	t, l := &m.fleet.Usages[n], &m.nodes[n]
	if st := m.guardNode(int(n)); st != nil {
		return st
	}
	if st := m.awaited(int(n)); st != nil {
		return st
	}
	if st := m.guardPods(int(n)); st != nil && !(t.GracePeriod && st.Reason != model.ReasonPodInvalid) {
		return st
	}
	policy := &m.fleet.Policies[l.policy]
	allowed, limited := policy.Allowed[model.DisruptDrifted]
	if taken := int(m.takenEmpty[l.policy] + m.takenRunning[l.policy]); limited && taken >= allowed {
		return m.poolBudget(int(n), model.DisruptDrifted, allowed, taken)
	}
	if k := m.overspent(n); k >= 0 && !t.GracePeriod {
		return m.budgetSpent(int(n), k)
	}
	return nil
}

func (m *maker) poolBudget(n int, reason model.DisruptionReason, allowed, taken int) *model.KeptNode {
	return stay(n, model.ReasonPoolBudget, "The disruption budgets of NodePool %s allow %s for reason %s now, and the moves before %s take %d.",
		m.fleet.Policies[m.nodes[n].policy].Pool, plural(max(0, allowed), "more node"), reason, m.name(n), taken)
}

func (m *maker) budgetSpent(n, k int) *model.KeptNode {
	b := &m.fleet.Budgets[k]
	st := stay(n, model.ReasonPodBudget, "PodDisruptionBudget %s allows %s now; the moves before take %d of them and %s needs %d.",
		b, plural(b.Allowed, "eviction"), m.spent[k], m.name(n), m.tenantsOf(&m.nodes[n], k))
	st.Budget = b.String()
	return st
}

// overspent is a PodDisruptionBudget that keeps a node from being shut next to
// those that are, or -1.
func (b *board) overspent(n int32) int {
	l := &b.nodes[n]
	for _, t := range l.tenants {
		for _, k := range b.kinds[t.class].budgets {
			if b.spent[k] > 0 && int(b.spent[k]+b.tenantsOf(l, k)) > b.fleet.Budgets[k].Allowed {
				return k
			}
		}
	}
	return -1
}

// replace gives one node back, wherever its pods have to go.
func (m *maker) replace(n int32, reason model.DisruptionReason) {
	start := m.mark()
	m.needed = m.needed[:0]
	m.shop.noSpot = false
	m.shut(n)
	if m.fleet.Policies[m.nodes[n].policy].Static {
		for _, c := range m.needed {
			m.need[c] = 0
		}
		mv := m.describe(start, reason, []int32{n})
		mv.FromTemplate, mv.Saving = true, 0
		m.moves = append(m.moves, mv)
		return
	}
	if !m.house() && !m.purchase(anyPrice) {
		st := m.homeless(int(n))
		m.undo(start)
		m.refuse(&parcel{nodes: []int32{n}}, st)
		return
	}
	m.record(start, reason, []int32{n})
}

// dismissEmpty gives back the nodes on which nothing runs that costs anything to
// evict. Nodes that no pod leaves take no room from anybody.
func (m *maker) dismissEmpty() {
	for n := range m.nodes {
		l := &m.nodes[n]
		if l.stay != nil || !l.empty() || m.bins[n].shut || len(m.bins[n].guests) > 0 || !m.mayShut(int32(n)) {
			continue
		}
		start := m.mark()
		m.needed = m.needed[:0]
		m.shut(int32(n))
		if !m.house() {
			m.undo(start)
			continue
		}
		m.record(start, model.DisruptEmpty, []int32{int32(n)})
	}
}
