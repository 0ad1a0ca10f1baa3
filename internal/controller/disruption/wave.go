package disruption

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/model"
)

// wave are the moves of consolidation of one decision, as they are judged when they
// are over. The scheduler puts evicted pods where it likes; when it does not like
// the plan, a machine more is bought and the saving is gone.
type wave struct {
	// began is when they were decided; the next decision waits for them.
	began time.Time
	// before is the price of the fleet when it began, promised what its moves were
	// to save of that, demand what all pods asked for together.
	before, promised model.Money
	demand           wanted
	// failures counts the waves in a row that did not save what they promised.
	failures int
}

// A wave has kept its promise when it has saved one part in keptShare of it. It can
// be judged while the demand has changed by less than one part in demandShare.
const (
	keptShare   = 2
	demandShare = 50
)

// ride remembers what was begun.
func (w *wave) ride(f *model.DisruptionProblem, begun []*move, now time.Time) {
	saving := 0.0
	for _, m := range begun {
		if m.Reason == model.DisruptUnderutilized {
			saving += m.Saving
		}
	}
	if saving > 0 {
		w.began, w.before, w.demand, w.promised = now, price(f), demand(f), model.USD(saving)
	}
}

// lose takes what a move does not save after all out of the promise.
func (w *wave) lose(m *move, lost model.Money) {
	if m.Reason == model.DisruptUnderutilized && !m.Begun.Before(w.began) {
		w.promised -= lost
	}
}

// judge compares what the last wave has saved with its promise. When it is broken,
// consolidation rests: for a minute, and for twice as long each time in a row, or
// until the demand changes.
func (l *Loop) judge(ctx context.Context, f *model.DisruptionProblem) {
	w := &l.wave
	if !l.rhythm.rest.IsZero() && w.demand.differs(demand(f)) { // it is another fleet now
		l.rhythm.rest, w.failures = time.Time{}, 0
	}
	if w.promised <= 0 || len(l.moves) > 0 || draining(l.Mirror.Snapshot()) {
		return
	}
	promised, saved := w.promised, w.before-price(f)
	w.promised = 0
	if w.demand.differs(demand(f)) {
		return
	}
	if saved >= promised/keptShare {
		w.failures = 0
		return
	}
	pause := min(restAtMost, restAtLeast<<min(w.failures, 10))
	w.failures++
	l.rhythm.rest = f.Now.Add(pause)
	l.Metrics.SavedTooLittle()
	log.FromContext(ctx).Info("the last moves did not save what they promised, since the scheduler put pods elsewhere; consolidation rests",
		"promised", promised.String(), "saved", saved.String(), "for", pause.String())
}

// price is what the fleet costs without the nodes that leave.
func price(f *model.DisruptionProblem) model.Money {
	var sum model.Money
	for n := range f.Problem.Nodes {
		if f.Problem.Nodes[n].State != model.NodeLeaving && !f.Usages[n].Disrupting {
			sum += f.Problem.Nodes[n].Price
		}
	}
	return sum
}

// wanted is CPU and memory.
type wanted [2]int64

// demand is what all pods ask for, those that wait and those that run.
func demand(f *model.DisruptionProblem) wanted {
	var sum wanted
	add := func(c *model.PodClass) {
		for i, axis := range []int{model.CPU, model.Memory} {
			sum[i] += int64(len(c.Pods)) * c.Requests.Get(axis)
		}
	}
	for i := range f.Problem.Classes {
		add(&f.Problem.Classes[i])
	}
	for i := range f.Movable {
		add(&f.Movable[i].PodClass)
	}
	return sum
}

// differs reports whether two demands differ by more than a little.
func (w wanted) differs(from wanted) bool {
	for i := range w {
		if most := max(w[i], from[i]); most-min(w[i], from[i]) > most/demandShare {
			return true
		}
	}
	return false
}
