package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

const (
	// firstPlanWithin is how long other work waits for the first plan once the mirror has
	// seen the cluster, startWithin how long it waits at most.
	firstPlanWithin = 5 * time.Second
	startWithin     = 2 * time.Minute
	// askReady is how often it is asked whether a plan can be made.
	askReady = 20 * time.Millisecond
)

// startBarrier lets pods that wait when a controller starts have their plan first. Each of
// Karpenter's controllers looks at all objects of its kind when it starts; with thousands of
// nodes a plan that is made meanwhile takes many times as long. They start when the barrier
// is lifted.
type startBarrier struct {
	clock  clock.Clock
	lifted chan struct{}
	once   sync.Once
}

func newStartBarrier(clk clock.Clock) *startBarrier {
	return &startBarrier{clock: clk, lifted: make(chan struct{})}
}

// lift lets everything start. It may be called from any goroutine, and again.
func (b *startBarrier) lift() { b.once.Do(func() { close(b.lifted) }) }

// NeedLeaderElection makes the manager run the barrier on the leader alone.
func (b *startBarrier) NeedLeaderElection() bool { return true }

// Start lifts the barrier at last, whatever the first plan waits for.
func (b *startBarrier) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-b.lifted:
	case <-b.clock.After(startWithin):
		log.FromContext(ctx).Error(nil, "the cluster is not mirrored yet, all else begins without a first plan", "after", startWithin.String())
		b.lift()
	}
	return nil
}

// behind is a manager which starts what is added to it when the barrier is lifted, unless that
// runs without the lease, too. A nil barrier holds nothing back.
func (b *startBarrier) behind(mgr manager.Manager) manager.Manager {
	if b == nil {
		return mgr
	}
	return &heldManager{Manager: mgr, barrier: b}
}

// heldManager adds runnables behind a barrier.
type heldManager struct {
	manager.Manager
	barrier *startBarrier
}

// Add adds a runnable to the manager.
func (m *heldManager) Add(r manager.Runnable) error {
	if e, ok := r.(manager.LeaderElectionRunnable); ok && !e.NeedLeaderElection() {
		return m.Manager.Add(r)
	}
	return m.Manager.Add(&heldRunnable{Runnable: r, barrier: m.barrier})
}

// heldRunnable runs on the leader alone, and waits for the barrier.
type heldRunnable struct {
	manager.Runnable
	barrier *startBarrier
}

// NeedLeaderElection makes the manager run it on the leader alone.
func (r *heldRunnable) NeedLeaderElection() bool { return true }

// Warmup fills its caches before there is a lease, if it can do that.
func (r *heldRunnable) Warmup(ctx context.Context) error {
	if w, ok := r.Runnable.(interface {
		Warmup(ctx context.Context) error
	}); ok {
		return w.Warmup(ctx)
	}
	return nil
}

// Start runs it once the barrier is lifted.
func (r *heldRunnable) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.barrier.lifted:
		return r.Runnable.Start(ctx)
	}
}

// firstPlan makes the plan for pods that wait when a controller starts.
type firstPlan struct {
	barrier *startBarrier
	// known reports whether all is known that decides what may be bought: what an earlier
	// controller wrote down, which AKSNodeClasses pause, and the mode.
	known func() bool
	// manual reports whether the mode is Manual, so that nothing is bought; mayBuy whether a
	// machine that is bought now would be launched.
	manual, mayBuy func() bool
	fleet          func() *fleet.Snapshot
	// plan plans at once. What it returns is closed when that is done.
	plan func() <-chan struct{}
}

// make starts the loops when all is known that a plan needs, asks for the plan, and lifts the
// barrier when it is made. It takes no longer than firstPlanWithin, whatever is not known or
// not possible by then, and waits for no plan where no pod waits or the mode is Manual.
func (f *firstPlan) make(ctx context.Context, startLoops func()) {
	defer f.barrier.lift()
	late := f.barrier.clock.After(firstPlanWithin)
	inTime := f.await(ctx, late, f.known)
	startLoops()
	if !inTime || f.manual() {
		return
	}
	if !waitsForMachines(f.fleet()) {
		f.plan() // it says that there is nothing to plan
		return
	}
	if !f.await(ctx, late, f.mayBuy) {
		return
	}
	select {
	case <-ctx.Done():
	case <-late:
	case <-f.plan():
	}
}

// await waits until something is so, and reports false where it is not before late.
func (f *firstPlan) await(ctx context.Context, late <-chan time.Time, is func() bool) bool {
	for !is() {
		select {
		case <-ctx.Done():
			return false
		case <-late:
			return false
		case <-f.barrier.clock.After(askReady):
		}
	}
	return true
}

// waitsForMachines reports whether pods wait and some NodePool may buy for them.
func waitsForMachines(s *fleet.Snapshot) bool {
	for p := range s.Pods() {
		if p.Node == "" && !p.Terminal {
			for _, pool := range s.Pools() {
				if pool.Ready && !pool.Deleting {
					return true
				}
			}
			return false
		}
	}
	return false
}
