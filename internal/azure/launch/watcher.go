package launch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/quota"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

const (
	// NewPoll is how often Azure is asked about a machine in its first second, newFor:
	// what Azure refuses at once should cost no more than that.
	NewPoll = 250 * time.Millisecond
	newFor  = time.Second
	// youngPoll is how often Azure is asked while a machine is younger than
	// youngFor, the time in which a launch waits; oldPoll is for the rest. Azure
	// grants a subscription 30 lists of machines a minute, after a first burst.
	youngPoll = time.Second
	youngFor  = 15 * time.Second
	listPoll  = 2 * time.Second
	oldPoll   = 5 * time.Second
	// MissingFor is how long Azure must not know a machine that it has accepted, before
	// it is believed gone: a region's answers can be a moment behind one another.
	MissingFor = 5 * time.Second
	// mostResumePause is the longest pause between tries to list what earlier processes left.
	mostResumePause = 2 * time.Minute
	// fewMachines are asked for one by one; more are cheaper to list.
	fewMachines = 16
)

// Outcome is what became of a machine while it was watched. The zero value
// means that nothing has become of it yet.
type Outcome struct {
	Done    bool
	Failure *unavailable.Failure
}

// Fate is what becomes of a machine that has failed after its launch had been reported as
// accepted, by what its claim is by then.
type Fate int

const (
	// Remove has the machine removed: nothing else would do it.
	Remove Fate = iota
	// Leave leaves the machine to its claim, which goes, and takes it along once the node is
	// drained.
	Leave
	// Keep keeps it: it is a node, whatever Azure says of its making. An operating system
	// that Azure has not heard of in time may be ready later.
	Keep
)

// FailedFunc is told of a machine that failed after its launch had been
// reported as accepted. An error makes the watcher tell it again later; nothing
// becomes of the machine before.
type FailedFunc func(ctx context.Context, claim string, failure *unavailable.Failure) (Fate, error)

// Watcher follows machines from accepted to running. It asks Azure about
// the machines themselves and keeps no handle of an operation, so that a new
// process sees as much as the one that bought them.
type Watcher struct {
	launcher  Launcher
	catalog   *instancetype.Catalog
	offerings *unavailable.Offerings
	quota     *quota.Tracker
	metrics   *Metrics
	boots     *Boots
	log       *slog.Logger

	mu       sync.Mutex
	onFailed FailedFunc
	pending  map[string]*followed // by claim
	handled  map[string]int       // calls that buy for a claim
	wake     chan struct{}

	finisher *finisher      // of machines that run and lack something
	workers  sync.WaitGroup // what does not wait for the next look
}

type followed struct {
	machine Machine
	since   time.Time
	waiter  chan Outcome // nil when no call waits
	counted bool         // as failed, which may have to be reported more than once
	missing time.Time    // since when Azure does not know it; zero while it does
	busy    bool         // it is being acted on, which Azure may hold back for minutes
}

// Reporting is how a watcher makes itself heard.
type Reporting struct {
	Metrics *Metrics
	// Boots is told of machines that AKS gave up for what happened on them.
	Boots *Boots
	Log   *slog.Logger
}

// NewWatcher returns a watcher; Run makes it work.
func NewWatcher(launcher Launcher, c *instancetype.Catalog, offerings *unavailable.Offerings, q *quota.Tracker, r Reporting) *Watcher {
	return &Watcher{
		launcher: launcher, catalog: c, offerings: offerings, quota: q, metrics: r.Metrics, boots: r.Boots, log: r.Log,
		pending: map[string]*followed{}, handled: map[string]int{}, wake: make(chan struct{}, 1), finisher: newFinisher(launcher, r.Log),
	}
}

// OnFailed sets what is called on late failures. Call it before Run.
func (w *Watcher) OnFailed(f FailedFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onFailed = f
}

