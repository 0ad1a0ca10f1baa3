package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// maker makes moves on a board, one after the other, and writes them down.
type maker struct {
	*board
	moves    []model.Command
	rejected map[model.Reason]int64
	// refused remembers why a node was not given back though the search had meant
	// to.
	refused map[int32]*model.KeptNode
}

// makeTarget makes what the search has found, on the board as it was before.
func (m *maker) makeTarget(target *parcel) {
	m.undo(0)
	m.shelf.fill(m.board)
	m.makeAll(m.split(target))
}

// makeAll makes the target's parcels: those that save most for their disruption
// first. What turns out not to be worth it, or not to be feasible in this order,
// is left out.
func (m *maker) makeAll(parcels []parcel) {
	score := make([]float64, len(parcels))
	order := make([]int, len(parcels))
	for i := range parcels {
		order[i] = i
		saving, cost := m.saving(&parcels[i])
		score[i] = float64(saving) / (cost + 0.01)
		for _, n := range parcels[i].nodes { // nobody moves to where he would have to move on from
			m.shelf.remove(n)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		switch {
		case score[x] > score[y]:
			return -1
		case score[x] < score[y]:
			return 1
		}
		return int(parcels[x].first() - parcels[y].first())
	})
	for _, i := range order {
		m.make(&parcels[i])
	}
}

func (p *parcel) first() int32 {
	if len(p.nodes) == 0 {
		return -1
	}
	return p.nodes[0]
}

func (m *maker) saving(p *parcel) (saving model.Money, cost float64) {
	for _, n := range p.nodes {
		saving += m.nodes[n].price
		cost += m.nodes[n].cost
	}
	for _, mc := range p.machines {
		saving -= m.menu[mc.ware].price
	}
	return saving, cost
}

// make makes one parcel, or leaves the board as it was.
func (m *maker) make(p *parcel) bool {
	start := m.mark()
	m.needed = m.needed[:0]
	for _, n := range p.nodes {
		if !m.mayShut(n) {
			m.undo(start)
			return false
		}
		m.shut(n)
	}
	m.sortNeeded()
	if m.buildLoosely(p) {
		return m.record(start, model.DisruptUnderutilized, p.nodes)
	}
	if !m.build(p) {
		m.undo(start)
		return m.refuse(p, stay(int(p.first()), model.ReasonLimit, "Limits or quotas leave no room for the machine that would replace %s while both exist.", m.names(p.nodes)))
	}
	if !m.nobodyWaits() && !m.house() && !m.purchase(m.slackOf(p)) {
		m.undo(start)
		return m.refuse(p, stay(int(p.first()), model.ReasonNoPlace, "The pods of %s have no place together with the moves before.", m.names(p.nodes)))
	}
	return m.record(start, model.DisruptUnderutilized, p.nodes)
}

// buildLoosely buys a parcel's machines and lets the pods find places by
// themselves. It reports whether all have places and every machine has pods.
//
// Nobody tells the scheduler where the parcel has a pod's place, so arrangements
// that come about by themselves are better than those that must be told.
func (m *maker) buildLoosely(p *parcel) bool {
	start := m.mark()
	for _, mc := range p.machines {
		ware := &m.menu[mc.ware]
		if m.shop.noSpot && ware.spot || !m.ledger.Admits(ware.option) {
			m.undo(start)
			return false
		}
		m.buy(mc.ware)
	}
	if m.house() && !m.wasteful(start) {
		return true
	}
	m.undo(start)
	return false
}

// wasteful reports whether a machine that was bought since the mark has no pods, or
// too few kinds of machines to choose from.
func (m *maker) wasteful(start int) bool {
	for at := start; at < len(m.log); at++ {
		if c := &m.log[at]; c.kind == didBuy && (len(m.bins[c.bin].guests) == 0 || !m.variedEnough(c.bin)) {
			return true
		}
	}
	return false
}

// slackOf is what may be spent on top of the parcel's machines.
func (m *maker) slackOf(p *parcel) model.Money {
	saving, _ := m.saving(p)
	for _, n := range p.nodes {
		saving -= model.Money(m.nodes[n].toll)
	}
	return max(0, saving-1)
}

