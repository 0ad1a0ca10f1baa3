package providertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// deleteUntilGone deletes a claim's machine as Karpenter does, until it is not found.
func (w *world) deleteUntilGone(t *testing.T, claim, providerID string) {
	t.Helper()
	for range 60 {
		err := w.provider.Delete(t.Context(), claim, providerID)
		if errors.Is(err, launch.ErrNotFound) {
			w.noLeaks(t)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
	}
	t.Errorf("the machine of %s is there after 20 minutes", claim)
}

// noMachineAPI is what AKS answers where it has no machine API of nap's version.
func noMachineAPI() armsim.Fault {
	return armsim.Fault{Kind: armsim.FaultError, Operation: machineRead, Status: http.StatusBadRequest,
		Code: "InvalidApiVersionParameter", Message: "The api-version '2026-04-02-preview' is invalid."}
}

// otherSetups start the next process so that it does not look after the machines of agent pool
// machines.
func otherSetups() map[string]func(t *testing.T, w *world) {
	return map[string]func(t *testing.T, w *world){
		"machine API is not there": func(t *testing.T, w *world) {
			w.breaking(t, noMachineAPI())
			w.discover(t, "AKS_MACHINES_POOL_NAME", "machines")
			if why := w.config.ModeChoice; w.config.ProvisionMode != config.ModeVMs || strings.Contains(why, "PROVISION_MODE") ||
				!strings.Contains(why, "agent pool machines") {
				t.Errorf("chosen is %s, because %s", w.config.ProvisionMode, why)
			}
		},
		"another agent pool": func(t *testing.T, w *world) { w.discover(t, "AKS_MACHINES_POOL_NAME", "second") },
		"plain machines":     func(t *testing.T, w *world) { w.discover(t, "PROVISION_MODE", config.ModeVMs) },
	}
}

// The machine of a claim goes with it, also where nap is not told any more to look after the
// machines of its agent pool: else it would be paid for ever, and no claim would tell of it.
func TestAKSMachineGoesWhateverNapIsSetUpFor(t *testing.T) {
	const claim = "general-abc12"
	for name, change := range otherSetups() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.discover(t, "AKS_MACHINES_POOL_NAME", "machines")
				m, err := w.provider.Launch(t.Context(), w.pooled(claim))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				change(t, w)
				err = w.provider.Delete(t.Context(), "general-other", m.ProviderID)
				if !errors.Is(err, launch.ErrForeign) {
					t.Errorf("the machine of another claim: %v, want that it is foreign", err)
				}
				if list, err := w.provider.List(t.Context()); err != nil || len(list) != 1 || list[0].Claim != claim ||
					list[0].ProviderID != m.ProviderID || list[0].Size != m.Size || list[0].State != launch.Succeeded {
					t.Errorf("listed are %+v, %v, want %+v", list, err, m)
				}
				if found, err := w.provider.Find(t.Context(), m.ProviderID); err != nil || found.Claim != claim {
					t.Errorf("found is %+v, %v", found, err)
				}
				w.deleteUntilGone(t, claim, m.ProviderID)
			}, func(c *armsim.Config) { c.Cluster.MachinesPools = []string{"machines", "second"} })
		})
	}
}

// Garbage collection finds such a machine, too, once it has no claim.
func TestAKSMachineIsCollectedWhateverNapIsSetUpFor(t *testing.T) {
	const claim = "general-abc12"
	for name, change := range otherSetups() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.discover(t, "AKS_MACHINES_POOL_NAME", "machines")
				if _, err := w.provider.Launch(t.Context(), w.pooled(claim)); err != nil {
					t.Fatal(err)
				}
				change(t, w)
				time.Sleep(10 * time.Minute)
				claimed := func(context.Context) (map[string]bool, error) { return map[string]bool{claim: true}, nil }
				if removed, err := w.provider.CollectMachines(t.Context(), claimed); err != nil || len(removed) > 0 {
					t.Errorf("with its claim, removed %v, %v, want none", removed, err)
				}
				if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || !slices.Equal(removed, []string{claim}) {
					t.Errorf("removed %v, %v, want the machine", removed, err)
				}
				time.Sleep(10 * time.Minute)
				w.noLeaks(t)
			}, func(c *armsim.Config) { c.Cluster.MachinesPools = []string{"machines", "second"} })
		})
	}
}

