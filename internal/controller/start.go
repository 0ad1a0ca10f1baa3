package controller

import (
	"context"
	"errors"
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

// startGate lets pods that wait when a controller starts have their plan first. Each of
// Karpenter's controllers looks at all objects of its kind when it starts; with thousands of
// nodes a plan that is made meanwhile takes many times as long. They start when the gate
// opens.
type startGate struct {
	clock  clock.Clock
	opened chan struct{}
	once   sync.Once
}

func newStartGate(clk clock.Clock) *startGate {
	return &startGate{clock: clk, opened: make(chan struct{})}
}

// open opens the gate for good. It may be called from any goroutine, and again.
func (g *startGate) open() { g.once.Do(func() { close(g.opened) }) }

// NeedLeaderElection makes the manager run the gate on the leader alone.
func (g *startGate) NeedLeaderElection() bool { return true }

// Start opens the gate at last, whatever the first plan waits for.
func (g *startGate) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-g.opened:
	case <-g.clock.After(startWithin):
		log.FromContext(ctx).Error(nil, "the cluster is not mirrored yet, all else begins without a first plan", "after", startWithin.String())
		g.open()
	}
	return nil
}

// behind is a manager which starts what is added to it when the gate opens, unless that runs
// without the lease, too. A nil gate is open.
func (g *startGate) behind(mgr manager.Manager) manager.Manager {
	if g == nil {
		return mgr
	}
	return &gatedManager{Manager: mgr, gate: g}
}

// gatedManager adds runnables behind a gate.
type gatedManager struct {
	manager.Manager
	gate *startGate
}

// Add adds a runnable to the manager.
func (m *gatedManager) Add(r manager.Runnable) error {
	if e, ok := r.(manager.LeaderElectionRunnable); ok && !e.NeedLeaderElection() {
		return m.Manager.Add(r)
	}
	return m.Manager.Add(&gatedRunnable{Runnable: r, gate: m.gate})
}

// gatedRunnable runs on the leader alone, and waits for the gate.
type gatedRunnable struct {
	manager.Runnable
	gate *startGate
}

// NeedLeaderElection makes the manager run it on the leader alone.
func (r *gatedRunnable) NeedLeaderElection() bool { return true }

// Warmup fills its caches before there is a lease, if it can do that.
func (r *gatedRunnable) Warmup(ctx context.Context) error {
	if w, ok := r.Runnable.(interface {
		Warmup(ctx context.Context) error
	}); ok {
		return w.Warmup(ctx)
	}
	return nil
}

// Start runs it once the gate is open.
func (r *gatedRunnable) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.gate.opened:
		return r.Runnable.Start(ctx)
	}
}

// firstPlan makes the plan for pods that wait when a controller starts.
type firstPlan struct {
	gate *startGate
	// ready reports whether a machine that is bought now would be launched, and all is known
	// that an earlier controller wrote down.
	ready func() bool
	fleet func() *fleet.Snapshot
	// plan plans at once, planned is closed when the first plan is made.
	plan    func()
	planned <-chan struct{}
}

// make asks for the plan, and opens the gate when it is made. It takes no longer than
// firstPlanWithin, and no time where nothing can be bought.
func (f *firstPlan) make(ctx context.Context) {
	defer f.gate.open()
	if !waitsForMachines(f.fleet()) {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := f.gate.clock.NewTimer(firstPlanWithin)
	defer late.Stop()
	go func() {
		select {
		case <-late.C():
			cancel(errors.New("the first plan takes long"))
		case <-ctx.Done():
		}
	}()
	for !f.ready() {
		select {
		case <-ctx.Done():
			return
		case <-f.gate.clock.After(askReady):
		}
	}
	f.plan()
	select {
	case <-ctx.Done():
	case <-f.planned:
	}
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
