package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// recorded is a manager that keeps what is added to it.
type recorded struct {
	manager.Manager
	added []manager.Runnable
}

func (r *recorded) Add(runnable manager.Runnable) error {
	r.added = append(r.added, runnable)
	return nil
}

// everywhere runs without the lease.
type everywhere struct{ manager.Runnable }

func (everywhere) NeedLeaderElection() bool { return false }

// warm says when it warms up and starts.
type warm struct{ warmed, started bool }

func (w *warm) Warmup(context.Context) error { w.warmed = true; return nil }
func (w *warm) Start(context.Context) error  { w.started = true; return nil }

func TestRunnablesBehindTheBarrierWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		barrier, mgr, one := newStartBarrier(clock.RealClock{}), &recorded{}, &warm{}
		for _, r := range []manager.Runnable{one, everywhere{}} {
			if err := barrier.behind(mgr).Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if _, same := mgr.added[1].(everywhere); !same {
			t.Errorf("what runs without the lease is added as %T", mgr.added[1])
		}
		held := mgr.added[0].(*heldRunnable)
		if !held.NeedLeaderElection() {
			t.Error("what is held back runs without the lease")
		}
		if err := held.Warmup(t.Context()); err != nil || !one.warmed {
			t.Errorf("warmed up: %v, %v", one.warmed, err)
		}
		done := make(chan error)
		go func() { done <- held.Start(t.Context()) }()
		time.Sleep(time.Hour)
		if one.started {
			t.Fatal("it starts before the barrier is lifted")
		}
		barrier.lift()
		barrier.lift() // again changes nothing
		if err := <-done; err != nil || !one.started {
			t.Errorf("started: %v, %v", one.started, err)
		}
	})
}

func TestWithoutBarrierNothingWaits(t *testing.T) {
	var barrier *startBarrier
	mgr := &recorded{}
	if got := barrier.behind(mgr); got != manager.Manager(mgr) {
		t.Errorf("got %T", got)
	}
}

// The barrier is lifted at last, and when the manager stops nothing that waits for it begins.
func TestBarrierIsLiftedAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		barrier, one := newStartBarrier(clock.RealClock{}), &warm{}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- (&heldRunnable{one, newStartBarrier(clock.RealClock{})}).Start(ctx) }()
		began := time.Now()
		if err := barrier.Start(ctx); err != nil {
			t.Fatal(err)
		}
		select {
		case <-barrier.lifted:
		default:
			t.Error("it still holds things back")
		}
		if took := time.Since(began); took != startWithin {
			t.Errorf("it was lifted after %s, want %s", took, startWithin)
		}
		cancel()
		if err := <-stopped; err != nil || one.started {
			t.Errorf("started after the end: %v, %v", one.started, err)
		}
	})
}

// The first plan is made when pods wait and something can be bought; the barrier is lifted in any case.
func TestFirstPlanLiftsTheBarrier(t *testing.T) {
	waits, runs := &fleet.Pod{Ref: model.PodRef{Namespace: "default", Name: "waits"}}, &fleet.Pod{Ref: model.PodRef{Name: "runs"}, Node: "n"}
	ready, unready := &fleet.Pool{Name: "general", Ready: true}, &fleet.Pool{Name: "general"}
	for name, c := range map[string]struct {
		records []fleet.Record
		ready   time.Duration // when something can be bought
		plan    time.Duration // how long the plan takes
		planned bool
		lifted  time.Duration
	}{
		"pods wait":                           {[]fleet.Record{waits, ready}, 0, time.Second, true, time.Second},
		"something can be bought a bit later": {[]fleet.Record{waits, ready}, time.Second, time.Second, true, 2 * time.Second},
		"nothing can be bought":               {[]fleet.Record{waits, ready}, time.Hour, time.Second, false, firstPlanWithin},
		"the plan takes long":                 {[]fleet.Record{waits, ready}, 0, time.Hour, true, firstPlanWithin},
		"no pod waits":                        {[]fleet.Record{runs, ready}, 0, time.Second, false, 0},
		"no NodePool is ready":                {[]fleet.Record{waits, unready}, 0, time.Second, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, began := fleet.NewStore(), time.Now()
				store.PutAll(c.records)
				planned, made := false, make(chan struct{})
				f := firstPlan{
					barrier: newStartBarrier(clock.RealClock{}), fleet: store.Snapshot, planned: made,
					ready: func() bool { return time.Since(began) >= c.ready },
					plan: func() {
						planned = true
						time.AfterFunc(c.plan, func() { close(made) })
					},
				}
				f.make(t.Context())
				select {
				case <-f.barrier.lifted:
				default:
					t.Error("the barrier still holds things back")
				}
				if took := time.Since(began); took != c.lifted || planned != c.planned {
					t.Errorf("planned %v, lifted after %s; want %v, %s", planned, took, c.planned, c.lifted)
				}
			})
		})
	}
}
