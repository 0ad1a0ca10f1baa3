package purchasebackoff

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

func TestCeilingBoundsMachinesAndTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := fleet.NewStore()
		c := NewCeiling(Limits{Machines: 10, PerMinute: 4}, clock.RealClock{})
		want := func(n int, why string) {
			t.Helper()
			got, text := c.Room(store.Snapshot())
			if got != n || !strings.Contains(text, why) {
				t.Fatalf("room for %d (%s), want %d (%s)", got, text, n, why)
			}
		}
		buy := func(n int) {
			for range n {
				store.Put(&fleet.Claim{Name: fmt.Sprint(time.Now().UnixNano(), n), Created: time.Now()})
				time.Sleep(time.Millisecond)
			}
			c.Bought(n)
		}
		want(4, "--max-new-nodes-per-minute")
		buy(3)
		want(1, "--max-new-nodes-per-minute")
		// A new process knows the claims.
		c = NewCeiling(Limits{Machines: 10, PerMinute: 4}, clock.RealClock{})
		want(1, "--max-new-nodes-per-minute")
		time.Sleep(time.Minute)
		want(4, "--max-new-nodes-per-minute")
		buy(4)
		time.Sleep(time.Minute)
		want(3, "--max-nodes allows 10")
		if n, _ := NewCeiling(Limits{}, clock.RealClock{}).Room(store.Snapshot()); n < 1e9 {
			t.Errorf("without limits there is room for %d", n)
		}
	})
}
