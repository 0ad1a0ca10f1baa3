package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// board is the fleet as it would be: which nodes are shut, which machines are
// bought, and where the pods of shut nodes went. Every change is written to a log
// and can be taken back, so that trying a set of nodes costs no copy of
// anything. Bins are numbered: nodes by their index, then machines.
type board struct {
	*site
	counts *topology.Counts
	ledger *feasible.Ledger
	bins   []bin
	// free is what the bins have left, d numbers each.
	free []int64
	// spent counts evictions by PodDisruptionBudget, taken the nodes shut by
	// policy, of empty nodes and of others.
	spent        []int32
	takenEmpty   []int32
	takenRunning []int32
	// price of all that is open, toll that of all nodes that are shut.
	price model.Money
	toll  float64
	log   []change
	shelf shelf
	// booked are the options of machines that are bought for pods that wait.
	booked []int
	// need are the pods that are to be housed, by class; needed lists the classes.
	need   []int32
	needed []int32
	// scratch is a vector for loads, pods a list for asking about machines.
	scratch []int64
	shop    shop
	// unbounded says that budgets which allow something are not to be counted.
	unbounded bool
	// trials counts the sets of nodes that were evaluated.
	trials int64
}

// bin is a node or a machine to be bought.
type bin struct {
	// ware indexes the menu, -1 for nodes.
	ware int32
	shut bool
	// frozen machines are bought for a move that other moves do not count on.
	frozen bool
	// guests are pods that moved in.
	guests   []guest
	ports    []model.HostPort
	attached []model.Volume
}

// guest is a number of pods of a class that moved in at one level of preferences.
type guest struct {
	class, n int32
	level    int8
}

type changeKind int8

const (
	didPut changeKind = iota
	didLift
	didShut
	didBuy
)

// change is one entry of the log.
type change struct {
	kind  changeKind
	level int8
	// fresh says that putting began a new entry of guests.
	fresh        bool
	bin, class   int32
	n            int32
	ports, disks int32
	guests       []guest
}

func newBoard(s *site) *board {
	b := &board{
		site: s, counts: s.ground.Topology.NewCounts(nil), ledger: s.space.NewLedger(),
		spent: make([]int32, len(s.fleet.Budgets)), takenEmpty: make([]int32, len(s.fleet.Policies)), takenRunning: make([]int32, len(s.fleet.Policies)),
		need: make([]int32, len(s.kinds)), scratch: make([]int64, s.d),
	}
	for n := range s.problem.Nodes {
		node := &s.problem.Nodes[n]
		b.bins = append(b.bins, bin{ware: -1, shut: node.State == model.NodeLeaving, ports: slices.Clip(node.HostPorts), attached: slices.Clip(node.Attached)})
		b.free = append(b.free, s.project(s.space.NodeFree(n))...)
		b.price += node.Price
	}
	b.shop.init(b)
	b.shelf.fill(b)
	return b
}

func (b *board) room(bin int32) []int64 {
	at := int(bin) * b.d
	return b.free[at : at+b.d : at+b.d]
}

// place is a bin as topology sees it.
func (b *board) place(i int32) topology.Place {
	if w := b.bins[i].ware; w >= 0 {
		return topology.Place{ID: int(i), Node: -1, Option: b.menu[w].option}
	}
	return placeOf(int(i))
}

// node reports whether a bin is a node that exists.
func (b *board) node(i int32) bool { return int(i) < len(b.nodes) }

// want adds pods to those that are to be housed.
func (b *board) want(class, n int32) {
	if b.need[class] == 0 {
		b.needed = append(b.needed, class)
	}
	b.need[class] += n
}

// fits is how many of the wanted pods the bin's room and ports hold.
func (b *board) fits(k *kind, i, want int32) int32 {
	room := b.room(i)
	if len(k.shared) > 0 || len(k.ports) > 0 {
		return b.fitsOddly(k, i, want)
	}
	n := int64(want)
	for d, size := range k.own {
		if size > room[d] {
			return 0
		}
		if size > 0 && size*n > room[d] {
			n = room[d] / size
		}
	}
	return int32(n)
}

// fitsOddly is fits for pods with host ports or disks in common.
func (b *board) fitsOddly(k *kind, i, want int32) int32 {
	if len(k.ports) > 0 && feasible.PortsClash(k.ports, b.bins[i].ports) {
		return 0
	}
	room := b.room(i)
	copy(b.scratch, room)
	for j, v := range k.shared {
		if !slices.Contains(b.bins[i].attached, v) {
			b.scratch[k.sharedDim[j]]--
		}
	}
	n := int64(want)
	for d, size := range k.own {
		if b.scratch[d] < size || b.scratch[d] < 0 {
			return 0
		}
		if size > 0 {
			n = min(n, b.scratch[d]/size)
		}
	}
	if len(k.ports) > 0 {
		n = min(n, 1)
	}
	return int32(n)
}

