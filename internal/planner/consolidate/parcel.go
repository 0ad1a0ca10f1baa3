package consolidate

import (
	"cmp"
	"slices"
)

// machine is a machine of the target with the pods that it holds.
type machine struct {
	ware int32
	pods []guest
}

// slot is room on a node that stays, taken by pods that moved in.
type slot struct {
	bin int32
	guest
}

// parcel is nodes to give back, machines to buy, and where pods go: all that the
// search ended with, or a part of it that can be made without the rest.
type parcel struct {
	nodes    []int32
	machines []machine
	slots    []slot
}

// target reads the board's difference from the fleet as it is.
func (b *board) target() *parcel {
	t := &parcel{}
	for at := range b.log {
		if c := &b.log[at]; c.kind == didShut && b.node(c.bin) {
			t.nodes = append(t.nodes, c.bin)
		}
	}
	slices.Sort(t.nodes)
	for i := range b.bins {
		bn := &b.bins[i]
		switch {
		case bn.shut || len(bn.guests) == 0:
		case b.node(int32(i)):
			for _, g := range bn.guests {
				t.slots = append(t.slots, slot{int32(i), g})
			}
		case !bn.frozen:
			t.machines = append(t.machines, machine{bn.ware, slices.Clone(bn.guests)})
		}
	}
	return t
}

// splitter deals the pods of nodes that go to machines and slots, such that as
// few nodes as possible share a machine.
type splitter struct {
	*site
	t *parcel
	// left is what of every node's tenants has no place yet, in the order of the
	// site's tenants.
	left [][]int32
	// holders lists, per class, the nodes with such tenants.
	holders map[int32][]int
	// boss joins nodes, and the machines behind them, that belong together.
	boss []int
}

// split cuts the target into parcels.
func (s *site) split(t *parcel) []parcel {
	sp := &splitter{site: s, t: t, holders: map[int32][]int{}}
	for at, n := range t.nodes {
		var left []int32
		for _, g := range s.nodes[n].tenants {
			left = append(left, g.n)
			sp.holders[g.class] = append(sp.holders[g.class], at)
		}
		sp.left = append(sp.left, left)
	}
	sp.boss = make([]int, len(t.nodes)+len(t.machines))
	for i := range sp.boss {
		sp.boss[i] = i
	}
	order := make([]int, len(t.machines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(s.menu[t.machines[y].ware].price, s.menu[t.machines[x].ware].price)
	})
	for _, m := range order {
		sp.dealMachine(m)
	}
	return sp.parcels()
}

func (sp *splitter) root(i int) int {
	for sp.boss[i] != i {
		sp.boss[i] = sp.boss[sp.boss[i]]
		i = sp.boss[i]
	}
	return i
}

// most is among how many nodes that have a pod of the wanted class the best one
// is chosen.
const most = 128

// dealMachine finds the nodes whose pods go to a machine.
func (sp *splitter) dealMachine(m int) {
	need := slices.Clone(sp.t.machines[m].pods)
	self := len(sp.t.nodes) + m
	worth := func(g guest) float64 { return sp.kinds[g.class].worth * float64(g.n) }
	for {
		largest := -1
		for i := range need {
			if need[i].n > 0 && (largest < 0 || worth(need[i]) > worth(need[largest])) {
				largest = i
			}
		}
		if largest < 0 {
			return
		}
		best, score := -1, 0.0
		seen := 0
		for _, at := range sp.holders[need[largest].class] {
			if sp.has(at, need[largest].class) == 0 {
				continue
			}
			value := 1.0
			for i := range need {
				value += sp.kinds[need[i].class].worth * float64(min(need[i].n, sp.has(at, need[i].class)))
			}
			switch root := sp.root(at); {
			case root == sp.root(self):
				value *= 1e6 // it belongs to this machine anyway
			case root != at || sp.engaged(at):
				value *= 1e-6 // it would tie two machines together
			}
			if best < 0 || value > score {
				best, score = at, value
			}
			if seen++; seen >= most {
				break
			}
		}
		if best < 0 {
			return // cannot be: every guest comes from some node
		}
		for i := range need {
			need[i].n -= sp.take(best, need[i].class, need[i].n)
		}
		sp.boss[sp.root(best)] = sp.root(self)
	}
}

// engaged reports whether a node is tied to anything.
func (sp *splitter) engaged(at int) bool { return sp.root(at) >= len(sp.t.nodes) }

func (sp *splitter) has(at int, class int32) int32 {
	var n int32
	for i, g := range sp.nodes[sp.t.nodes[at]].tenants {
		if g.class == class {
			n += sp.left[at][i]
		}
	}
	return n
}

func (sp *splitter) take(at int, class, want int32) int32 {
	var got int32
	for i, g := range sp.nodes[sp.t.nodes[at]].tenants {
		if g.class == class {
			n := min(want-got, sp.left[at][i])
			sp.left[at][i] -= n
			got += n
		}
	}
	return got
}

// parcels gathers what belongs together and deals the slots to what is left.
func (sp *splitter) parcels() []parcel {
	index := map[int]int{}
	var out []parcel
	of := func(i int) *parcel {
		root := sp.root(i)
		at, ok := index[root]
		if !ok {
			at = len(out)
			index[root] = at
			out = append(out, parcel{})
		}
		return &out[at]
	}
	slots := map[int32][]slot{}
	for _, sl := range sp.t.slots {
		slots[sl.class] = append(slots[sl.class], sl)
	}
	for at, n := range sp.t.nodes {
		p := of(at)
		p.nodes = append(p.nodes, n)
		for i, g := range sp.nodes[n].tenants {
			for want := sp.left[at][i]; want > 0 && len(slots[g.class]) > 0; {
				sl := &slots[g.class][0]
				n := min(want, sl.n)
				p.slots = append(p.slots, slot{sl.bin, guest{sl.class, n, sl.level}})
				want -= n
				if sl.n -= n; sl.n == 0 {
					slots[g.class] = slots[g.class][1:]
				}
			}
		}
	}
	for m := range sp.t.machines {
		p := of(len(sp.t.nodes) + m)
		p.machines = append(p.machines, sp.t.machines[m])
	}
	return out
}