// Follow watches a machine that an earlier call or process has asked for, without
// waiting for it, and counts it as on its way.
func (w *Watcher) Follow(m Machine) {
	w.reserve(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending[m.Claim] == nil {
		w.pending[m.Claim] = &followed{machine: m, since: time.Now()}
	}
	w.poke()
}

// reserve counts a machine as on its way.
func (w *Watcher) reserve(m Machine) {
	if sku, ok := w.catalog.SKU(m.Size); ok {
		w.quota.Reserve(ResourceName(m.Claim), instancetype.Quotas(sku, m.CapacityType))
	}
}

// Handle says that a call is buying for the claim, until done is called. Meanwhile
// it is for that call alone to act when the claim's machine fails.
func (w *Watcher) Handle(claim string) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handled[claim]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.handled[claim]--; w.handled[claim] == 0 {
			delete(w.handled, claim)
		}
	}
}

// isHandled reports whether a call is buying for the claim.
func (w *Watcher) isHandled(claim string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handled[claim] > 0
}

// Forget stops watching a machine that is being removed.
func (w *Watcher) Forget(claim string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, claim)
	w.finisher.forget(claim)
}

func (w *Watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Await watches a machine and waits for what becomes of it, at most for d. What
// happens later is reported to OnFailed.
func (w *Watcher) Await(ctx context.Context, m Machine, d time.Duration) Outcome {
	waiter := make(chan Outcome, 1)
	w.mu.Lock()
	w.pending[m.Claim] = &followed{machine: m, since: time.Now(), waiter: waiter}
	w.poke()
	w.mu.Unlock()

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case o := <-waiter:
		return o
	case <-timer.C:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.pending[m.Claim]; f != nil && f.waiter == waiter {
		f.waiter = nil
	}
	select {
	case o := <-waiter:
		return o
	default:
		return Outcome{}
	}
}

// Run watches until the context ends. It starts with the machines that an
// earlier process left unfinished.
func (w *Watcher) Run(ctx context.Context) {
	defer w.finisher.tries.Wait()
	defer w.workers.Wait()
	w.workers.Go(func() { w.resumeAll(ctx) })
	for {
		if !pause(ctx, w.interval(), w.wake) {
			return
		}
		w.look(ctx)
	}
}

// resumeAll follows what earlier processes left, until Azure has shown all of it. What
// cannot be listed keeps nothing else from being watched.
func (w *Watcher) resumeAll(ctx context.Context) {
	seen := map[string]bool{}
	for wait := oldPoll; ; wait = min(2*wait, mostResumePause) {
		err := w.resume(ctx, seen)
		if err == nil || ctx.Err() != nil {
			return
		}
		w.log.Warn("finding unfinished launches failed; trying again", "error", err, "in", wait.String())
		if !pause(ctx, wait, nil) {
			return
		}
	}
}

// pause waits, shorter if poked while idle; false when the context has ended.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	if d > 0 {
		wake = nil
	}
	var expired <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-expired:
	case <-wake:
	}
	return ctx.Err() == nil
}

// interval is the time until the next look; 0 means not before poked.
func (w *Watcher) interval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) == 0 {
		return 0
	}
	age := youngFor
	for _, f := range w.pending {
		age = min(age, time.Since(f.since))
	}
	switch {
	case age == youngFor:
		return oldPoll
	case len(w.pending) > fewMachines:
		return listPoll
	case age < newFor:
		return NewPoll
	}
	return youngPoll
}

// resume finds what an earlier process asked for and did not see through, as far as it can be
// listed. What is seen is not followed again.
func (w *Watcher) resume(ctx context.Context, seen map[string]bool) error {
	machines, err := w.launcher.List(ctx)
	for _, m := range machines {
		switch {
		case seen[m.Claim] || w.isHandled(m.Claim):
		case m.State == Creating, m.State == Failed:
			w.Follow(m)
		case m.State == Succeeded && m.Unfinished():
			w.finisher.start(ctx, m)
		}
		seen[m.Claim] = true
	}
	return err
}

