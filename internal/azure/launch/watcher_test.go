package launch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/quota"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Azure's lists lag: a machine that was missed, seen again and missed once more is not gone
// before it is missed for long enough from then on.
func TestMachineSeenAgainIsMissedFromThenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watcher{pending: map[string]*followed{}}
		f := &followed{machine: Machine{Claim: "general-a"}}
		w.judge(t.Context(), f, Machine{}, false)
		first := f.missing
		if first.IsZero() {
			t.Fatal("it is not known to be missed")
		}
		time.Sleep(MissingFor / 2)
		w.judge(t.Context(), f, Machine{}, false)
		if !f.missing.Equal(first) {
			t.Error("it is missed since the last look, not since the first")
		}
		w.judge(t.Context(), f, Machine{Claim: "general-a", State: Creating}, true)
		time.Sleep(MissingFor)
		w.judge(t.Context(), f, Machine{}, false)
		if !f.missing.Equal(time.Now()) {
			t.Errorf("it counts as missed since %s, want since now, %s", f.missing, time.Now())
		}
	})
}

// A machine is gone once Azure has not known it for as long as it is given.
func TestMachineIsGoneWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := buyerOf(t, &single{}).watcher
		f := &followed{machine: Machine{Claim: "general-a"}, waiter: make(chan Outcome, 1)}
		w.pending["general-a"] = f
		w.judge(t.Context(), f, Machine{}, false)
		time.Sleep(MissingFor)
		w.judge(t.Context(), f, Machine{}, false)
		if w.workers.Wait(); len(f.waiter) != 1 {
			t.Fatalf("after %s nothing is told", MissingFor)
		}
		if o := <-f.waiter; o.Failure == nil || o.Failure.Code != "MachineGone" {
			t.Errorf("told %+v, want that it is gone", o)
		}
	})
}

// failing is a launcher whose machine has failed.
type failing struct {
	single
	failure *unavailable.Failure
}

func (f *failing) Failure(context.Context, string) (*unavailable.Failure, error) {
	return f.failure, nil
}

// AKS gives a machine up that does not become a node. Azure has sold it nevertheless: it is
// found again as it is, its claim is given up with what happened on it, and it is counted.
func TestAKSMachineOfFailedBootIsKept(t *testing.T) {
	m := Machine{Claim: "general-a", AKS: true, State: Failed, Size: "Standard_D4s_v5"}
	l := &failing{single{machine: m}, unavailable.NewFailure("VMExtensionProvisioningError", "No route.", nil)}
	b := buyerOf(t, l)
	if _, err := b.existing(t.Context(), "general-a"); err != nil || l.deleted > 0 {
		t.Errorf("%v, deleted %d times, want the machine as it is", err, l.deleted)
	}
	if f, known := b.watcher.boots.Of("general-a"); !known || f.Text != "VMExtensionProvisioningError: No route." {
		t.Errorf("known is %+v, %t", f, known)
	}
	f := &followed{machine: m, waiter: make(chan Outcome, 1)}
	b.watcher.pending["general-a"] = f
	b.watcher.judge(t.Context(), f, m, true)
	b.watcher.workers.Wait()
	if o := <-f.waiter; !o.Done || o.Failure != nil {
		t.Errorf("told %+v, want a launch that is done", o)
	}
	counted := b.watcher.metrics.failed[true].WithLabelValues("", "Standard_D4s_v5", "0", "", "", phaseAsync, "VMExtensionProvisioningError")
	if n := testutil.ToFloat64(counted); n != 1 {
		t.Errorf("counted %v times, want once", n)
	}
}

// late is a machine that has been accepted, followed by a watcher on a region with a quota of
// ten cores, of which it takes eight.
func late(t *testing.T, l Launcher) (*Watcher, *followed) {
	t.Helper()
	w := buyerOf(t, l).watcher
	w.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now())
	m := Machine{Claim: "general-a", Size: "Standard_D8s_v5", CapacityType: model.OnDemand, State: Creating}
	w.Follow(m)
	return w, w.pending[m.Claim]
}

// followedOf is the machine that is followed for the claim, while other goroutines may change
// that; nil when none is.
func followedOf(w *Watcher, claim string) *followed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending[claim]
}

