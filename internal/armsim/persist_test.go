package armsim_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

func TestServerResumesOperationsAfterKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "azure-state.json")
	synctest.Test(t, func(t *testing.T) {
		cfg := armsim.Config{StateFile: file, UsageLag: -1, GraphLag: -1}
		first, err := armsim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		u := clientsOf(t, armtest.Around(first))
		u.mustBuy("running", machine{size: "Standard_D4s_v5", zone: "1"})
		time.Sleep(3 * time.Minute)
		fixed, err := first.AddAgentPoolMachine(armsim.PoolMachine{CustomData: []byte("boot")})
		if err != nil {
			t.Fatal(err)
		}
		p, err := u.begin("begun", machine{size: "Standard_D8s_v5", zone: "2"})
		if err != nil {
			t.Fatal(err)
		}
		u.fault(armsim.Fault{Kind: armsim.FaultCapacity, Size: "Standard_E*"})
		time.Sleep(time.Second) // the state is written
		resume, err := p.ResumeToken()
		if err != nil {
			t.Fatal(err)
		}
		before := len(first.Audit(0))
		kill(first)

		second, err := armsim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		v := clientsOf(t, armtest.Around(second))
		seen := &recorder{}
		second.Observe(seen)
		h := seen.soFar()
		if len(h.booted) != 2 || h.booted[0].Name != "running" {
			t.Fatalf("running after the restart: %+v", h.booted)
		}
		fixed.CreatedAt, fixed.BootedAt = h.booted[1].CreatedAt, h.booted[1].BootedAt // JSON drops the monotonic clock
		if diff := cmp.Diff(fixed, h.booted[1]); diff != "" {
			t.Errorf("machine of the pool (-before +after):\n%s", diff)
		}
		op, err := v.vms.BeginCreateOrUpdate(t.Context(), "", "", v.body("begun", machine{}), resumeWith(resume))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := op.PollUntilDone(t.Context(), nil); err != nil {
			t.Errorf("the operation did not survive: %v", err)
		}
		if used, _ := v.usage("cores"); used != 12 {
			t.Errorf("%d cores in use, want 12", used)
		}
		if n := len(second.Faults()); n != 1 {
			t.Errorf("%d faults, want 1", n)
		}
		if after := len(second.Audit(0)); after <= before {
			t.Errorf("the audit log shrank from %d to %d", before, after)
		}
		for i, e := range second.Audit(0) {
			if e.Sequence != uint64(i+1) {
				t.Fatalf("audit entry %d has sequence %d", i, e.Sequence)
			}
		}
		time.Sleep(3 * time.Minute)
		for _, name := range []string{"running", "begun"} {
			if err := v.sell(name); err != nil {
				t.Error(err)
			}
		}
		if !second.Leaks().Empty() {
			t.Errorf("left behind: %+v", second.Leaks())
		}
		if nic, err := v.nic("again"); err != nil || *nic.Properties.IPConfigurations[0].Properties.PrivateIPAddress == fixed.PrivateIP {
			t.Errorf("interface %v, %v: it has the address of the fixed machine", nic.Properties, err)
		}
	})
}
