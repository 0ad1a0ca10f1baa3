package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

func TestVMLaunchIsIdempotentAfterKill(t *testing.T) {
	for name, path := range map[string]string{
		"after the network interface": "/networkinterfaces/aks-general-abc12",
		"after the machine":           "/virtualmachines/aks-general-abc12",
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx, kill := context.WithCancelCause(t.Context())
				defer kill(nil)
				healthy := w.HTTP
				w.stop()
				w.HTTP = &http.Client{Transport: &killAfter{healthy.Transport, http.MethodPut, path, kill}}
				w.start(t)
				if _, err := w.provider.Launch(ctx, w.order("general-abc12", onDemand())); err == nil {
					t.Fatal("the launch survived its kill")
				}
				w.stop()

				w.HTTP = healthy
				w.start(t)
				if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
					t.Fatal(err)
				}
				if n := w.Server.Stats()["vm.accepted"]; n != 1 {
					t.Errorf("Azure accepted %d machines, want one", n)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}

// A call that is given up once Azure has accepted leaves a machine that is not watched. The
// next call for the claim finds it, and its failure is told.
func TestMachineOfAbandonedCallIsWatchedByTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, giveUp := context.WithCancelCause(t.Context())
		defer giveUp(nil)
		healthy := w.HTTP
		w.stop()
		w.HTTP = &http.Client{Transport: &killAfter{healthy.Transport, http.MethodPut, "/virtualmachines/aks-general-abc12", giveUp}}
		w.start(t)
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultFail, Code: "OverconstrainedZonalAllocationRequest", Message: "No capacity.",
		}); err != nil {
			t.Fatal(err)
		}
		order := w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1"))
		if _, err := w.provider.Launch(ctx, order); err == nil {
			t.Fatal("the call was not given up")
		}
		if m, err := w.provider.Launch(t.Context(), order); err != nil || m.State != launch.Creating {
			t.Fatalf("the next call gives %+v, %v; want the machine on its way", m, err)
		}
		time.Sleep(3 * time.Minute) // it fails after one
		if kind := w.reported("general-abc12"); kind != unavailable.OverconstrainedZonal {
			t.Errorf("the claim has heard %q, want %s", kind, unavailable.OverconstrainedZonal)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}

// mortal is the transport of a process that is killed at its n-th write, before
// Azure gets it or after. What comes later goes nowhere.
type mortal struct {
	http.RoundTripper
	at     int
	before bool
	kill   context.CancelCauseFunc

	mu     sync.Mutex
	writes int
	dead   bool
}

func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return nil, errKilled
	}
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "ResourceGraph") {
		m.writes++
		m.dead = m.writes == m.at
	}
	dead := m.dead
	m.mu.Unlock()
	if !dead {
		return m.RoundTripper.RoundTrip(r)
	}
	if !m.before {
		answer, err := m.RoundTripper.RoundTrip(r)
		if err == nil {
			answer.Body.Close()
		}
	}
	m.kill(errKilled)
	return nil, errKilled
}

// oneSize is a transport that knows one size of machines, so that the many
// processes of a test start faster.
type oneSize struct {
	http.RoundTripper
	once sync.Once
	list []byte
}

func (o *oneSize) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.RoundTripper.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/skus") {
		return answer, err
	}
	o.once.Do(func() {
		var all struct{ Value []map[string]any }
		if err = json.NewDecoder(answer.Body).Decode(&all); err == nil {
			all.Value = slices.DeleteFunc(all.Value, func(sku map[string]any) bool { return sku["name"] != "Standard_D4s_v5" })
			o.list, err = json.Marshal(map[string]any{"value": all.Value})
		}
	})
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(o.list))
	answer.ContentLength = int64(len(o.list))
	answer.Header.Del("Content-Length")
	return answer, err
}

// act is something that nap does in Azure for two claims, and may do again.
type act struct {
	name string
	do   func(ctx context.Context, w *world, claims []string) error
}

func acts() []act {
	return []act{
		{"launch", func(ctx context.Context, w *world, claims []string) error {
			errs := make([]error, len(claims))
			var wg sync.WaitGroup
			for i, claim := range claims {
				wg.Go(func() { _, errs[i] = w.provider.Launch(ctx, w.order(claim, sizes("Standard_D4s_v5"), onDemand())) })
			}
			wg.Wait()
			select {
			case <-time.After(3 * time.Minute): // what is done once machines run
			case <-ctx.Done():
			}
			return errors.Join(append(errs, ctx.Err())...)
		}},
		{"update", func(ctx context.Context, w *world, claims []string) error {
			class := *w.class
			class.Tags = map[string]string{"team": "web"}
			var errs []error
			for _, claim := range claims {
				errs = append(errs, w.provider.Update(ctx, claim, &class))
			}
			return errors.Join(errs...)
		}},
		{"delete", func(ctx context.Context, w *world, claims []string) error {
			for range 600 {
				left := 0
				for _, claim := range claims {
					switch err := w.provider.Delete(ctx, claim, ""); {
					case err == nil:
						left++
					case !errors.Is(err, launch.ErrNotFound):
						return err
					}
				}
				if left == 0 {
					return nil
				}
				time.Sleep(time.Second)
			}
			return errors.New("machines do not go away")
		}},
	}
}

// run is one life of two claims' machines: killed in one act, and carried on by
// another process.
type run struct {
	act, at int
	before  bool
}

func (r run) String() string {
	when := "after"
	if r.before {
		when = "before"
	}
	return fmt.Sprintf("%s, killed %s write %d", acts()[r.act].name, when, r.at)
}

