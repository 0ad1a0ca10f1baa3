package planner

import "cmp"

// candidate is a node or open machine for pods of a class.
type candidate struct {
	pl    *Place
	ready bool
	// roomy says that there is room for the pods, too, that can only go where this
	// one goes.
	roomy bool
	slack float64
}

// better compares candidates: the better one comes first.
func better(a, b candidate) int {
	if a.ready != b.ready {
		if a.ready {
			return -1
		}
		return 1
	}
	if a.roomy != b.roomy {
		if a.roomy {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.slack, b.slack), cmp.Compare(a.pl.ID, b.pl.ID))
}

// queue is a heap of candidates: the best is the first, and none is better than the
// one at half its number. Of thousands of nodes few are asked.
type queue []candidate

// order makes a heap of any candidates.
func (q queue) order() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

// drop removes the best candidate.
func (q *queue) drop() {
	last := len(*q) - 1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.sink(0)
}

// sink moves a candidate behind better ones.
func (q queue) sink(i int) {
	for {
		next := 2*i + 1
		if next >= len(q) {
			return
		}
		if next+1 < len(q) && better(q[next+1], q[next]) < 0 {
			next++
		}
		if better(q[i], q[next]) <= 0 {
			return
		}
		q[i], q[next] = q[next], q[i]
		i = next
	}
}
