package providertest

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

func TestLateFailureIsReportedWithoutLeaks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultFail, Code: "OverconstrainedZonalAllocationRequest", Message: "No capacity.",
		}); err != nil {
			t.Fatal(err)
		}
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
		if err != nil || m.State != launch.Creating {
			t.Fatalf("launch gives %+v, %v; want a machine on its way", m, err)
		}
		time.Sleep(10 * time.Minute)
		if kind := w.reported("general-abc12"); kind != unavailable.OverconstrainedZonal {
			t.Errorf("reported as %q, want %s", kind, unavailable.OverconstrainedZonal)
		}
		if got := w.blocked("Standard_D4s_v5"); !slices.Equal(got, []string{"D4s_v5 on-demand eastus-1"}) {
			t.Errorf("blocked are %v", got)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}

func TestTrap27LateFailureReportedForClaimWithoutPool(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultFail, Code: "OverconstrainedZonalAllocationRequest", Message: "No capacity.",
		}); err != nil {
			t.Fatal(err)
		}
		order := w.order("standalone", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1"))
		order.Pool = ""
		if _, err := w.provider.Launch(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if kind := w.reported("standalone"); kind != unavailable.OverconstrainedZonal {
			t.Errorf("two minutes after the launch the claim has heard %q, want %s", kind, unavailable.OverconstrainedZonal)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}

// Azure may give the operating system up that is ready later: the machine is a node by then
// and stays, whichever process hears of it.
func TestNodeThatAzureGaveUpIsKept(t *testing.T) {
	for name, restarted := range map[string]bool{"by the process that made it": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.fate = launch.Keep
				w.add(t, armsim.Fault{Kind: armsim.FaultFail, Code: "OSProvisioningTimedOut", Message: "The VM may still finish provisioning."})
				w.buy(t)
				if restarted {
					w.stop()
				}
				time.Sleep(25 * time.Minute)
				if restarted {
					w.start(t)
					time.Sleep(time.Minute)
				}
				if w.reported("general-abc12") == "" || w.claimsListed(t) != "general-abc12" {
					t.Errorf("reported %q, machines %q; want the failure told and the machine kept", w.reported("general-abc12"), w.claimsListed(t))
				}
				for _, e := range w.Server.Audit(0) {
					if e.Action == "vm.deleting" || e.Action == "vm.deleted" {
						t.Errorf("%s %s", e.Time, e.Action)
					}
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: 20 * time.Minute} })
		})
	}
}

// One machine that Azure does not show, or shows as another's, hides no failure of another.
func TestUnreadableMachineHidesNoLateFailure(t *testing.T) {
	for name, hide := range map[string]func(t *testing.T, w *world){
		"forbidden": func(t *testing.T, w *world) {
			w.add(t, armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/read", Resource: "aks-general-aaaaa",
				Status: http.StatusForbidden, Code: "AuthorizationFailed"})
		},
		"without its tags": func(t *testing.T, w *world) {
			w.send(t, http.MethodPatch, "Microsoft.Compute/virtualMachines/aks-general-aaaaa", `{"tags": {"karpenter.azure.com_cluster": "other"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add(t, armsim.Fault{Kind: armsim.FaultFail, Resource: "aks-general-ccccc",
					Code: "OverconstrainedZonalAllocationRequest", Message: "No capacity."})
				if _, err := w.provider.Launch(t.Context(), w.order("general-aaaaa", sizes("Standard_D4s_v5"), onDemand())); err != nil {
					t.Fatal(err)
				}
				hide(t, w)
				if _, err := w.provider.Launch(t.Context(), w.order("general-ccccc", sizes("Standard_D4s_v5"), onDemand())); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Minute)
				if kind := w.reported("general-ccccc"); kind != unavailable.OverconstrainedZonal {
					t.Errorf("after three minutes reported as %q, want %s", kind, unavailable.OverconstrainedZonal)
				}
			}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
		})
	}
}

// Of a launch that meets a failure of capacity after Azure has accepted it, Azure's
// own are the time that it takes to find out, and to delete the machine that it did
// not make. The rest, between these and to the next request, is nap's.
func TestTrap24LateRefusalRetryOverhead(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines, config.ModeAKSMachinesBatched} {
		for _, deletion := range []time.Duration{1300 * time.Millisecond, 10 * time.Second, 35 * time.Second, time.Minute} {
			t.Run(mode+" "+deletion.String(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.restartAs(t, mode)
					if _, err := w.Server.AddFault(armsim.Fault{
						Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v4",
					}); err != nil {
						t.Fatal(err)
					}
					m, err := w.provider.Launch(t.Context(),
						w.order("general-abc12", sizes("Standard_D4s_v5", "Standard_D4s_v4"), onDemand(), zones("eastus-1")))
					if err != nil || m.Size != "Standard_D4s_v5" {
						t.Fatalf("bought %+v, %v; want the second choice", m, err)
					}
					at := map[string]time.Time{}
					for _, e := range w.Server.Audit(0) {
						at[e.Action] = e.Time // of the requests for machines the last, which is the second
					}
					if at["vm.failed"].IsZero() || at["vm.deleting"].IsZero() || at["vm.deleted"].IsZero() {
						t.Fatalf("the first choice has not failed and been deleted: %v", at)
					}
					added := at["vm.deleting"].Sub(at["vm.failed"]) + at["vm.accepted"].Sub(at["vm.deleted"])
					t.Logf("nap adds %v", added)
					if added >= 2*time.Second {
						t.Errorf("nap adds %v to what Azure takes, want less than 2s", added)
					}
					w.deleteAll(t)
					w.noLeaks(t)
				}, func(c *armsim.Config) {
					c.Limits = nil // Azure's published ones
					c.Latency.VMFail.Median, c.Latency.VMDelete.Median = 6100*time.Millisecond, deletion
				})
			})
		}
	}
}