// Where nap has chosen plain machines because the machine API was not there for a moment, it starts
// again with AKS machines.
func TestRunEndsWhenMachineAPIArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{Env: armtest.New(t, fewSizes)}
		mend := w.breaking(t, noMachineAPI())
		done, cancel := w.runDiscovered(t)
		defer cancel()
		time.Sleep(10 * time.Minute)
		select {
		case err := <-done:
			t.Fatalf("ended with %v while there is no machine API", err)
		default:
		}
		mend()
		time.Sleep(3 * time.Minute)
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "agent pool machines") {
				t.Errorf("ended with %v", err)
			}
		default:
			t.Error("plain machines go on being made")
		}
		cancel()
		synctest.Wait()
	})
}

// renaming makes machines have another name in Azure than nap asks for, while it is on.
type renaming struct {
	http.RoundTripper
	from, to string
	on       *bool
}

func (r renaming) RoundTrip(req *http.Request) (*http.Response, error) {
	if *r.on && strings.Contains(req.URL.Path, "/machines/"+r.from) {
		req = req.Clone(req.Context())
		req.URL.Path, req.URL.RawPath = strings.Replace(req.URL.Path, "/machines/"+r.from, "/machines/"+r.to, 1), ""
	}
	return r.RoundTripper.RoundTrip(req)
}

// A machine that another controller, or an earlier nap, has named is updated and removed by its own
// name, with its claim and by garbage collection.
func TestAKSMachineOfAnotherNameGoes(t *testing.T) {
	const claim = "general-purpose-on-demand-amd64-abc12"
	named, err := launch.MachineName(claim)
	if err != nil {
		t.Fatal(err)
	}
	for name, remove := range map[string]func(t *testing.T, w *world, m launch.Machine){
		"with its claim": func(t *testing.T, w *world, m launch.Machine) { w.deleteUntilGone(t, claim, m.ProviderID) },
		"collected": func(t *testing.T, w *world, _ launch.Machine) {
			removed, err := w.provider.CollectMachines(t.Context(), noClaims)
			if err != nil || !slices.Equal(removed, []string{claim}) {
				t.Errorf("removed %v, %v, want the machine", removed, err)
			}
			time.Sleep(10 * time.Minute)
			if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) > 0 {
				t.Errorf("once more, removed %v, %v, want none", removed, err)
			}
			w.noLeaks(t)
		},
		"updated first, once it is listed": func(t *testing.T, w *world, m launch.Machine) {
			if got := w.claimsListed(t); got != claim {
				t.Fatalf("listed are %s", got)
			}
			w.class.Tags = map[string]string{"team": "web"}
			if err := w.provider.Update(t.Context(), claim, w.class); err != nil {
				t.Fatal(err)
			}
			if m, err := w.provider.Get(t.Context(), claim); err != nil || m.Tags["team"] != "web" {
				t.Errorf("updated is %+v, %v", m, err)
			}
			w.deleteUntilGone(t, claim, m.ProviderID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				on := true
				w.restartAs(t, config.ModeAKSMachines)
				w.through(t, func(rt http.RoundTripper) http.RoundTripper {
					return renaming{rt, named, "general-purpose-on-demxyzxyz-abc12", &on}
				})
				m, err := w.provider.Launch(t.Context(), w.pooled(claim))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				on = false
				remove(t, w, m)
			})
		})
	}
}

// unread answers that there is no machine to all who ask for one by its name.
type unread struct{ http.RoundTripper }

func (u unread) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/virtualMachines/aks-general-abc12") {
		return &http.Response{StatusCode: http.StatusNotFound, Request: req, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"error": {"code": "ResourceNotFound", "message": "It is not there."}}`))}, nil
	}
	return u.RoundTripper.RoundTrip(req)
}

// A machine that is listed, and is not there when it is to be removed, was not removed.
func TestListedMachineThatIsNotFoundIsNotRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if err := w.buyOne(t, "general-abc12"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		w.through(t, func(rt http.RoundTripper) http.RoundTripper { return unread{rt} })
		for range 2 {
			if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) > 0 {
				t.Errorf("removed %v, %v, want none", removed, err)
			}
			time.Sleep(10 * time.Minute)
		}
	})
}
