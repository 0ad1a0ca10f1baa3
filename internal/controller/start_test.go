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

// The first plan is made when pods wait and something can be bought; no plan is made before all
// is known that it needs, unless that takes long, and the barrier is lifted in any case.
func TestFirstPlanLiftsTheBarrier(t *testing.T) {
	waits, runs := &fleet.Pod{Ref: model.PodRef{Namespace: "default", Name: "waits"}}, &fleet.Pod{Ref: model.PodRef{Name: "runs"}, Node: "n"}
	ready, unready := &fleet.Pool{Name: "general", Ready: true}, &fleet.Pool{Name: "general"}
	type start struct {
		records []fleet.Record
		// When all is known, when something can be bought, and how long the plan takes.
		known, buys, plan time.Duration
		manual            bool
	}
	for name, c := range map[string]struct {
		start
		planned        bool
		loops, barrier time.Duration // when the loops start, and the barrier is lifted
	}{
		"pods wait":                           {start{[]fleet.Record{waits, ready}, 0, 0, time.Second, false}, true, 0, time.Second},
		"something can be bought a bit later": {start{[]fleet.Record{waits, ready}, 0, time.Second, time.Second, false}, true, 0, 2 * time.Second},
		"all is known a bit later":            {start{[]fleet.Record{waits, ready}, time.Second, 0, time.Second, false}, true, time.Second, 2 * time.Second},
		"all is known much later":             {start{[]fleet.Record{waits, ready}, time.Hour, 0, time.Second, false}, false, firstPlanWithin, firstPlanWithin},
		"nothing can be bought":               {start{[]fleet.Record{waits, ready}, 0, time.Hour, time.Second, false}, false, 0, firstPlanWithin},
		"mode Manual":                         {start{[]fleet.Record{waits, ready}, 0, time.Hour, time.Second, true}, false, 0, 0},
		"the plan takes long":                 {start{[]fleet.Record{waits, ready}, 0, 0, time.Hour, false}, true, 0, firstPlanWithin},
		"no pod waits":                        {start{[]fleet.Record{runs, ready}, 0, 0, time.Second, false}, true, 0, 0},
		"no NodePool is ready":                {start{[]fleet.Record{waits, unready}, 0, 0, time.Second, false}, true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, began := fleet.NewStore(), time.Now()
				store.PutAll(c.records)
				planned := false
				f := firstPlan{
					barrier: newStartBarrier(clock.RealClock{}), fleet: store.Snapshot,
					known:  func() bool { return time.Since(began) >= c.known },
					mayBuy: func() bool { return time.Since(began) >= c.buys },
					manual: func() bool { return c.manual },
					plan: func() <-chan struct{} {
						planned = true
						made := make(chan struct{})
						time.AfterFunc(c.plan, func() { close(made) })
						return made
					},
				}
				f.make(t.Context(), func() {
					if took := time.Since(began); took != c.loops {
						t.Errorf("the loops start after %s, want %s", took, c.loops)
					}
				})
				select {
				case <-f.barrier.lifted:
				default:
					t.Error("the barrier still holds things back")
				}
				if took := time.Since(began); took != c.barrier || planned != c.planned {
					t.Errorf("planned %v, lifted after %s; want %v, %s", planned, took, c.planned, c.barrier)
				}
			})
		})
	}
}
