package purchasebackoff

import (
	"maps"
	"time"

	"k8s.io/utils/clock"
)

// A plan for a workload is made again, because Azure refused what it was to buy and nothing
// else is left of it, or nothing but what costs over 5 percent more, at most mostRounds
// times in a row and for roundsWithin. Then its machines are bought at any price, since a
// pod that runs on a dear node is better than one that waits, and what comes to nothing
// counts as a failure.
const (
	mostRounds   = 10
	roundsWithin = 2 * time.Minute
	// roundsForgotten is how long after the last of them rounds count as in a row.
	roundsForgotten = 10 * time.Minute
)

// rounds count how often in a row workloads were planned again because of refusals.
type rounds struct {
	clock     clock.PassiveClock
	workloads map[Workload]*inRow
}

// inRow is when the first and the last of so many rounds were.
type inRow struct {
	count       int
	first, last time.Time
}

func newRounds(clk clock.PassiveClock) *rounds {
	return &rounds{clock: clk, workloads: map[Workload]*inRow{}}
}

// count counts a round of a workload, whose plan was made at some time.
func (r *rounds) count(w Workload, made time.Time) {
	now := r.clock.Now()
	maps.DeleteFunc(r.workloads, func(_ Workload, in *inRow) bool { return now.Sub(in.last) > roundsForgotten })
	in := r.workloads[w]
	if in == nil {
		in = &inRow{first: made}
		r.workloads[w] = in
	}
	in.count++
	in.last = now
}

// end forgets the rounds of a workload, a pod of which runs.
func (r *rounds) end(w Workload) { delete(r.workloads, w) }

// spent reports whether a workload has been planned again so often that it is enough.
func (r *rounds) spent(w Workload) bool {
	in := r.workloads[w]
	now := r.clock.Now()
	return in != nil && now.Sub(in.last) <= roundsForgotten && (in.count >= mostRounds || now.Sub(in.first) > roundsWithin)
}

// Unsold says that a claim has ended because nothing was left to buy for it, or nothing that
// costs as little as its machine may. The plan that made it comes to nothing thereby, which
// is no failure while its workload may be planned again.
func (p *Purchases) Unsold(claim string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	for name, at := range p.unsold {
		if now.Sub(at) > roundsForgotten {
			delete(p.unsold, name)
		}
	}
	p.unsold[claim] = now
}

// AtAnyPrice reports whether machines are bought for workloads at any price, because they
// have been planned again so often.
func (p *Purchases) AtAnyPrice(workloads []Workload) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range workloads {
		if p.rounds.spent(w) {
			return true
		}
	}
	return false
}

// countRounds counts the purchases of which a claim came to nothing by refusals, each once,
// as long as their workloads may be planned again.
func (p *Purchases) countRounds() {
	for key, of := range p.open {
		for name := range of.claims {
			if _, unsold := p.unsold[name]; unsold && !of.again && !p.rounds.spent(key.workload) {
				of.again = true
				p.rounds.count(key.workload, of.made)
			}
		}
	}
}
