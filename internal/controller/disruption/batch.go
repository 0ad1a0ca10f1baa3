package disruption

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/model"
)

// batch are the commands of consolidation of one decision, which are judged together
// when they are over. The scheduler puts evicted pods where it likes; when it does
// not follow the plan, one more node is bought and the saving is gone.
type batch struct {
	// began is when they were decided; the next decision waits for them.
	began time.Time
	// before is the price of the fleet when it began, expected what its commands were
	// to save of that an hour, demand what all pods requested together. expected is
	// zero once the batch has been judged.
	before, expected model.Money
	demand           demand
	// failures counts the batches in a row that did not save what was expected.
	failures int
	// pausedUntil is until when no consolidation begins because the last batches
	// saved too little; zero when they did not.
	pausedUntil time.Time
}

const (
	// batchAtMost is for how long consolidation waits for the commands of the
	// decision before.
	batchAtMost = 2 * time.Minute
	// A batch has succeeded when it has saved one part in keptShare of what was
	// expected. It can be judged while the demand has changed by less than one part
	// in demandShare.
	keptShare   = 2
	demandShare = 50
)

// start remembers what was begun.
func (b *batch) start(p *model.DisruptionProblem, begun []*command, now time.Time) {
	saving := 0.0
	for _, c := range begun {
		if c.Reason == model.DisruptUnderutilized {
			saving += c.Saving
		}
	}
	if saving > 0 {
		b.began, b.before, b.demand, b.expected = now, price(p), demandOf(p), model.USD(saving)
	}
}

// lose takes what a command does not save after all out of what is expected.
func (b *batch) lose(r *Record, lost model.Money) {
	if r.Reason == model.DisruptUnderutilized && !r.Begun.Before(b.began) {
		b.expected -= lost
	}
}

// judge compares what the last batch has saved with what was expected, once settled
// says that nothing is under way any more. When it is too little, which it reports,
// consolidation pauses: for a minute, and for twice as long each time in a row, or
// until the demand changes.
func (b *batch) judge(ctx context.Context, p *model.DisruptionProblem, settled func() bool) (tooLittle bool) {
	if !b.pausedUntil.IsZero() && b.demand.differs(demandOf(p)) { // it is another fleet now
		b.pausedUntil, b.failures = time.Time{}, 0
	}
	if b.expected <= 0 || !settled() {
		return false
	}
	expected, saved := b.expected, b.before-price(p)
	b.expected = 0
	if b.demand.differs(demandOf(p)) {
		return false
	}
	if saved >= expected/keptShare {
		b.failures = 0
		return false
	}
	pause := pauseAfter(b.failures)
	b.failures++
	b.pausedUntil = p.Now.Add(pause)
	log.FromContext(ctx).Info("the last commands did not save what was expected, since the scheduler put pods elsewhere; consolidation pauses",
		"promised", expected.String(), "saved", saved.String(), "for", pause.String())
	return true
}

// price is what the fleet costs an hour without the nodes that leave.
func price(p *model.DisruptionProblem) model.Money {
	var sum model.Money
	for n := range p.Problem.Nodes {
		if p.Problem.Nodes[n].State != model.NodeLeaving && !p.Usages[n].Disrupting {
			sum += p.Problem.Nodes[n].Price
		}
	}
	return sum
}

// demand is requested CPU and memory, in the units of model.Resources.
type demand [2]int64

// demandOf is what all pods request, those that wait and those that run.
func demandOf(p *model.DisruptionProblem) demand {
	var sum demand
	add := func(c *model.PodClass) {
		for i, axis := range []int{model.CPU, model.Memory} {
			sum[i] += int64(len(c.Pods)) * c.Requests.Get(axis)
		}
	}
	for i := range p.Problem.Classes {
		add(&p.Problem.Classes[i])
	}
	for i := range p.Movable {
		add(&p.Movable[i].PodClass)
	}
	return sum
}

// differs reports whether two demands differ by more than one part in demandShare.
func (d demand) differs(from demand) bool {
	for i := range d {
		if most := max(d[i], from[i]); most-min(d[i], from[i]) > most/demandShare {
			return true
		}
	}
	return false
}
