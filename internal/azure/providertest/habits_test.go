package providertest

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

func TestUsagesAreReadEveryTenMinutesAndBelievedForFifteen(t *testing.T) {
	const usages = "Microsoft.Compute/locations/usages/read"
	inWorld(t, func(t *testing.T, w *world) {
		reads := func() int64 { return w.Server.Stats()["calls "+usages] }
		before := reads()
		time.Sleep(time.Hour + time.Minute)
		if n := reads() - before; n != 6 {
			t.Errorf("read %d times in an hour, want 6", n)
		}
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Operation: usages, Status: http.StatusForbidden, Code: "AuthorizationFailed"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(13 * time.Minute) // the last answer is a minute old by then
		if len(w.provider.QuotaLines()) == 0 {
			t.Error("figures of fourteen minutes ago are not believed")
		}
		time.Sleep(2 * time.Minute)
		if n := len(w.provider.QuotaLines()); n != 0 {
			t.Errorf("%d figures of sixteen minutes ago are believed", n)
		}
	})
}

// forced counts the deletions of virtual machines, and those that do not wait for
// the system to shut down.
type forced struct {
	http.RoundTripper
	all, force atomic.Int64
}

func (f *forced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/virtualMachines/") {
		f.all.Add(1)
		if r.URL.Query().Get("forceDeletion") == "true" {
			f.force.Add(1)
		}
	}
	return f.RoundTripper.RoundTrip(r)
}

func TestMachinesAreDeletedWithoutWaitingForTheirSystems(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		counted := &forced{RoundTripper: w.HTTP.Transport}
		w.HTTP = &http.Client{Transport: counted}
		w.restartAs(t, config.ModeVMs)
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"))); err != nil {
			t.Fatal(err)
		}
		w.deleteAll(t)
		if all, force := counted.all.Load(), counted.force.Load(); all == 0 || force != all {
			t.Errorf("%d of %d deletions are forced, want all", force, all)
		}
		w.noLeaks(t)
	})
}
