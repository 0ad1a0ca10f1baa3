package armsim_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"golang.org/x/sync/errgroup"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// Many clients at once, with calls that fail and operations that hang for a
// while: the books must balance at every stage.
func TestParallelVMsUnderFaultsKeepStateConsistent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 80
		u := subscribe(t, armtest.Realistic, func(c *armsim.Config) { c.Limits = []armsim.Limit{} })
		u.fault(armsim.Fault{Kind: armsim.FaultThrottle, Rate: 0.05})
		u.fault(armsim.Fault{Kind: armsim.FaultError, Rate: 0.05})
		u.fault(armsim.Fault{Kind: armsim.FaultHang, Rate: 0.05, Duration: 10 * time.Minute})
		u.fault(armsim.Fault{Kind: armsim.FaultCapacity, Rate: 0.1})
		var g errgroup.Group
		for i := range n {
			name := fmt.Sprintf("m%03d", i)
			g.Go(func() error {
				return insist(func() error { _, err := u.buy(name, machine{size: "Standard_D4s_v5", zone: "1"}); return err })
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, f := range u.Server.Faults() {
			if err := u.Server.RemoveFault(f.ID); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		inv := u.Server.Leaks()
		running := len(u.Server.Machines())
		if used, _ := u.usage("cores"); int(used) != 4*running || len(inv.NICs) != n || len(inv.VMs) != n {
			t.Errorf("%d machines run, %d cores in use, %d VMs, %d interfaces of %d", running, used, len(inv.VMs), len(inv.NICs), n)
		}
		for i := range n {
			g.Go(func() error { return insist(func() error { return u.sell(fmt.Sprintf("m%03d", i)) }) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if used, _ := u.usage("lowPriorityCores"); used != 0 || !u.Server.Leaks().Empty() {
			t.Errorf("left behind: %+v", u.Server.Leaks())
		}
		time.Sleep(time.Hour)
		if used, _ := u.usage("cores"); used != 0 {
			t.Errorf("%d cores in use by nothing", used)
		}
	})
}

// insist tries again while the API says that it is worth it. A machine that
// found no capacity is left as it is, failed.
func insist(f func() error) error {
	for range 50 {
		err := f()
		var re *azcore.ResponseError
		if err == nil || errors.As(err, &re) && re.ErrorCode == "ZonalAllocationFailed" {
			return nil
		}
		if !errors.As(err, &re) || re.StatusCode != http.StatusTooManyRequests && re.StatusCode < 500 {
			return err
		}
		time.Sleep(time.Second)
	}
	return errors.New("no luck in 50 tries")
}

func BenchmarkBuyAndSell(b *testing.B) {
	u := subscribe(b)
	i := 0
	for b.Loop() {
		i++
		name := fmt.Sprintf("m%d", i)
		if _, err := u.buy(name, machine{size: "Standard_D4s_v5", zone: "1"}); err != nil {
			b.Fatal(err)
		}
		if err := u.sell(name); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetAmongThousandMachines(b *testing.B) {
	u := subscribe(b)
	for i := range 1000 {
		if _, err := u.begin(fmt.Sprintf("m%d", i), machine{size: "Standard_D4s_v5", zone: "1"}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := u.vms.Get(b.Context(), u.NodeResourceGroup, "m500", nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFindOwnAmongThousandMachines(b *testing.B) {
	u := subscribe(b)
	for i := range 1000 {
		if _, err := u.begin(fmt.Sprintf("m%d", i), machine{size: "Standard_D4s_v5", zone: "1"}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if ids, err := u.query(ownVMs, 1000); err != nil || len(ids) != 1000 {
			b.Fatal(len(ids), err)
		}
	}
}