// play returns false when the act has fewer writes.
func (r run) play(t *testing.T, w *world, healthy *http.Client, claims []string) bool {
	t.Helper()
	made := w.Server.Stats()["vm.accepted"]
	reached := true
	for i, a := range acts() {
		if i == r.act {
			ctx, kill := context.WithCancelCause(t.Context())
			end := &mortal{RoundTripper: healthy.Transport, at: r.at, before: r.before, kill: kill}
			w.stop()
			w.HTTP = &http.Client{Transport: end}
			w.start(t)
			err := a.do(ctx, w, claims)
			kill(nil)
			w.stop()
			w.HTTP = healthy
			w.start(t)
			if reached = end.dead; reached && err == nil {
				t.Errorf("%s: the act survived its kill", r)
			}
		}
		if err := a.do(t.Context(), w, claims); err != nil {
			t.Errorf("%s: %s by the next process: %v", r, a.name, err)
		}
		r.look(t, w, a.name, claims)
	}
	if n := w.Server.Stats()["vm.accepted"] - made; n != int64(len(claims)) {
		t.Errorf("%s: Azure has made %d machines for %d claims", r, n, len(claims))
	}
	w.noLeaks(t)
	return reached
}

// look checks what there must be after an act.
func (r run) look(t *testing.T, w *world, act string, claims []string) {
	t.Helper()
	for _, claim := range claims {
		m, err := w.provider.Get(t.Context(), claim)
		switch {
		case act == "delete":
			if !errors.Is(err, launch.ErrNotFound) {
				t.Errorf("%s: NodeClaim %s still has %+v, %v", r, claim, m, err)
			}
		case err != nil || m.State != launch.Succeeded || m.Unfinished():
			t.Errorf("%s: after %s NodeClaim %s has %+v, %v", r, act, claim, m, err)
		case act == "update" && m.Tags["team"] != "web":
			t.Errorf("%s: NodeClaim %s has tags %v", r, claim, m.Tags)
		}
	}
}

// A process is killed before and after every write of a machine's life, and
// another one goes on with what Azure has kept.
func TestKillAtAnyWriteLeavesNoDuplicatesOrLeaks(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines, config.ModeAKSMachinesBatched} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				// In Azure's own clouds machines have an extension too.
				w.config.Cloud = config.Cloud{Name: config.CloudUSGov, TenantID: w.config.Cloud.TenantID}
				w.HTTP = &http.Client{Transport: &oneSize{RoundTripper: w.HTTP.Transport}}
				w.restartAs(t, mode)
				healthy, kills := w.HTTP, 0
				for act := range acts() {
					for at := 1; ; at++ {
						more := false
						for _, before := range []bool{true, false} {
							claims := []string{fmt.Sprintf("general-a%04d", kills), fmt.Sprintf("general-b%04d", kills)}
							if (run{act, at, before}).play(t, w, healthy, claims) {
								kills++
								more = true
							}
						}
						if !more || t.Failed() {
							break
						}
					}
				}
				least := map[string]int{config.ModeVMs: 28, config.ModeAKSMachines: 12, config.ModeAKSMachinesBatched: 10}[mode]
				if kills < least {
					t.Errorf("%d kills, want at least %d", kills, least)
				}
			}, armtest.Realistic)
		})
	}
}

// After the kill nothing asks for the machines again: their claims are gone.
func TestGarbageCollectionOfKilledLaunchWithoutClaim(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines, config.ModeAKSMachinesBatched} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.HTTP, w.config.Cloud.RetailPrices = &http.Client{Transport: &oneSize{RoundTripper: w.HTTP.Transport}}, ""
				w.restartAs(t, mode)
				healthy := w.HTTP
				for at := 1; at <= 4; at++ {
					ctx, kill := context.WithCancelCause(t.Context())
					w.stop()
					w.HTTP = &http.Client{Transport: &mortal{RoundTripper: healthy.Transport, at: at, kill: kill}}
					w.start(t)
					_ = acts()[0].do(ctx, w, []string{"general-abc12", "general-xyz34"}) // killed, or it has no such write
					kill(nil)
					w.stop()
					w.HTTP = healthy
					w.start(t)
					for range 3 {
						time.Sleep(10 * time.Minute)
						if _, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil {
							t.Error(err)
						}
						if _, err := w.provider.CollectNICs(t.Context(), noClaims); err != nil {
							t.Error(err)
						}
					}
					w.noLeaks(t)
				}
			}, armtest.Realistic)
		})
	}
}

func TestAKSMachineFailureWhileStoppedReportedAfterRestart(t *testing.T) {
	inBothAKSModes(t, failsUnseen, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}

func TestTrap6RestartFollowsPendingOperations(t *testing.T) {
	inWorld(t, failsUnseen, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}

// failsUnseen has a machine accepted, the process die, the machine fail unseen, and
// the next process report it.
func failsUnseen(t *testing.T, w *world) {
	w.stop()
	w.config.LaunchSettle = 0
	w.start(t)
	w.breaking(t, armsim.Fault{Kind: armsim.FaultFail, Code: "ZonalAllocationFailed", Message: "No capacity."})
	m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
	if err != nil || m.State != launch.Creating {
		t.Fatalf("launch gives %+v, %v", m, err)
	}
	w.stop()
	time.Sleep(5 * time.Minute)

	w.start(t)
	time.Sleep(time.Minute)
	if kind := w.reported("general-abc12"); kind != unavailable.ZonalAllocation {
		t.Errorf("the new process reports %q, want %s", kind, unavailable.ZonalAllocation)
	}
	if got := w.blocked("Standard_D4s_v5"); len(got) != 2 {
		t.Errorf("the new process blocks %v, want both capacity types in eastus-1", got)
	}
	w.deleteAll(t)
	w.noLeaks(t)
}
