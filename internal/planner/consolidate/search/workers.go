package search

import "github.com/nodeautoprovision/nap/internal/planner/concurrent"

// workerCount is how many states are searched in parallel. It is fixed, so that the
// answer does not depend on the machine which computes it.
const workerCount = 2

// workers are evaluators of equal states. Between the calls of each and share all
// states are equal; within them, each goroutine uses its own.
type workers []*Evaluator

// newWorkers forks the state of an evaluator and seals all states.
func newWorkers(main *Evaluator) workers {
	w := workers{main}
	for range workerCount - 1 {
		w = append(w, NewEvaluator(main.State.Fork()))
	}
	w.each(func(e *Evaluator) { e.State.Seal() })
	return w
}

// main is the evaluator whose state everything looks at between rounds.
func (w workers) main() *Evaluator { return w[0] }

// trials adds up what all evaluators have tried.
func (w workers) trials() int64 {
	var sum int64
	for _, e := range w {
		sum += e.Trials
	}
	return sum
}

// each does the same with every evaluator, in parallel.
func (w workers) each(do func(e *Evaluator)) {
	w.inParallel(func(at int) { do(w[at]) })
}

// share does n things, each with one of the evaluators, in parallel. Which evaluator
// does what depends on n alone.
func (w workers) share(n int, do func(e *Evaluator, k int)) {
	w.inParallel(func(at int) {
		for k := at; k < n; k += len(w) {
			do(w[at], k)
		}
	})
}

// inParallel lets every worker do its part. A panic of a part goes on in the goroutine
// of the caller, which may be prepared for it.
func (w workers) inParallel(do func(at int)) {
	var others concurrent.Group
	for at := 1; at < len(w); at++ {
		others.Go(func() { do(at) })
	}
	defer others.Wait() // also where do panics here
	do(0)
}

// undo takes back everything on all states.
func (w workers) undo() {
	w.each(func(e *Evaluator) {
		e.State.Undo(0)
		e.State.Arrange()
	})
}

// arrange sorts the capacity indices again, by what the bins hold now.
func (w workers) arrange() {
	w.each(func(e *Evaluator) { e.State.Arrange() })
}