// put lets n pods of a class move in.
func (b *board) put(i, class int32, level int8, n int32) {
	k, bn := &b.kinds[class], &b.bins[i]
	c := change{kind: didPut, bin: i, class: class, level: level, n: n, ports: int32(len(bn.ports)), disks: int32(len(bn.attached))}
	room := b.room(i)
	for j, v := range k.shared {
		if !slices.Contains(bn.attached, v) {
			room[k.sharedDim[j]]--
			bn.attached = append(bn.attached, v)
		}
	}
	bn.ports = append(bn.ports, k.ports...)
	for d, size := range k.own {
		room[d] -= size * int64(n)
	}
	if last := len(bn.guests) - 1; last >= 0 && bn.guests[last].class == class && bn.guests[last].level == level {
		bn.guests[last].n += n
	} else {
		c.fresh = true
		bn.guests = append(bn.guests, guest{class, n, level})
	}
	if !k.plain {
		b.counts.Add(int(class), b.place(i), int(n))
	}
	b.need[class] -= n
	b.log = append(b.log, c)
}

func (b *board) unput(c *change) {
	k, bn := &b.kinds[c.class], &b.bins[c.bin]
	room := b.room(c.bin)
	for range len(bn.attached) - int(c.disks) {
		v := bn.attached[len(bn.attached)-1]
		room[k.sharedDim[slices.Index(k.shared, v)]]++
		bn.attached = bn.attached[:len(bn.attached)-1]
	}
	bn.ports = bn.ports[:c.ports]
	for d, size := range k.own {
		room[d] += size * int64(c.n)
	}
	if last := len(bn.guests) - 1; c.fresh {
		bn.guests = bn.guests[:last]
	} else {
		bn.guests[last].n -= c.n
	}
	if !k.plain {
		b.counts.Add(int(c.class), b.place(c.bin), -int(c.n))
	}
	b.need[c.class] += c.n
	b.shelf.grew(b, c.bin)
}

// lift takes all plain guests off an open bin; they need a place again.
func (b *board) lift(i int32) {
	bn := &b.bins[i]
	if len(bn.guests) == 0 {
		return
	}
	for _, g := range bn.guests {
		if k := &b.kinds[g.class]; len(k.ports)+len(k.shared) > 0 {
			return // what they share with others on the bin is not told apart
		}
	}
	room := b.room(i)
	for _, g := range bn.guests {
		k := &b.kinds[g.class]
		for d, size := range k.own {
			room[d] += size * int64(g.n)
		}
		if !k.plain {
			b.counts.Add(int(g.class), b.place(i), -int(g.n))
		}
		b.want(g.class, g.n)
	}
	b.log = append(b.log, change{kind: didLift, bin: i, guests: bn.guests})
	bn.guests = nil
	b.shelf.grew(b, i)
}

func (b *board) unlift(c *change) {
	bn, room := &b.bins[c.bin], b.room(c.bin)
	bn.guests = c.guests
	for _, g := range bn.guests {
		k := &b.kinds[g.class]
		b.need[g.class] -= g.n
		for d, size := range k.own {
			room[d] -= size * int64(g.n)
		}
		if !k.plain {
			b.counts.Add(int(g.class), b.place(c.bin), int(g.n))
		}
	}
}

// mayShut reports whether a node may be shut next to those that are shut already:
// PodDisruptionBudgets and the NodePool's budgets leave room. A node that alone
// holds more pods of a budget than may be evicted at once is drained one pod
// after the other, and is then the only one that draws on that budget.
func (b *board) mayShut(n int32) bool {
	l := &b.nodes[n]
	if b.bins[n].shut || l.policy < 0 || !b.withinPolicy(n) {
		return false
	}
	if b.unbounded {
		return true
	}
	for _, t := range l.tenants {
		for _, k := range b.kinds[t.class].budgets {
			if b.spent[k] > 0 && int(b.spent[k]+b.tenantsOf(l, k)) > b.fleet.Budgets[k].Allowed {
				return false
			}
		}
	}
	return true
}

