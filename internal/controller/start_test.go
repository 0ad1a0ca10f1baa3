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

func TestRunnablesBehindTheGateWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, mgr, one := newStartGate(clock.RealClock{}), &recorded{}, &warm{}
		for _, r := range []manager.Runnable{one, everywhere{}} {
			if err := gate.behind(mgr).Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if _, same := mgr.added[1].(everywhere); !same {
			t.Errorf("what runs without the lease is added as %T", mgr.added[1])
		}
		held := mgr.added[0].(*gatedRunnable)
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
			t.Fatal("it starts before the gate opens")
		}
		gate.open()
		gate.open() // again changes nothing
		if err := <-done; err != nil || !one.started {
			t.Errorf("started: %v, %v", one.started, err)
		}
	})
}

func TestWithoutGateNothingWaits(t *testing.T) {
	var gate *startGate
	mgr := &recorded{}
	if got := gate.behind(mgr); got != manager.Manager(mgr) {
		t.Errorf("got %T", got)
	}
}

// The gate opens at last, and when the manager stops nothing that waits for it begins.
func TestGateOpensAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, one := newStartGate(clock.RealClock{}), &warm{}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- (&gatedRunnable{one, newStartGate(clock.RealClock{})}).Start(ctx) }()
		began := time.Now()
		if err := gate.Start(ctx); err != nil {
			t.Fatal(err)
		}
		select {
		case <-gate.opened:
		default:
			t.Error("it is shut still")
		}
		if took := time.Since(began); took != startWithin {
			t.Errorf("it opened after %s, want %s", took, startWithin)
		}
		cancel()
		if err := <-stopped; err != nil || one.started {
			t.Errorf("started after the end: %v, %v", one.started, err)
		}
	})
}

// The first plan is made when pods wait and something can be bought; the gate opens in any case.
func TestFirstPlanOpensTheGate(t *testing.T) {
	waits, runs := &fleet.Pod{Ref: model.PodRef{Namespace: "default", Name: "waits"}}, &fleet.Pod{Ref: model.PodRef{Name: "runs"}, Node: "n"}
	ready, unready := &fleet.Pool{Name: "general", Ready: true}, &fleet.Pool{Name: "general"}
	for name, c := range map[string]struct {
		records []fleet.Record
		ready   time.Duration // when something can be bought
		plan    time.Duration // how long the plan takes
		planned bool
		opened  time.Duration
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
					gate: newStartGate(clock.RealClock{}), fleet: store.Snapshot, planned: made,
					ready: func() bool { return time.Since(began) >= c.ready },
					plan: func() {
						planned = true
						time.AfterFunc(c.plan, func() { close(made) })
					},
				}
				f.make(t.Context())
				select {
				case <-f.gate.opened:
				default:
					t.Error("the gate is shut")
				}
				if took := time.Since(began); took != c.opened || planned != c.planned {
					t.Errorf("planned %v, open after %s; want %v, %s", planned, took, c.planned, c.opened)
				}
			})
		})
	}
}
