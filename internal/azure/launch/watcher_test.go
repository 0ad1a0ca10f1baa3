package launch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
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
		if w.judge(t.Context(), f, Machine{}, false); len(f.waiter) != 1 {
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
	if o := <-f.waiter; !o.Done || o.Failure != nil {
		t.Errorf("told %+v, want a launch that is done", o)
	}
	counted := b.watcher.metrics.failed[true].WithLabelValues("", "Standard_D4s_v5", "0", "", "", phaseAsync, "VMExtensionProvisioningError")
	if n := testutil.ToFloat64(counted); n != 1 {
		t.Errorf("counted %v times, want once", n)
	}
}