// left is what is left of the region's quota.
func left(w *Watcher) int64 {
	n, _ := w.quota.Left("f")
	return n
}

// lost is what becomes of a machine that cannot be had after all.
func lost() Outcome { return Outcome{Failure: unavailable.NewFailure("AllocationFailed", "", nil)} }

// What becomes of a machine that was removed meanwhile is not taken for what becomes of the
// next one of the same claim.
func TestOutcomeOfRemovedMachineIsNotThatOfTheNext(t *testing.T) {
	l := &single{}
	w, old := late(t, l)
	w.Forget("general-a")
	w.Follow(Machine{Claim: "general-a", Size: "Standard_D2s_v5"})
	for _, o := range []Outcome{lost(), {Done: true}} {
		w.conclude(t.Context(), old, Machine{}, o)
		if w.pending["general-a"] == nil || l.deleted > 0 {
			t.Errorf("%+v: followed %t, deleted %d times; want the next machine untouched", o, w.pending["general-a"] != nil, l.deleted)
		}
	}
}

// While a call buys for a claim, a failure of the machine that it has found is for it to act
// on; that the machine runs is noted all the same.
func TestFailureOfMachineThatACallLooksAtIsLeftToIt(t *testing.T) {
	l := &single{}
	w, f := late(t, l)
	defer w.Handle("general-a")()
	w.conclude(t.Context(), f, Machine{}, lost())
	if w.pending["general-a"] == nil || l.deleted > 0 || left(w) != 2 {
		t.Errorf("followed %t, deleted %d times, %d cores left", w.pending["general-a"] != nil, l.deleted, left(w))
	}
	w.conclude(t.Context(), f, Machine{}, Outcome{Done: true})
	if w.pending["general-a"] != nil {
		t.Error("the machine that runs is still followed")
	}
	// What Azure says an hour later counts it.
	if w.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now().Add(time.Hour)); left(w) != 10 {
		t.Errorf("%d cores are left of what Azure says are 10", left(w))
	}
}

// A machine that fails late is removed once its claim's owner has heard of it, which is tried
// until it works. Then its quota is free, and what it was is known not to be had.
func TestLateFailureIsToldBeforeItsMachineGoes(t *testing.T) {
	l := &single{}
	w, f := late(t, l)
	var told []string
	deaf := true
	w.OnFailed(func(_ context.Context, claim string, failure *unavailable.Failure) (Fate, error) {
		told = append(told, claim+" "+failure.Code)
		if deaf {
			return Remove, errors.New("no answer")
		}
		return Remove, nil
	})
	w.conclude(t.Context(), f, Machine{}, lost())
	if w.pending["general-a"] != f || l.deleted > 0 || left(w) != 2 {
		t.Errorf("not heard: followed %t, deleted %d times, %d cores left", w.pending["general-a"] == f, l.deleted, left(w))
	}
	deaf = false
	w.conclude(t.Context(), f, Machine{}, lost())
	if w.pending["general-a"] != nil || l.deleted != 1 || left(w) != 10 {
		t.Errorf("heard: followed %t, deleted %d times, %d cores left", w.pending["general-a"] != nil, l.deleted, left(w))
	}
	if want := []string{"general-a AllocationFailed", "general-a AllocationFailed"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	sku, _ := w.catalog.SKU("Standard_D8s_v5")
	if why, _ := w.offerings.Unavailable(sku, instancetype.ZoneLabel("eastus", ""), model.OnDemand); why == "" {
		t.Error("what failed is offered as before")
	}
	counted := w.metrics.failed[false].WithLabelValues("", "Standard_D8s_v5", "0", "on-demand", "", phaseAsync, "AllocationFailed")
	if n := testutil.ToFloat64(counted); n != 1 {
		t.Errorf("counted as failed %v times, want once", n)
	}
}

// held is a launcher whose deletions and questions Azure holds back.
type held struct {
	listing
	asked, deleted []string
}

func (h *held) Failure(_ context.Context, claim string) (*unavailable.Failure, error) {
	h.asked = append(h.asked, claim)
	time.Sleep(time.Minute)
	return unavailable.NewFailure("AllocationFailed", "", nil), nil
}

func (h *held) Delete(_ context.Context, claim string) error {
	h.deleted = append(h.deleted, claim)
	time.Sleep(8 * time.Minute)
	return nil
}

// A machine that Azure takes long to speak of, or to delete, holds no other one up, and neither
// is asked for twice meanwhile.
func TestHeldBackRemovalHoldsNothingElseUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &held{listing: listing{machines: []Machine{{Claim: "general-a", State: Failed}, {Claim: "general-b", State: Creating}}}}
		w := buyerOf(t, l).watcher
		w.Follow(l.machines[0])
		w.Follow(l.machines[1])
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		time.Sleep(30 * time.Second)
		l.machines[1].State = Succeeded
		time.Sleep(oldPoll)
		if synctest.Wait(); followedOf(w, "general-b") != nil {
			t.Error("the machine that runs waits for the other one's failure")
		}
		time.Sleep(5 * time.Minute)
		l.machines = append(l.machines, Machine{Claim: "general-c", State: Succeeded})
		w.Follow(l.machines[2])
		time.Sleep(oldPoll)
		if synctest.Wait(); followedOf(w, "general-c") != nil {
			t.Error("the machine that runs waits for the other one's removal")
		}
		time.Sleep(5 * time.Minute)
		if followedOf(w, "general-a") != nil || len(l.asked) != 1 || len(l.deleted) != 1 {
			t.Errorf("in the end followed %t, asked why %d times, deleted %d times", followedOf(w, "general-a") != nil, len(l.asked), len(l.deleted))
		}
		stop()
		<-done
	})
}

