package construct

import (
	"cmp"

	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// candidate is an existing or new node for pods of a class.
type candidate struct {
	pl *placement.Place
	// ready nodes are initialized.
	ready bool
	// roomy nodes have room, too, for the pods that can only go where this one goes.
	roomy bool
	// slack says how much one pod would leave; see [feasible.Slack].
	slack float64
}

// better compares candidates: the better one comes first. No two candidates are equal.
func better(a, b candidate) int {
	if a.ready != b.ready {
		return falseFirst(b.ready, a.ready)
	}
	if a.roomy != b.roomy {
		return falseFirst(b.roomy, a.roomy)
	}
	return cmp.Or(cmp.Compare(a.slack, b.slack), cmp.Compare(a.pl.ID, b.pl.ID))
}

// queue is a binary heap of candidates, the best of which is the first. Of thousands of
// nodes few are asked, so that sorting all of them would cost more.
type queue []candidate

// order makes a heap of any candidates.
func (q queue) order() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

// drop removes the best candidate of a queue that is not empty.
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
