package exact

import (
	"encoding/binary"
	"math"
)

// limited is a type of bin of which there are only so many: bins that exist already, which
// cost nothing, or what is left to buy of others.
type limited struct {
	kind  int32
	cost  int64
	count int
	// fillings are the states that one bin may hold, ascending.
	fillings []int32
}

// limited lists the types with a Max which hold anything. Those that hold the same at the
// same cost are one. It reports false if there are too many.
func (t *table) limited() ([]limited, bool) {
	var all []limited
	for i := range t.c.Types {
		if k := &t.c.Types[i]; k.Max >= 0 {
			all = append(all, limited{kind: int32(i), cost: k.Cost, count: k.Max})
		}
	}
	if len(all) == 0 {
		return nil, true
	}
	if len(all) > mostSteps/len(t.states) {
		return nil, false
	}
	clear(t.counts)
	for at := 1; at < len(t.states); at++ {
		t.next()
		if !t.measure() || !t.compatible() {
			continue
		}
		for i := range all {
			t.work++
			if t.holds(all[i].kind) {
				all[i].fillings = append(all[i].fillings, int32(at))
			}
		}
	}
	return merged(all), true
}

// merged makes one of types that hold the same at the same cost, and leaves out those that
// hold nothing.
func merged(all []limited) []limited {
	var out []limited
	same := map[string]int{}
	for _, l := range all {
		if len(l.fillings) == 0 || l.count == 0 {
			continue
		}
		key := binary.AppendVarint(nil, l.cost)
		for _, f := range l.fillings {
			key = binary.AppendVarint(key, int64(f))
		}
		if i, known := same[string(key)]; known {
			out[i].count += min(l.count, math.MaxInt-out[i].count)
			continue
		}
		same[string(key)] = len(out)
		out = append(out, l)
	}
	return out
}

// addLimited brings the cost of every state up to date with limited types: one bin more at a
// time, until more of its type save nothing. It reports false if that takes too long.
func (t *table) addLimited(all []limited) bool {
	if len(all) == 0 {
		return true
	}
	digits := t.digits()
	for i := range all {
		l := &all[i]
		for range l.count {
			if t.work += int64(len(t.states) * len(l.fillings)); t.work > mostSteps {
				return false
			}
			if !t.addBin(l, digits) {
				break
			}
		}
	}
	return true
}

// addBin adds one bin, and reports whether that saves anything. States are looked at from
// the largest down, so that those which are left were not changed yet.
func (t *table) addBin(l *limited, digits []int) bool {
	n, saves := len(t.counts), false
	for at := len(t.states) - 1; at > 0; at-- {
		s, items := &t.states[at], digits[at*n:at*n+n]
		for _, f := range l.fillings {
			if int(f) > at {
				break
			}
			rest := t.states[at-int(f)].cost
			if rest >= never-l.cost || rest+l.cost >= s.cost || !within(digits[int(f)*n:int(f)*n+n], items) {
				continue
			}
			s.cost, saves = rest+l.cost, true
		}
	}
	return saves
}

// digits are how many items of each class every state has, one state after the other.
func (t *table) digits() []int {
	out := make([]int, 0, len(t.states)*len(t.counts))
	clear(t.counts)
	for range t.states {
		out = append(out, t.counts...)
		t.next()
	}
	return out
}

func within(some, items []int) bool {
	for i, n := range some {
		if n > items[i] {
			return false
		}
	}
	return true
}