// What becomes of a machine that fails late is for its claim's owner to say: one that is a node
// stays, and one whose claim goes is the claim's to remove.
func TestFailedMachineOfAClaimIsNotRemovedDirectly(t *testing.T) {
	for name, c := range map[string]struct {
		fate Fate
		gone bool
		free int64 // cores, once Azure's own figures count what exists
		now  int64 // cores, before
	}{
		"its claim takes it along": {Leave, false, 10, 2},
		"it is a node":             {Keep, false, 10, 2},
		"a node that is gone":      {Keep, true, 10, 10},
	} {
		l := &single{}
		w, f := late(t, l)
		w.OnFailed(func(context.Context, string, *unavailable.Failure) (Fate, error) { return c.fate, nil })
		outcome := lost()
		if c.gone {
			outcome.Failure = GoneFailure(nil)
		}
		w.conclude(t.Context(), f, Machine{}, outcome)
		if l.deleted > 0 || w.pending["general-a"] != nil || left(w) != c.now {
			t.Errorf("%s: deleted %d times, followed %t, %d cores left", name, l.deleted, w.pending["general-a"] != nil, left(w))
		}
		if w.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now().Add(time.Hour)); left(w) != c.free {
			t.Errorf("%s: %d cores are left of what Azure says are 10", name, left(w))
		}
	}
}

// undeletable is a launcher whose machine cannot be removed.
type undeletable struct{ single }

func (u *undeletable) Delete(context.Context, string) error { return errors.New("not now") }

func TestFailedMachineThatStaysIsLookedAtAgain(t *testing.T) {
	w, f := late(t, &undeletable{})
	w.conclude(t.Context(), f, Machine{}, lost())
	if w.pending["general-a"] != f || left(w) != 2 {
		t.Errorf("followed %t, %d cores left, want it followed and its cores taken", w.pending["general-a"] == f, left(w))
	}
}

// While any call buys for a claim, the claim is for calls to act on.
func TestClaimIsHandledUntilItsLastCallEnds(t *testing.T) {
	w := buyerOf(t, &single{}).watcher
	first, second := w.Handle("general-a"), w.Handle("general-a")
	if first(); !w.isHandled("general-a") {
		t.Error("a call still buys for the claim")
	}
	if second(); w.isHandled("general-a") || len(w.handled) > 0 {
		t.Error("no call buys for the claim any more")
	}
}

// listing is a launcher whose machines an earlier process has left.
type listing struct {
	single
	machines []Machine
	errs     int // how often it does not answer at first
	gets     atomic.Int32
}