// look asks Azure about all machines on their way. A machine that cannot be read waits for the
// next look; the others do not wait for it.
func (w *Watcher) look(ctx context.Context) {
	w.mu.Lock()
	asked := maps.Clone(w.pending)
	maps.DeleteFunc(asked, func(_ string, f *followed) bool { return f.busy })
	w.mu.Unlock()
	answers := w.fetch(ctx, slices.Collect(maps.Keys(asked)))
	unread, example := 0, error(nil)
	for claim, a := range answers {
		switch {
		case errors.Is(a.err, ErrForeign):
			w.log.Warn("a machine on its way is not nap's any more and is not watched", "nodeClaim", claim, "error", a.err)
			w.quota.Settle(ResourceName(claim)) // it exists all the same
			w.drop(claim, asked[claim])
		case a.err != nil && !errors.Is(a.err, ErrNotFound):
			unread, example = unread+1, a.err
		default:
			w.judge(ctx, asked[claim], a.machine, a.err == nil)
		}
	}
	if unread > 0 && ctx.Err() == nil {
		w.log.Warn("reading machines on their way failed; trying again", "machines", unread, "error", example)
	}
}

// answer is what Azure says of one machine; err is ErrNotFound where there is none.
type answer struct {
	machine Machine
	err     error
}

// fetch reads machines: few one by one, many with one list. A machine that the
// list lacks is asked for by name, because lists may lag behind; not where the list
// failed, when that may be all of them.
func (w *Watcher) fetch(ctx context.Context, claims []string) map[string]answer {
	found := make(map[string]answer, len(claims))
	var listed map[string]Machine
	var failed error
	if len(claims) > fewMachines {
		var machines []Machine
		machines, failed = w.launcher.List(ctx)
		listed = make(map[string]Machine, len(machines))
		for _, m := range machines {
			listed[m.Claim] = m
		}
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(4)
	for _, claim := range claims {
		m, known := listed[claim]
		if known || failed != nil {
			a := answer{machine: m}
			if !known {
				a.err = failed
			}
			mu.Lock()
			found[claim] = a
			mu.Unlock()
			continue
		}
		group.Go(func() error {
			m, err := w.launcher.Get(ctx, claim)
			mu.Lock()
			defer mu.Unlock()
			found[claim] = answer{m, err}
			return nil
		})
	}
	_ = group.Wait() // each machine has its own error
	return found
}

// judge decides what has become of one machine.
func (w *Watcher) judge(ctx context.Context, f *followed, m Machine, exists bool) {
	if exists {
		f.missing = time.Time{}
	} else if f.missing.IsZero() {
		f.missing = time.Now()
	}
	switch {
	case !exists && time.Since(f.missing) < MissingFor:
	case !exists || m.State == Deleting:
		w.act(f, func() { w.conclude(ctx, f, m, Outcome{Failure: GoneFailure(nil)}) })
	case m.State == Failed:
		w.act(f, func() { w.failed(ctx, f, m) })
	case m.State == Succeeded:
		// What it lacks yet is no part of the launch: it draws on the quota and boots.
		if w.conclude(ctx, f, m, Outcome{Done: true}) && m.Unfinished() {
			w.finisher.start(ctx, m)
		}
	}
}

// act does something about one machine that may take long, beside the looks: they skip the
// machine until it is done.
func (w *Watcher) act(f *followed, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.busy {
		return
	}
	f.busy = true
	w.workers.Go(func() {
		do()
		w.mu.Lock()
		defer w.mu.Unlock()
		f.busy = false
	})
}

// failed finds out why a machine failed, and concludes its launch.
func (w *Watcher) failed(ctx context.Context, f *followed, m Machine) {
	failure, err := w.launcher.Failure(ctx, m.Claim)
	if err != nil {
		w.log.Warn("reading why a launch failed did not work; trying again", "nodeClaim", m.Claim, "error", err)
		return
	}
	if w.bootFailed(m, failure) {
		w.metrics.gaveUp(m, failure)
		failure = nil
	}
	w.conclude(ctx, f, m, Outcome{Done: failure == nil, Failure: failure})
}

// bootFailed remembers that an AKS machine was made and its provisioning failed, and
// reports whether that is what the failure is about. It says nothing about the
// offering, so that the launch counts as done, and its claim is given up with the
// reason.
func (w *Watcher) bootFailed(m Machine, failure *unavailable.Failure) bool {
	if failure == nil || !m.AKS {
		return false
	}
	f, ok := BootFailureIn(failure.Code, failure.Message)
	if ok {
		w.boots.Failed(m.Claim, f)
	}
	return ok
}

// MayFinish reports whether the claim's machine may be given what it lacks: nothing else does so
// now, and Azure is not known to forbid it.
func (w *Watcher) MayFinish(claim string) bool { return w.finisher.due(claim) }

// Finish tries once to give a machine that runs what it lacks.
func (w *Watcher) Finish(ctx context.Context, m Machine) error { return w.finisher.now(ctx, m) }

// conclude hands the outcome to the call that waits, or acts on it itself. It reports whether
// that ends the watch of the machine.
func (w *Watcher) conclude(ctx context.Context, f *followed, m Machine, o Outcome) bool {
	claim := f.machine.Claim
	w.mu.Lock()
	if w.pending[claim] != f || f.waiter == nil && !o.Done && w.handled[claim] > 0 {
		// Meanwhile it was removed, and perhaps another one asked for in its place; or
		// the call that has found it does so now.
		w.mu.Unlock()
		return false
	}
	if m.Size == "" {
		m = f.machine
	}
	if o.Done {
		w.launched(m)
	} else if !f.counted {
		f.counted = true
		w.metrics.gaveUp(m, o.Failure)
	}
	if f.waiter != nil || o.Done {
		delete(w.pending, claim)
		if f.waiter != nil {
			f.waiter <- o
		}
		w.mu.Unlock()
		return true
	}
	w.mu.Unlock()
	return w.failedLate(ctx, f, m, o.Failure)
}

// failedLate acts on a machine that failed after its launch had been reported as accepted.
func (w *Watcher) failedLate(ctx context.Context, f *followed, m Machine, failure *unavailable.Failure) bool {
	fate, told := w.tell(ctx, m, failure)
	if !told || fate == Remove && !w.remove(ctx, m.Claim) {
		return false // once more at the next look
	}
	if !w.drop(m.Claim, f) {
		return false // the quota is that of whatever has come in its place
	}
	switch {
	case fate == Remove || fate == Keep && failure.Code == goneCode:
		w.quota.Release(ResourceName(m.Claim))
	case fate == Keep:
		w.launched(m)
	default:
		w.quota.Settle(ResourceName(m.Claim)) // until it is gone it draws on the quota
	}
	return true
}

// drop stops watching a machine; false where it was not watched any more, and perhaps another
// one of its claim is.
func (w *Watcher) drop(claim string, f *followed) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending[claim] != f {
		return false
	}
	delete(w.pending, claim)
	return true
}

