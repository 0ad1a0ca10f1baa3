package armsim_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

func TestQuotaEnforcedBeforeUsageIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic, func(c *armsim.Config) { c.Quota = map[string]int64{"standardDSv5Family": 8} })
		for _, name := range []string{"a", "b"} {
			if _, err := u.begin(name, machine{size: "Standard_D4s_v5", zone: "1"}); err != nil {
				t.Fatal(err)
			}
		}
		if used, limit := u.usage("standardDSv5Family"); used != 0 || limit != 8 {
			t.Errorf("the usages API shows %d of %d at once, want 0 of 8", used, limit)
		}
		_, err := u.begin("c", machine{size: "Standard_D4s_v5", zone: "1"})
		wantError(t, err, "OperationNotAllowed", "Current Limit: 8, Current Usage: 8, Additional Required: 4")
		time.Sleep(time.Minute)
		if used, _ := u.usage("standardDSv5Family"); used != 8 {
			t.Errorf("after the lag the usages API shows %d, want 8", used)
		}
		if used, _ := u.usage("cores"); used != 8 {
			t.Errorf("regional cores %d, want 8", used)
		}
	})
}

func TestQuotaOfSpotIsSeparate(t *testing.T) {
	u := subscribe(t)
	u.mustBuy("a", machine{size: "Standard_D4s_v5", zone: "1", spot: true})
	for name, want := range map[string]int64{"lowPriorityCores": 4, "cores": 0, "standardDSv5Family": 0} {
		if used, _ := u.usage(name); used != want {
			t.Errorf("%s: %d, want %d", name, used, want)
		}
	}
}

func TestQuotaReleasedByDeletionAndFailure(t *testing.T) {
	u := subscribe(t)
	u.mustBuy("a", machine{size: "Standard_D4s_v5", zone: "1"})
	f := u.fault(armsim.Fault{Kind: armsim.FaultCapacity})
	if _, err := u.buy("b", machine{size: "Standard_D8s_v5", zone: "1"}); err == nil {
		t.Fatal("created without capacity")
	}
	if used, _ := u.usage("cores"); used != 4 {
		t.Errorf("%d cores after a failure, want 4", used)
	}
	if err := u.Server.RemoveFault(f.ID); err != nil {
		t.Fatal(err)
	}
	if err := u.sell("a"); err != nil {
		t.Fatal(err)
	}
	if used, _ := u.usage("cores"); used != 0 {
		t.Errorf("%d cores after deletion, want 0", used)
	}
}

func TestZoneCapacityIsFiniteAndReturned(t *testing.T) {
	u := subscribe(t, func(c *armsim.Config) {
		c.Capacity = []armsim.CapacityRule{{Size: "Standard_D*s_v5", Zone: "1", Priority: "Regular", Machines: 2}}
	})
	u.mustBuy("a", machine{size: "Standard_D4s_v5", zone: "1"})
	u.mustBuy("b", machine{size: "Standard_D8s_v5", zone: "1"})
	_, err := u.buy("c", machine{size: "Standard_D2s_v5", zone: "1"})
	wantError(t, err, "ZonalAllocationFailed", "")
	u.mustBuy("d", machine{size: "Standard_D2s_v5", zone: "2"})
	u.mustBuy("e", machine{size: "Standard_D2s_v5", zone: "1", spot: true})
	if err := u.sell("a"); err != nil {
		t.Fatal(err)
	}
	u.mustBuy("f", machine{size: "Standard_D2s_v5", zone: "1"})
}

func TestSameSeedGivesSameEvents(t *testing.T) {
	story := func() string {
		out := ""
		synctest.Test(t, func(t *testing.T) {
			u := subscribe(t, armtest.Realistic, func(c *armsim.Config) { c.Seed = 7 })
			u.fault(armsim.Fault{Kind: armsim.FaultCapacity, Rate: 0.5})
			for i := range 10 {
				_, err := u.buy(fmt.Sprintf("m%d", i), machine{size: "Standard_D4s_v5", zone: "1"})
				out += fmt.Sprintln(i, err == nil, time.Now().Format(time.RFC3339Nano))
			}
		})
		return out
	}
	if a, b := story(), story(); a != b {
		t.Errorf("two runs differ:\n%s\n%s", a, b)
	}
}