func (l *listing) List(context.Context) ([]Machine, error) {
	if l.errs--; l.errs >= 0 {
		return nil, errors.New("no answer")
	}
	return l.machines, nil
}

func (l *listing) Get(_ context.Context, claim string) (Machine, error) {
	l.gets.Add(1)
	for _, m := range l.machines {
		if m.Claim == claim {
			return m, nil
		}
	}
	return Machine{}, ErrNotFound
}

// What an earlier process left undone is seen through: machines that are being made, have
// failed or lack something, and that no call looks at. That is tried until Azure answers.
func TestWhatEarlierProcessLeftIsSeenThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listing{errs: 2, machines: []Machine{
			{Claim: "made", State: Creating, Size: "Standard_D8s_v5"}, {Claim: "failed", State: Failed}, {Claim: "lacks", State: Succeeded, Missing: []string{"cse"}},
			{Claim: "runs", State: Succeeded}, {Claim: "handled", State: Creating},
		}}
		w := buyerOf(t, l).watcher
		w.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now())
		defer w.Handle("handled")()
		w.resumeAll(t.Context())
		if got, want := slices.Sorted(maps.Keys(w.pending)), []string{"failed", "made"}; !slices.Equal(got, want) || left(w) != 2 {
			t.Errorf("followed are %v, want %v; %d cores are left, want 2", got, want, left(w))
		}
		if w.finisher.tries.Wait(); !slices.Equal(l.finished, []string{"lacks"}) {
			t.Errorf("finished are %v, want the one that lacks something", l.finished)
		}
	})
}

// What cannot be listed keeps nothing else from being watched, and what was seen through is not
// looked at again because of it.
func TestWhatCanBeListedIsWatchedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vms := &listing{machines: []Machine{{Claim: "general-a", State: Succeeded}}}
		aks := &listing{errs: 3, machines: []Machine{{Claim: "general-b", State: Creating, AKS: true}}}
		w := buyerOf(t, NewMixed(vms, aks, false)).watcher
		vms.machines[0].State = Creating
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		synctest.Wait()
		if followedOf(w, "general-a") == nil {
			t.Error("the machine that could be listed is not watched")
		}
		time.Sleep(time.Second)
		w.Forget("general-a")
		time.Sleep(time.Minute)
		if followedOf(w, "general-a") != nil || followedOf(w, "general-b") == nil {
			t.Errorf("after the list is whole, watched are the first: %t, the second: %t; want the second alone",
				followedOf(w, "general-a") != nil, followedOf(w, "general-b") != nil)
		}
		stop()
		<-done
	})
}

// unreadable is a launcher that cannot read the machines of some claims.
type unreadable struct {
	listing
	why map[string]error
}

func (u *unreadable) Get(ctx context.Context, claim string) (Machine, error) {
	if err := u.why[claim]; err != nil {
		return Machine{}, err
	}
	return u.listing.Get(ctx, claim)
}

// A machine that cannot be read is looked at again, whatever becomes of the others meanwhile. One
// that is not nap's any more draws on the quota and is not watched.
func TestUnreadableMachineHidesNoOther(t *testing.T) {
	l := &unreadable{
		listing{machines: []Machine{{Claim: "general-a", State: Succeeded}}},
		map[string]error{"general-b": errors.New("forbidden"), "general-c": ErrForeign},
	}
	w := buyerOf(t, l).watcher
	w.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now())
	for _, claim := range []string{"general-a", "general-b", "general-c"} {
		w.Follow(Machine{Claim: claim, Size: "Standard_D2s_v5", State: Creating})
	}
	w.look(t.Context())
	if got := slices.Sorted(maps.Keys(w.pending)); !slices.Equal(got, []string{"general-b"}) {
		t.Errorf("watched are %v, want the one that could not be read", got)
	}
	if w.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now().Add(time.Hour)); left(w) != 8 {
		t.Errorf("%d cores are left, want those of the machine that could not be read to be taken", left(w))
	}
}

