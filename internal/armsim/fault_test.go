package armsim_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

func TestFaultQuotaCutAffectsUsagesAndRequestsUntilRemoved(t *testing.T) {
	u := subscribe(t)
	limit := int64(2)
	f := u.fault(armsim.Fault{Kind: armsim.FaultQuota, Family: "standardDSv5Family", Limit: &limit})
	if _, l := u.usage("standardDSv5Family"); l != 2 {
		t.Errorf("limit %d, want 2", l)
	}
	_, err := u.begin("a", machine{size: "Standard_D4s_v5"})
	wantError(t, err, "OperationNotAllowed", "Current Limit: 2")
	if got := u.Server.Faults()[0].Hits; got != 1 {
		t.Errorf("struck %d times, want 1", got)
	}
	if err := u.Server.RemoveFault(f.ID); err != nil {
		t.Fatal(err)
	}
	u.mustBuy("a", machine{size: "Standard_D4s_v5"})
}

func TestFaultEndsAfterDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		u.fault(armsim.Fault{Kind: armsim.FaultOutage, Duration: time.Minute})
		_, err := u.nic("a")
		wantError(t, err, "ServiceUnavailable", "")
		wantStatus(t, err, http.StatusServiceUnavailable)
		time.Sleep(time.Minute + time.Second)
		if _, err := u.nic("a"); err != nil {
			t.Error(err)
		}
		if n := len(u.Server.Faults()); n != 0 {
			t.Errorf("%d faults in force", n)
		}
	})
}

func TestFaultOutageClosesConnection(t *testing.T) {
	u := subscribe(t)
	u.fault(armsim.Fault{Kind: armsim.FaultOutage, Code: "abort"})
	if _, err := u.nic("a"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
}

func TestFaultThrottlesShareOfCalls(t *testing.T) {
	u := subscribe(t)
	u.fault(armsim.Fault{
		Kind: armsim.FaultThrottle, Operation: "Microsoft.Network/networkInterfaces/write", Rate: 0.3, RetryAfter: 7 * time.Second,
	})
	throttled := 0
	for i := range 200 {
		_, err := u.nic(fmt.Sprint("n", i))
		if err == nil {
			continue
		}
		throttled++
		wantStatus(t, err, http.StatusTooManyRequests)
	}
	if throttled < 40 || throttled > 80 {
		t.Errorf("%d of 200 throttled, want about 60", throttled)
	}
}

func TestFaultSlowOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		u.fault(armsim.Fault{Kind: armsim.FaultSlow, Factor: 10})
		start := time.Now()
		u.mustBuy("a", machine{size: "Standard_D4s_v5"})
		if took := time.Since(start); took < 2*time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

func TestFaultHangEndsWhenRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		f := u.fault(armsim.Fault{Kind: armsim.FaultHang, Operation: "Microsoft.Compute/virtualMachines/write", Resource: "aks-h*"})
		p, err := u.begin("aks-h1", machine{size: "Standard_D4s_v5"})
		if err != nil {
			t.Fatal(err)
		}
		u.mustBuy("aks-a", machine{size: "Standard_D4s_v5"}) // not selected
		time.Sleep(2 * time.Hour)
		if _, err := p.Poll(t.Context()); err != nil || p.Done() {
			t.Fatalf("after two hours: done %v, %v", p.Done(), err)
		}
		if err := u.Server.RemoveFault(f.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := p.PollUntilDone(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestFaultNoBootIsNeverReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		seen := &recorder{}
		u.Server.Observe(seen)
		f := u.fault(armsim.Fault{Kind: armsim.FaultNoBoot})
		u.mustBuy("a", machine{size: "Standard_D4s_v5"})
		if err := u.Server.RemoveFault(f.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := u.sell("a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if h := seen.soFar(); len(h.booted) != 0 || len(h.gone) != 0 {
			t.Errorf("heard %+v of a machine that never booted", h)
		}
	})
}

func TestFaultProvisioningAffectsMachinesBootedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		f := u.fault(armsim.Fault{Kind: armsim.FaultProvisioning, Size: "Standard_E4s_v5", Code: "52", Message: "no such host"})
		u.mustBuy("other", machine{size: "Standard_D4s_v5"})
		u.mustBuy("broken", machine{size: "Standard_E4s_v5"})
		time.Sleep(10 * time.Minute)
		if err := u.Server.RemoveFault(f.ID); err != nil {
			t.Fatal(err)
		}
		u.mustBuy("later", machine{size: "Standard_E4s_v5"})
		time.Sleep(10 * time.Minute)
		machines := u.Server.Machines()
		for _, m := range machines {
			want := armsim.Provisioning{Stdout: `{"ExitCode":"0","Output":"","Error":"","ExecDuration":"1"}` + "\n"}
			if m.Name == "broken" {
				want = armsim.Provisioning{ExitCode: 1, Stdout: `{"ExitCode":"52","Output":"no such host","Error":"","ExecDuration":"1"}` + "\n"}
			}
			if m.Provisioned == nil || *m.Provisioned != want || (m.Broken != nil) != (m.Name == "broken") {
				t.Errorf("machine %s ended with %+v, broken %v", m.Name, m.Provisioned, m.Broken)
			}
		}
		if len(machines) != 3 {
			t.Errorf("%d machines", len(machines))
		}
		if _, err := u.Server.AddFault(armsim.Fault{Kind: armsim.FaultProvisioning, Code: "AllocationFailed"}); err == nil ||
			!strings.Contains(err.Error(), "give a number from 1 to 255") {
			t.Errorf("a code that is none: %v", err)
		}
	})
}

func TestFaultSpotEvictionWarnsThenDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		seen := &recorder{}
		u.Server.Observe(seen)
		u.mustBuy("spot", machine{size: "Standard_D4s_v5", zone: "1", spot: true})
		u.mustBuy("regular", machine{size: "Standard_D4s_v5", zone: "1"})
		time.Sleep(3 * time.Minute)
		u.fault(armsim.Fault{Kind: armsim.FaultEvict})
		synctest.Wait()
		if h := seen.soFar(); len(h.warned) != 1 || !strings.HasSuffix(h.warned[0], "/spot") || len(h.gone) != 0 {
			t.Fatalf("after the notice: warned %v, gone %v", h.warned, h.gone)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if h := seen.soFar(); len(h.gone) != 1 {
			t.Errorf("gone %v, want the spot machine", h.gone)
		}
		_, err := u.vms.Get(t.Context(), u.NodeResourceGroup, "spot", nil)
		wantError(t, err, "ResourceNotFound", "")
		if inv := u.Server.Leaks(); len(inv.VMs) != 1 || len(inv.NICs) != 1 || len(inv.Disks) != 1 {
			t.Errorf("inventory %+v, want the regular machine and its things alone", inv)
		}
	})
}

func TestFaultEvictionIsCanceledWhenRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		u.mustBuy("spot", machine{size: "Standard_D4s_v5", zone: "1", spot: true})
		time.Sleep(3 * time.Minute)
		f := u.fault(armsim.Fault{Kind: armsim.FaultEvict, Resource: "spot"})
		if err := u.Server.RemoveFault(f.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n := len(u.Server.Machines()); n != 1 {
			t.Errorf("%d machines run, want 1", n)
		}
	})
}

func TestFaultInvalidIsRefusedNamingField(t *testing.T) {
	u := subscribe(t)
	for want, f := range map[string]armsim.Fault{
		"it is one of capacity, policy, quota, throttle": {Kind: "fire"},
		`size "Standard_*_*" is not allowed`:             {Kind: armsim.FaultPolicy, Size: "Standard_*_*"},
		"rate 2 is not between 0 and 1":                  {Kind: armsim.FaultCapacity, Rate: 2},
		"it is Regular or Spot":                          {Kind: armsim.FaultCapacity, Priority: "low"},
		"limit is missing":                               {Kind: armsim.FaultQuota, Family: "cores"},
		"factor 1 is not greater than 1":                 {Kind: armsim.FaultSlow, Factor: 1},
		"code is missing":                                {Kind: armsim.FaultFail},
		"status 200 is not an HTTP error":                {Kind: armsim.FaultError, Status: 200},
	} {
		if _, err := u.Server.AddFault(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", f, err, want)
		}
	}
	if n := len(u.Server.Faults()); n != 0 {
		t.Errorf("%d faults in force", n)
	}
}