// withinPolicy reports whether the NodePool's budgets allow one more node. They
// count all nodes in disruption, whatever the reason. A node that is empty only
// because its pods cost nothing to evict may need a replacement, and then is not
// given back for being empty.
func (b *board) withinPolicy(n int32) bool {
	l := &b.nodes[n]
	taken := int(b.takenEmpty[l.policy] + b.takenRunning[l.policy])
	within := func(reason model.DisruptionReason) bool {
		allowed, limited := b.fleet.Policies[l.policy].Allowed[reason]
		return !limited || taken < allowed || b.unbounded && allowed > 0
	}
	return (!l.empty() || within(model.DisruptEmpty)) && (l.evictions == 0 || within(model.DisruptUnderutilized))
}

// tenantsOf counts the node's pods that a PodDisruptionBudget speaks of.
func (b *board) tenantsOf(l *lodging, budget int) int32 {
	var n int32
	for _, t := range l.tenants {
		if slices.Contains(b.kinds[t.class].budgets, budget) {
			n += t.n
		}
	}
	return n
}

// shut gives a node or a machine up; its pods need a place.
func (b *board) shut(i int32) {
	bn := &b.bins[i]
	bn.shut = true
	b.account(i, 1)
	if b.node(i) {
		l := &b.nodes[i]
		for _, t := range l.tenants {
			if !b.kinds[t.class].plain {
				b.counts.Add(int(t.class), b.place(i), -int(t.n))
			}
			b.want(t.class, t.n)
		}
	}
	for _, g := range bn.guests {
		if !b.kinds[g.class].plain {
			b.counts.Add(int(g.class), b.place(i), -int(g.n))
		}
		b.want(g.class, g.n)
	}
	b.log = append(b.log, change{kind: didShut, bin: i, guests: bn.guests})
	bn.guests = nil
}

func (b *board) unshut(c *change) {
	bn := &b.bins[c.bin]
	bn.shut, bn.guests = false, c.guests
	b.account(c.bin, -1)
	if b.node(c.bin) {
		for _, t := range b.nodes[c.bin].tenants {
			b.need[t.class] -= t.n
			if !b.kinds[t.class].plain {
				b.counts.Add(int(t.class), b.place(c.bin), int(t.n))
			}
		}
	}
	for _, g := range bn.guests {
		b.need[g.class] -= g.n
		if !b.kinds[g.class].plain {
			b.counts.Add(int(g.class), b.place(c.bin), int(g.n))
		}
	}
	b.shelf.grew(b, c.bin)
}

// account books what shutting a bin does to sums and budgets, or its opposite.
func (b *board) account(i int32, sign int32) {
	if w := b.bins[i].ware; w >= 0 {
		b.price -= model.Money(sign) * b.menu[w].price
		b.ledger.Take(b.menu[w].option, -int(sign))
		return
	}
	l := &b.nodes[i]
	b.price -= model.Money(sign) * l.price
	b.toll += float64(sign) * l.toll
	if l.policy >= 0 {
		if l.empty() {
			b.takenEmpty[l.policy] += sign
		} else {
			b.takenRunning[l.policy] += sign
		}
	}
	for _, t := range l.tenants {
		for _, k := range b.kinds[t.class].budgets {
			b.spent[k] += sign * t.n
		}
	}
}

// buy opens a machine.
func (b *board) buy(ware int32) int32 {
	i := int32(len(b.bins))
	w := &b.menu[ware]
	option := &b.space.Options[w.option]
	b.bins = append(b.bins, bin{ware: ware, ports: slices.Clip(b.space.DaemonSets[option.Daemons].Ports)})
	b.free = append(b.free, w.net...)
	b.price += w.price
	b.ledger.Take(w.option, 1)
	b.shelf.push(b, i)
	b.log = append(b.log, change{kind: didBuy, bin: i})
	return i
}

func (b *board) unbuy(c *change) {
	w := &b.menu[b.bins[c.bin].ware]
	b.shelf.pop(b)
	b.bins = b.bins[:c.bin]
	b.free = b.free[:int(c.bin)*b.d]
	b.price -= w.price
	b.ledger.Take(w.option, -1)
}

// mark is where the log is now.
func (b *board) mark() int { return len(b.log) }

// undo takes back everything since the mark.
func (b *board) undo(mark int) {
	for len(b.log) > mark {
		c := &b.log[len(b.log)-1]
		switch c.kind {
		case didPut:
			b.unput(c)
		case didLift:
			b.unlift(c)
		case didShut:
			b.unshut(c)
		case didBuy:
			b.unbuy(c)
		}
		b.log = b.log[:len(b.log)-1]
	}
}
