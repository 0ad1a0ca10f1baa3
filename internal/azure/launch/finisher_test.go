package launch

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/nodeautoprovision/nap/internal/azure/quota"
)

// finishing is a launcher that takes a while to finish a machine, and fails at first.
type finishing struct {
	single
	takes time.Duration
	fails int
	err   error
	began []time.Duration
	start time.Time
}

func (f *finishing) Finish(context.Context, Machine) error {
	f.began = append(f.began, time.Since(f.start))
	time.Sleep(f.takes)
	if f.fails--; f.fails >= 0 {
		return f.err
	}
	return nil
}

// lacking is a machine that runs and lacks something.
func lacking() Machine {
	return Machine{Claim: "general-a", State: Succeeded, Missing: []string{"cse"}, Size: "Standard_D8s_v5"}
}

// What Azure refuses to put on a machine is tried again after pauses that grow to two minutes,
// and never twice at once.
func TestMachineIsFinishedAfterGrowingPauses(t *testing.T) {
	for takes, want := range map[time.Duration][]time.Duration{
		0:                {0, 5 * time.Second, 15 * time.Second, 35 * time.Second, 75 * time.Second, 155 * time.Second, 275 * time.Second},
		10 * time.Second: {0, 15 * time.Second, 35 * time.Second, 65 * time.Second, 115 * time.Second, 205 * time.Second, 335 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &finishing{single: single{machine: lacking()}, takes: takes, fails: 6, err: errors.New("not now"), start: time.Now()}
			f := buyerOf(t, l).watcher.finisher
			for range 100 {
				f.start(t.Context(), lacking())
				if synctest.Wait(); f.due("general-a") {
					t.Fatalf("after %s it is left to others", time.Since(l.start))
				}
				time.Sleep(time.Second)
			}
			f.tries.Wait()
			if !slices.Equal(l.began, want) || !f.due("general-a") {
				t.Errorf("tried at %v, want %v; left to others afterwards %t", l.began, want, f.due("general-a"))
			}
		})
	}
}

// A machine that runs is launched, and counts where Azure counts it, whatever it lacks.
func TestMachineThatRunsIsLaunchedWhateverItLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &finishing{single: single{machine: lacking()}, fails: 1, err: errors.New("not now"), start: time.Now()}
		w, f := late(t, l)
		for range 2 {
			w.judge(t.Context(), f, lacking(), true)
			synctest.Wait()
		}
		if w.quota.Set([]quota.Line{{Name: "f", Limit: 10}}, time.Now().Add(time.Hour)); followedOf(w, "general-a") != nil || left(w) != 10 {
			t.Errorf("followed %t, %d cores left of what Azure says are 10", followedOf(w, "general-a") != nil, left(w))
		}
		if len(l.began) != 1 {
			t.Errorf("begun at %v, want it begun once", l.began)
		}
		w.finisher.tries.Wait()
	})
}

// What a policy or a role forbids is asked for seldom after a quarter of an hour. Beside another
// fault it is tried as that is.
func TestForbiddenFinishIsLeftAloneForAnHour(t *testing.T) {
	policy := &azcore.ResponseError{StatusCode: http.StatusForbidden, ErrorCode: "RequestDisallowedByPolicy"}
	for name, c := range map[string]struct {
		err   error
		ended bool
	}{
		"forbidden":           {errors.Join(policy), true},
		"forbidden and other": {errors.Join(policy, errors.New("not now")), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &finishing{single: single{machine: lacking()}, fails: 1000, err: c.err, start: time.Now()}
			w := buyerOf(t, l).watcher
			w.finisher.start(t.Context(), lacking())
			time.Sleep(time.Hour)
			if last := l.began[len(l.began)-1]; (last < 20*time.Minute) != c.ended || len(l.began) < 10 {
				t.Errorf("%s: tried at %v", name, l.began)
			}
			if w.MayFinish("general-a") {
				t.Errorf("%s: it is to be tried by others", name)
			}
			if time.Sleep(20 * time.Minute); w.MayFinish("general-a") != c.ended {
				t.Errorf("%s: later it is to be tried by others: %t", name, !c.ended)
			}
			w.Forget("general-a")
			w.finisher.tries.Wait()
		})
	}
}

// Of a machine that is removed nothing is tried any more, nor remembered.
func TestRemovedMachineIsNotFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &finishing{single: single{machine: lacking()}, fails: 9, err: errors.New("not now"), start: time.Now()}
		w := buyerOf(t, l).watcher
		w.finisher.start(t.Context(), lacking())
		time.Sleep(time.Second)
		w.Forget("general-a")
		w.finisher.tries.Wait()
		if len(l.began) != 1 || len(w.finisher.stops)+len(w.finisher.refused) > 0 {
			t.Errorf("tried at %v, %d under way, %d refused", l.began, len(w.finisher.stops), len(w.finisher.refused))
		}
	})
}