// record writes down as a move what was done since the mark, if it is worth it;
// otherwise it is taken back.
func (m *maker) record(start int, reason model.DisruptionReason, nodes []int32) bool {
	if st := m.strained(start, nodes); st != nil {
		m.undo(start)
		return m.refuse(&parcel{nodes: nodes}, st)
	}
	mv := m.describe(start, reason, nodes)
	if reason == model.DisruptUnderutilized || reason == model.DisruptEmpty {
		if mv.DisruptionCost == float64(len(nodes)) && len(mv.New) == 0 {
			mv.Reason = model.DisruptEmpty
		}
		if st := m.judge(&mv); st != nil {
			m.undo(start)
			return m.refuse(&parcel{nodes: nodes}, st)
		}
	}
	for at := start; at < len(m.log); at++ {
		switch c := &m.log[at]; {
		case c.kind == didBuy:
			m.bins[c.bin].frozen = true
			m.shelf.remove(c.bin)
		case c.kind == didPut && m.node(c.bin) && m.nodes[c.bin].stay == nil:
			m.nodes[c.bin].stay = stay(int(c.bin), model.ReasonReceivesPods, "%s takes in pods of %s.", m.name(int(c.bin)), m.names(nodes))
		}
	}
	m.moves = append(m.moves, mv)
	return true
}

// refuse remembers why a parcel's nodes stay.
func (m *maker) refuse(p *parcel, st *model.KeptNode) bool {
	m.rejected[st.Reason]++
	for _, n := range p.nodes {
		own := *st
		own.Node = int(n)
		m.refused[n] = &own
	}
	return false
}

// describe reads a move from the log.
func (m *maker) describe(start int, reason model.DisruptionReason, nodes []int32) model.Command {
	mv := model.Command{Reason: reason, DisruptionCost: float64(len(nodes))}
	pods := map[int32][]int{}
	for _, n := range nodes {
		mv.Nodes = append(mv.Nodes, int(n))
		l := &m.nodes[n]
		mv.Saving += l.price
		mv.Evictions += l.evictions
		mv.DisruptionCost += l.cost
		for _, cp := range m.fleet.Usages[n].Pods {
			class := int32(m.first + cp.Class)
			pods[class] = append(pods[class], cp.Pods...)
		}
	}
	slices.Sort(mv.Nodes)
	homes := map[int32][]guest{}
	var order []int32
	for at := start; at < len(m.log); at++ {
		c := &m.log[at]
		if c.kind != didPut && c.kind != didBuy {
			continue
		}
		if _, known := homes[c.bin]; !known {
			order = append(order, c.bin)
			homes[c.bin] = nil
		}
		if c.kind == didPut {
			homes[c.bin] = append(homes[c.bin], guest{c.class, c.n, c.level})
		}
	}
	slices.Sort(order)
	for _, i := range order {
		var list []model.ClassPods
		slices.SortStableFunc(homes[i], func(x, y guest) int { return int(x.class - y.class) })
		for _, g := range homes[i] {
			class := int(g.class) - m.first
			if last := len(list) - 1; last >= 0 && list[last].Class == class {
				list[last].Pods = append(list[last].Pods, pods[g.class][:g.n]...)
			} else {
				list = append(list, model.ClassPods{Class: class, Pods: slices.Clone(pods[g.class][:g.n])})
			}
			pods[g.class] = pods[g.class][g.n:]
		}
		if m.node(i) {
			mv.Placements = append(mv.Placements, model.Placement{Node: int(i), Pods: list})
			continue
		}
		node := m.newNode(i)
		node.Pods = list
		mv.Saving -= node.Best().Price
		mv.New = append(mv.New, node)
	}
	return mv
}

// newNode describes a machine of the board; what is left of limits is counted
// without it.
func (m *maker) newNode(i int32) model.NewNode {
	option := m.menu[m.bins[i].ware].option
	m.ledger.Take(option, -1)
	node := m.ground.Machine(m.ledger, option, m.guestList(i))
	m.ledger.Take(option, 1)
	node.Offerings = slices.Clone(node.Offerings)
	return node
}

// names lists nodes for messages.
func (s *site) names(nodes []int32) string {
	text := ""
	for i, n := range nodes {
		switch {
		case i == 3 && len(nodes) > 4:
			return text + " and " + plural(len(nodes)-3, "other")
		case i > 0:
			text += ", "
		}
		text += s.name(int(n))
	}
	return text
}