// tell tells the claim's owner of its failed machine; false where that did not work.
func (w *Watcher) tell(ctx context.Context, m Machine, failure *unavailable.Failure) (Fate, bool) {
	w.remember(m, failure) // before a plan can be made for the claim's pods
	w.mu.Lock()
	onFailed := w.onFailed
	w.mu.Unlock()
	if onFailed == nil {
		return Remove, true
	}
	fate, err := onFailed(ctx, m.Claim, failure)
	if err != nil {
		w.log.Warn("reporting a failed launch did not work; trying again", "nodeClaim", m.Claim, "error", err)
	}
	return fate, err == nil
}

// remove has a failed machine removed; false where that did not work.
func (w *Watcher) remove(ctx context.Context, claim string) bool {
	err := w.launcher.Delete(ctx, claim)
	if err != nil && !errors.Is(err, ErrNotFound) {
		w.log.Warn("removing a failed machine did not work; trying again", "nodeClaim", claim, "error", err)
		return false
	}
	return true
}

// launched notes that Azure has sold a machine.
func (w *Watcher) launched(m Machine) {
	w.quota.Settle(ResourceName(m.Claim))
	if a, known := w.attempt(m); known {
		w.offerings.MarkLaunched(a)
	}
}

// remember blocks what a failed machine has shown not to be had.
func (w *Watcher) remember(m Machine, failure *unavailable.Failure) {
	if a, known := w.attempt(m); known {
		w.offerings.MarkUnavailable(failure, a)
	}
}

// attempt is what was asked for with a machine; false where the catalogue lacks its size.
func (w *Watcher) attempt(m Machine) (unavailable.Attempt, bool) {
	sku, known := w.catalog.SKU(m.Size)
	zone := instancetype.ZoneLabel(w.catalog.Region().Name, m.Zone)
	return unavailable.Attempt{SKU: sku, Zone: zone, CapacityType: m.CapacityType}, known
}