// A machine is followed no longer when it runs. Few are asked for by name; many are listed,
// since Azure grants too few requests for them.
func TestMachinesAreFollowedUntilTheyRun(t *testing.T) {
	for count, gets := range map[int]int32{1: 1, fewMachines: fewMachines, fewMachines + 1: 0} {
		synctest.Test(t, func(t *testing.T) {
			l := &listing{}
			w := buyerOf(t, l).watcher
			for i := range count {
				m := Machine{Claim: fmt.Sprint("general-", i), State: Creating}
				w.Follow(m)
				m.State = Succeeded
				l.machines = append(l.machines, m)
			}
			// The watcher starts when all are followed: it looks as soon as it hears of the first.
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); w.Run(ctx) }()
			time.Sleep(2*listPoll + time.Millisecond)
			synctest.Wait()
			if len(w.pending) > 0 || l.gets.Load() != gets {
				t.Errorf("of %d machines that run %d are followed still, after %d were asked for by name, want %d", count, len(w.pending), l.gets.Load(), gets)
			}
			stop()
			<-done
		})
	}
}

// A call whose time is over takes nothing from the next call that waits for the claim's
// machine, nor from what has forgotten it.
func TestCallThatEndsLeavesTheNextOneItsOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := buyerOf(t, &single{}).watcher
		var outcome Outcome
		var calls sync.WaitGroup
		calls.Go(func() { w.Await(t.Context(), Machine{Claim: "general-a"}, 2*time.Second) })
		time.Sleep(time.Second)
		calls.Go(func() { outcome = w.Await(t.Context(), Machine{Claim: "general-a"}, time.Minute) })
		time.Sleep(2 * time.Second)
		w.conclude(t.Context(), followedOf(w, "general-a"), Machine{}, Outcome{Done: true})
		calls.Wait()
		if !outcome.Done {
			t.Error("the second call was not told")
		}
		calls.Go(func() { outcome = w.Await(t.Context(), Machine{Claim: "general-a"}, time.Second) })
		synctest.Wait()
		w.Forget("general-a")
		if calls.Wait(); outcome.Done || outcome.Failure != nil {
			t.Errorf("of a machine that was forgotten: %+v", outcome)
		}
	})
}

// What Azure says of a machine decides what becomes of its launch, whatever else is looked at.
func TestWhatAzureSaysDecidesTheLaunch(t *testing.T) {
	for name, c := range map[string]struct {
		state   State
		failure *unavailable.Failure
		done    bool
		want    string // the failure's code
	}{
		"it is being made":            {Creating, nil, false, ""},
		"it runs":                     {Succeeded, nil, true, ""},
		"it goes":                     {Deleting, nil, false, "MachineGone"},
		"it failed":                   {Failed, unavailable.NewFailure("AllocationFailed", "", nil), false, "AllocationFailed"},
		"a later change of it failed": {Failed, nil, true, ""},
	} {
		m := Machine{Claim: "general-a", State: c.state, AKS: true}
		w := buyerOf(t, &failing{single{machine: m}, c.failure}).watcher
		f := &followed{machine: m, waiter: make(chan Outcome, 1)}
		w.pending["general-a"] = f
		w.look(t.Context())
		w.workers.Wait()
		var got Outcome
		if len(f.waiter) > 0 {
			got = <-f.waiter
		}
		if got.Done != c.done || (got.Failure != nil) != (c.want != "") || got.Failure != nil && got.Failure.Code != c.want {
			t.Errorf("%s: told %+v", name, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := buyerOf(t, &listing{}).watcher
		f := &followed{machine: Machine{Claim: "general-a"}, waiter: make(chan Outcome, 1)}
		w.pending["general-a"] = f
		w.look(t.Context())
		time.Sleep(MissingFor)
		w.look(t.Context())
		if w.workers.Wait(); len(f.waiter) == 0 {
			t.Error("that the machine is not there any more is not told")
		}
	})
}

// However many machines come to be followed meanwhile, Azure is asked no more often than it
// grants.
func TestLooksAreNoMoreThanAzureGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listing{machines: []Machine{{Claim: "general-a", State: Creating}}}
		w := buyerOf(t, l).watcher
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		synctest.Wait()
		for range 100 {
			w.Follow(l.machines[0])
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if gets, most := l.gets.Load(), int32(time.Second/NewPoll)+1; gets == 0 || gets > most {
			t.Errorf("asked %d times within a second, want %d at most", gets, most)
		}
		stop()
		<-done
	})
}
