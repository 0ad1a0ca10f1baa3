package quota

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/model"
)

func left(t *testing.T, tr *Tracker, name string, want int64) {
	t.Helper()
	if got, ok := tr.Left(name); !ok || got != want {
		t.Errorf("%s: %d left (limited %v), want %d", name, got, ok, want)
	}
}

func uses(amount int64) []model.QuotaUse {
	return []model.QuotaUse{{Quota: "standardDSv5Family", Amount: amount}, {Quota: "cores", Amount: amount}}
}

func TestTrap4PendingMachinesSubtractedUntilCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := NewTracker(time.Now)
		if _, limited := tr.Left("cores"); limited {
			t.Error("limited before Azure was asked")
		}
		lines := []Line{{Name: "StandardDSv5Family", Limit: 20, Used: 4}, {Name: "cores", Limit: 100, Used: 4}}
		tr.Set(lines, time.Now())
		tr.Reserve("a", uses(8))
		left(t, tr, "standardDSv5Family", 8)
		left(t, tr, "cores", 88)

		tr.Reserve("a", uses(4)) // another size for the same machine
		left(t, tr, "standardDSv5Family", 12)
		tr.Reserve("b", uses(2))
		tr.Release("b")
		left(t, tr, "standardDSv5Family", 12)

		tr.Settle("a")
		tr.Set(lines, time.Now()) // Azure has not noticed yet
		left(t, tr, "standardDSv5Family", 12)
		time.Sleep(usageLag)
		tr.Set([]Line{{Name: "standardDSv5Family", Limit: 20, Used: 8}}, time.Now())
		left(t, tr, "standardDSv5Family", 12)
		if _, limited := tr.Left("cores"); limited {
			t.Error("a line that Azure no longer names still limits")
		}
	})
}

func TestTakeRefusesBeyondQuota(t *testing.T) {
	tr := NewTracker(time.Now)
	if !tr.Take("early", uses(1000)) {
		t.Error("limited before Azure was asked")
	}
	tr.Release("early")
	tr.Set([]Line{{Name: "StandardDSv5Family", Limit: 20, Used: 4}, {Name: "cores", Limit: 14}}, time.Now())
	if !tr.Take("a", uses(8)) || !tr.Take("a", uses(12)) {
		t.Error("a machine that fits was refused, or did not count as the same one")
	}
	if tr.Take("b", uses(4)) {
		t.Error("the family has room and the region has not")
	}
	left(t, tr, "cores", 2)
	if !tr.Take("b", uses(2)) {
		t.Error("what was refused has left something behind")
	}
}

func TestStaleUsagesLimitNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := NewTracker(time.Now)
		tr.Set([]Line{{Name: "cores", Limit: 10, Used: 10}}, time.Now())
		left(t, tr, "cores", 0)
		before := tr.Revision()
		time.Sleep(staleAfter + time.Second)
		if _, limited := tr.Left("cores"); limited || tr.Revision() == before || len(tr.Lines()) != 0 {
			t.Error("figures of more than 15 minutes ago still count")
		}
		tr.Set([]Line{{Name: "cores", Limit: 10, Used: 10}}, time.Now())
		left(t, tr, "cores", 0)
	})
}

func TestRevisionChangesOnlyWhenAnswersMay(t *testing.T) {
	now := time.Unix(1000, 0)
	tr := NewTracker(func() time.Time { return now })
	step := func(what string, moves bool, f func()) {
		t.Helper()
		before := tr.Revision()
		f()
		if (tr.Revision() != before) != moves {
			t.Errorf("%s: revision from %d to %d", what, before, tr.Revision())
		}
	}
	lines := []Line{{Name: "cores", Limit: 10}}
	step("first figures", true, func() { tr.Set(lines, now) })
	step("same figures", false, func() { tr.Set(lines, now) })
	step("reserve", true, func() { tr.Reserve("a", uses(1)) })
	step("settle", false, func() { tr.Settle("a") })
	step("release", true, func() { tr.Release("a") })
	step("release again", false, func() { tr.Release("a") })
	if got := tr.Quotas(); len(got) != 1 || got[0] != (model.Quota{Name: "cores", Left: 10}) {
		t.Errorf("quotas %v", got)
	}
}

// What Azure has refused does not fit, whatever its figures say, until it gives new ones.
func TestRefusedQuotaHasLessLeft(t *testing.T) {
	tr := NewTracker(time.Now)
	tr.Set([]Line{{Name: "cores", Limit: 100, Used: 10}}, time.Now())
	tr.Reserve("other", []model.QuotaUse{{Quota: "cores", Amount: 20}})
	tr.Refused(model.QuotaUse{Quota: "Cores", Amount: 8}, nil)
	left(t, tr, "cores", 7)
	tr.Refused(model.QuotaUse{Quota: "cores", Amount: 16}, nil)
	left(t, tr, "cores", 7)
	tr.Refused(model.QuotaUse{Quota: "unknown", Amount: 16}, nil)
	tr.Refused(model.QuotaUse{Quota: "cores", Amount: 16}, &Line{Limit: 60, Used: 52})
	left(t, tr, "cores", 8)
	if l := tr.Lines()[0]; l.Limit != 60 || l.Used != 32 || l.InFlight != 20 {
		t.Errorf("the line is %+v, want what the refusal says", l)
	}
	tr.Refused(model.QuotaUse{Quota: "cores", Amount: 4}, &Line{Limit: 60, Used: 10}) // it does not fit all the same
	left(t, tr, "cores", 3)
	tr.Set([]Line{{Name: "cores", Limit: 100, Used: 10}}, time.Now())
	left(t, tr, "cores", 70)
}

// While machines are refused the figures are read more often, since the quota may be raised.
func TestFiguresAreReadSoonAfterARefusal(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	tr := NewTracker(func() time.Time { return now })
	tr.Set(nil, now)
	after := func(d time.Duration, want bool) {
		t.Helper()
		if now = now.Add(d); tr.due() != want {
			t.Errorf("due %s later: %v", d, tr.due())
		}
	}
	after(9*time.Minute, false)
	tr.Refused(model.QuotaUse{Quota: "cores", Amount: 2}, nil)
	after(0, true)
	client, err := armcompute.NewUsageClient("s", &azfake.TokenCredential{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	if cancel(); tr.Refresh(ended, client, "eastus") == nil {
		t.Error("a refresh whose context has ended succeeds")
	}
	after(0, false) // what is asked in vain is not asked at once again
	tr.Set(nil, now)
	after(50*time.Second, false)
	after(10*time.Second, true)
	now = now.Add(shortFor)
	tr.Set(nil, now)
	after(time.Minute, false)
	after(9*time.Minute, true)
}

// A machine that is gone frees quota at once, which nap learns from Azure's next figures: they
// are not waited for as long as usual.
func TestFiguresAreReadSoonAfterAMachineIsGone(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	tr := NewTracker(func() time.Time { return now })
	due := func(want bool, when string) {
		t.Helper()
		if tr.due() != want {
			t.Errorf("%s: due %v, want %v", when, !want, want)
		}
	}
	tr.Set(nil, now)
	now = now.Add(refreshSoon)
	tr.Reserve("refused", []model.QuotaUse{{Quota: "cores", Amount: 2}})
	tr.Release("refused")
	due(false, "after a machine that was refused")
	tr.Release("old")
	due(true, "after one that Azure counts")
	tr.Set(nil, now)
	due(false, "just asked")
	now = now.Add(refreshSoon)
	due(true, "while the figures may be older than the deletion")
	now = now.Add(usageLag)
	tr.Set(nil, now)
	now = now.Add(refreshSoon)
	due(false, "when they know of it")
}
