package verify

import (
	"math/rand/v2"
	"slices"
)

// topology looks for an order in which every pod finds its rules satisfied at
// the moment it enters its place.
//
// An order that is found proves that the plan is sound. The search is not complete: a large
// plan may have an order that it misses, so a violation calls for a second look, and
// silence does not.
// Precondition: every pod of the plan has exactly one place that exists.
func (c *checker) topology() {
	r := newReplay(c)
	if r.anyOrder() {
		return
	}
	r.greedy()
	for _, it := range r.items {
		if it.left > 0 && !r.admits(it.class, it.spot) {
			c.report("topology", "%d pods of class %d (%s) could never enter %s: %s", it.left,
				it.class, c.p.Classes[it.class].Owner, r.spots[it.spot].name, r.refusal)
		}
	}
}

// anyOrder tries a few sensible orders, then, within bounds, all of them. If none is found,
// nothing has entered.
func (r *replay) anyOrder() bool {
	priority := func(it item) int { return -int(r.p.Classes[it.class].Priority) }
	rank := func(it item) int { return r.rank[it.class] }
	labelsFirst := func(it item) int { return [...]int{1, 0, 2}[r.rank[it.class]] }
	for _, keys := range [][]func(item) int{{rank}, {priority, rank}, {labelsFirst}, {priority, labelsFirst}} {
		slices.SortStableFunc(r.items, func(a, b item) int {
			for _, key := range keys {
				if ka, kb := key(a), key(b); ka != kb {
					return ka - kb
				}
			}
			return 0
		})
		for _, greedy := range []func(){r.greedy, r.strictGreedy, r.nodesFirst} {
			if greedy(); r.left() == 0 {
				return true
			}
			r.clear()
		}
	}
	return r.shuffled() || r.search(&searchBudget{steps: 20000, seen: map[string]bool{}})
}

// shuffled lets whole classes in one after the other, in many orders of classes
// and of the places of each; for large plans that takes too long.
func (r *replay) shuffled() bool {
	if len(r.items) > 200 {
		return false
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		turn := dice.Perm(len(r.p.Classes))
		dice.Shuffle(len(r.items), func(i, j int) { r.items[i], r.items[j] = r.items[j], r.items[i] })
		slices.SortStableFunc(r.items, func(a, b item) int { return turn[a.class] - turn[b.class] })
		for progress := true; progress; {
			progress = false
			for i := range r.items {
				it := &r.items[i]
				for it.left > 0 && r.admits(it.class, it.spot) {
					r.enter(it.class, it.spot)
					it.left--
					progress = true
				}
			}
		}
		if r.left() == 0 {
			return true
		}
		r.clear()
	}
	return false
}

// strictGreedy lets a rank in only when the one before is in, or stuck. Items of one rank
// count as such as far as they are side by side.
func (r *replay) strictGreedy() {
	for from := 0; from < len(r.items); {
		to := from
		for to < len(r.items) && r.rank[r.items[to].class] == r.rank[r.items[from].class] {
			to++
		}
		all := r.items
		r.items = all[from:to]
		r.greedy()
		r.items = all
		from = to
	}
	r.greedy()
}

// nodesFirst lets pods in on nodes that exist, as far as they come, before all others.
func (r *replay) nodesFirst() {
	all := r.items
	r.items = nil
	var others []item
	for _, it := range all {
		if r.exists(it.spot) {
			r.items = append(r.items, it)
		} else {
			others = append(others, it)
		}
	}
	r.greedy()
	r.items = append(r.items, others...)
	r.greedy()
}

// clear takes everything out again.
func (r *replay) clear() {
	for i := range r.items {
		it := &r.items[i]
		for ; it.left < it.all; it.left++ {
			r.record(it.class, it.spot, -1)
		}
	}
}

// greedy lets pods in, in the order of items, until no further one may enter: as long as
// possible only those that leave spreads even, since they bar the way to the fewest.
func (r *replay) greedy() {
	for r.pass(true) || r.pass(false) {
		continue
	}
}

// left is how many pods have yet to enter.
func (r *replay) left() int {
	n := 0
	for i := range r.items {
		n += r.items[i].left
	}
	return n
}

// searchBudget bounds the search for an order and remembers dead ends.
type searchBudget struct {
	// steps is how many further states may be looked at.
	steps int
	// seen are the states from which no order leads on: how many pods of each item are
	// left says all of a state, whatever the order in which the others came.
	seen map[string]bool
}

// search tries orders one after the other, pod by pod, for as long as the budget lasts. It
// reports whether all have entered; if not, those have that had before.
func (r *replay) search(b *searchBudget) bool {
	if r.left() == 0 {
		return true
	}
	state := make([]byte, 0, 2*len(r.items))
	for i := range r.items {
		state = append(state, byte(r.items[i].left), byte(r.items[i].left>>8))
	}
	if b.seen[string(state)] || b.steps == 0 {
		return false
	}
	b.steps--
	b.seen[string(state)] = true
	for i := range r.items {
		it := &r.items[i]
		if it.left == 0 || !r.admits(it.class, it.spot) {
			continue
		}
		r.enter(it.class, it.spot)
		it.left--
		if r.search(b) {
			return true
		}
		it.left++
		r.record(it.class, it.spot, -1)
	}
	return false
}

// pass lets pods in, one rank after the other, and reports whether any came.
// With even, only those that leave all spreads even; without, just one.
func (r *replay) pass(even bool) bool {
	progress, waiting := false, false
	for i := range r.items {
		it := &r.items[i]
		if progress && (waiting || r.rank[it.class] != r.rank[r.items[i-1].class]) {
			return true // earlier ones first, as far as they come
		}
		for it.left > 0 && r.admits(it.class, it.spot) && (!even || r.staysEven(it.class, it.spot)) {
			r.enter(it.class, it.spot)
			it.left--
			progress = true
			if !even {
				return true
			}
		}
		waiting = waiting || it.left > 0 && len(r.near[it.class]) > 0
	}
	return progress
}
