package providertest

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

const (
	poolWrite   = "Microsoft.ContainerService/managedClusters/agentPools/write"
	machineRead = "Microsoft.ContainerService/managedClusters/agentPools/machines/read"
)

// without is a cluster that has no agent pool of mode Machines.
func without(c *armsim.Config) { c.Cluster.MachinesPools = []string{} }

// discover makes the next process one that learns from the cluster what it is told by
// no variable.
func (w *world) discover(t *testing.T, vars ...string) {
	t.Helper()
	w.stop()
	c, err := discovered(t, w.Env, vars...)
	if err != nil {
		t.Fatal(err)
	}
	c.ClusterCA, c.LaunchSettle, c.Cloud.RetailPrices = w.config.ClusterCA, w.config.LaunchSettle, w.config.Cloud.RetailPrices
	w.config = c
	w.start(t)
}

// buyOne launches one machine.
func (w *world) buyOne(t *testing.T, claim string) error {
	t.Helper()
	_, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), onDemand()))
	return err
}

// calls counts the requests of an action that the simulated Azure has answered, by
// status.
func (w *world) calls(action string) map[int]int {
	out := map[int]int{}
	for _, e := range w.Server.Audit(0) {
		if e.Kind == armsim.AuditCall && e.Action == action {
			out[e.Status]++
		}
	}
	return out
}

// paused is the reason and message of the present pause.
func (w *world) paused() string {
	if p := w.provider.Pause(); p != nil {
		return p.Reason + ": " + p.Message
	}
	return ""
}

func TestModeChosenFromCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, log := armtest.New(t), &strings.Builder{}
		c, err := azure.Discover(t.Context(), loaded(t, env), azure.Deps{
			Credential: env.Credential, Transport: env.HTTP, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
		if err != nil || c.ProvisionMode != config.ModeAKSMachines || c.MachinesPool != "machines" {
			t.Errorf("with a pool: %s in %q, %v", c.ProvisionMode, c.MachinesPool, err)
		}
		for _, want := range []string{"mode=aksmachineapi", `because="the cluster has agent pool machines of mode Machines"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %s: %s", want, log)
			}
		}
		c, err = discovered(t, armtest.New(t, without))
		if err != nil || c.ProvisionMode != config.ModeVMs || !strings.Contains(c.ModeChoice, "az rest --method PUT") {
			t.Errorf("without: %s because %q, %v", c.ProvisionMode, c.ModeChoice, err)
		}
	})
}

// TestModeWhereAKSMakesNoMachines: a preview that is not to be had is told with what to
// do, and nap takes the other way where it may choose.
func TestModeWhereAKSMakesNoMachines(t *testing.T) {
	for name, tt := range map[string]struct {
		status        int
		code, message string
		want          string
	}{
		"region": {http.StatusBadRequest, "NoRegisteredProviderFound",
			"No registered resource provider found for location 'eastus' and API version '2026-04-02-preview' for type 'managedClusters'.",
			"set PROVISION_MODE to aksscriptless"},
		"cloud": {http.StatusNotFound, "NoRegisteredProviderFound", "No registered resource provider found.", "set PROVISION_MODE to aksscriptless"},
		"feature": {http.StatusBadRequest, "PreviewFeatureNotRegistered", "Preview feature Microsoft.ContainerService/SomePreview not registered.",
			"az feature register --namespace Microsoft.ContainerService"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := armtest.New(t)
				if _, err := env.Server.AddFault(armsim.Fault{
					Kind: armsim.FaultError, Operation: machineRead, Status: tt.status, Code: tt.code, Message: tt.message,
				}); err != nil {
					t.Fatal(err)
				}
				_, err := discovered(t, env, "PROVISION_MODE", config.ModeAKSMachines)
				if err == nil || !strings.Contains(err.Error(), tt.message) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("asked for: %v, want %q", err, tt.want)
				}
				c, err := discovered(t, env)
				if err != nil || c.ProvisionMode != config.ModeVMs || !strings.Contains(c.ModeChoice, tt.message) {
					t.Errorf("chosen: %s because %q, %v", c.ProvisionMode, c.ModeChoice, err)
				}
			})
		})
	}
}

func TestPoolOfAnotherModeIsRefusedAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := discovered(t, armtest.New(t), "PROVISION_MODE", config.ModeAKSMachines, "AKS_MACHINES_POOL_NAME", "system")
		if err == nil || !strings.Contains(err.Error(), "AKS_MACHINES_POOL_NAME is system, the cluster says that agent pool is of mode System") {
			t.Errorf("got %v", err)
		}
	})
}

func TestMissingPoolPausesUntilItAppears(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.discover(t, "PROVISION_MODE", config.ModeAKSMachines)
		if got := w.paused(); !strings.HasPrefix(got, managedcluster.ReasonPoolMissing) || !strings.Contains(got, "az rest --method PUT") ||
			!strings.Contains(got, "NAP_CREATE_MACHINES_POOL=true") {
			t.Errorf("paused: %s", got)
		}
		if err := w.buyOne(t, "general-a"); err == nil || len(w.calls(machinesWrite)) > 0 {
			t.Errorf("bought: %v, %v", err, w.calls(machinesWrite))
		}
		if list, err := w.provider.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("machines of a pool that is missing: %v, %v", list, err)
		}
		w.put(t, "/agentPools/machines", `{"properties": {"mode": "Machines"}}`)
		time.Sleep(time.Minute)
		if got := w.paused(); got != "" {
			t.Errorf("the pool is there: %s", got)
		}
		if err := w.buyOne(t, "general-a"); err != nil {
			t.Error(err)
		}
		if n := w.calls(poolWrite); n[http.StatusCreated] != 1 {
			t.Errorf("pools were asked for %v, want once, by the owner", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, without)
}

const machinesWrite = "Microsoft.ContainerService/managedClusters/agentPools/machines/write"

// put writes a part of the cluster, as its owner does.
func (w *world) put(t *testing.T, part, body string) {
	t.Helper()
	token, _ := w.Server.Token("owner")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		armtest.Endpoint+w.Server.ClusterID()+part+"?api-version=2026-04-02-preview", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.HTTP.Do(r)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatalf("PUT %s: %v, %v", part, answer, err)
	}
	answer.Body.Close()
}

func TestPoolUnlistedIsTakenWhenItsMachinesAre(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.discover(t, "PROVISION_MODE", config.ModeAKSMachines)
		time.Sleep(5 * time.Minute)
		if got := w.paused(); got != "" {
			t.Errorf("paused: %s", got)
		}
		if err := w.buyOne(t, "general-a"); err != nil {
			t.Error(err)
		}
		w.deleteAll(t)
	}, func(c *armsim.Config) {
		c.Cluster.Properties = map[string]any{"agentPoolProfiles": []any{map[string]any{"name": "system", "mode": "System"}}}
	})
}

// TestPoolIsMadeOnceByTwoControllers: the second finds it, and a restart too.
func TestPoolIsMadeOnceByTwoControllers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.discover(t, "NAP_CREATE_MACHINES_POOL", "true")
		first := w.stop
		w.stop = func() {}
		w.discover(t, "NAP_CREATE_MACHINES_POOL", "true")
		second := w.stop
		w.stop = func() { first(); second() }
		if got := w.paused(); !strings.HasPrefix(got, managedcluster.ReasonPoolMissing) {
			t.Errorf("paused: %q", got)
		}
		time.Sleep(2 * time.Minute)
		if got := w.paused(); got != "" {
			t.Errorf("the pool is there: %s", got)
		}
		if err := w.buyOne(t, "general-a"); err != nil {
			t.Error(err)
		}
		w.stop()
		w.stop = func() {}
		w.discover(t, "NAP_CREATE_MACHINES_POOL", "true")
		time.Sleep(5 * time.Minute)
		if n := w.calls(poolWrite); n[http.StatusCreated] != 1 || n[http.StatusOK] != 0 {
			t.Errorf("AKS has answered %v, want one pool made and none changed", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, without, principals(append(config.Actions(), config.ActionCreatePool)))
}

func TestPoolRefusedIsSaidAndAskedForAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		option func(*armsim.Config)
		fault  *armsim.Fault
		want   []string
		most   int // requests in an hour
	}{
		"not permitted": {option: principals(config.Actions()), want: []string{
			"AuthorizationFailed", "permit " + config.ActionCreatePool, "set PROVISION_MODE to aksscriptless"}, most: 11},
		"feature": {fault: &armsim.Fault{Kind: armsim.FaultError, Operation: poolWrite, Status: http.StatusBadRequest,
			Code: "PreviewFeatureNotRegistered", Message: "Preview feature Microsoft.ContainerService/SomePreview not registered."},
			want: []string{"SomePreview not registered", "az feature register", "nap asks for it again at"}, most: 11},
		"busy": {fault: &armsim.Fault{Kind: armsim.FaultError, Operation: poolWrite, Status: http.StatusConflict,
			Code: "OperationNotAllowed", Message: "Another operation (Updating) is in progress"},
			want: []string{"nap makes it as soon as AKS lets it", "in progress"}, most: 181},
	} {
		t.Run(name, func(t *testing.T) {
			options := []func(*armsim.Config){without}
			if tt.option != nil {
				options = append(options, tt.option)
			}
			inWorld(t, func(t *testing.T, w *world) {
				fault := ""
				if tt.fault != nil {
					f, err := w.Server.AddFault(*tt.fault)
					if err != nil {
						t.Fatal(err)
					}
					fault = f.ID
				}
				w.discover(t, "NAP_CREATE_MACHINES_POOL", "true")
				time.Sleep(time.Second)
				for _, want := range tt.want {
					if got := w.paused(); !strings.Contains(got, want) {
						t.Errorf("paused: %s, want %q", got, want)
					}
				}
				if err := w.buyOne(t, "general-a"); err == nil {
					t.Error("bought without a pool")
				}
				time.Sleep(time.Hour)
				asked := 0
				for _, n := range w.calls(poolWrite) {
					asked += n
				}
				if asked < 2 || asked > tt.most {
					t.Errorf("asked for %d times in an hour, want 2 to %d", asked, tt.most)
				}
				if fault == "" {
					return
				}
				if err := w.Server.RemoveFault(fault); err != nil {
					t.Fatal(err)
				}
				time.Sleep(11 * time.Minute)
				if err := w.buyOne(t, "general-a"); err != nil {
					t.Errorf("after the refusals: %v", err)
				}
				w.deleteAll(t)
			}, options...)
		})
	}
}

// TestPoolThatGoesWhileNapRuns: nothing is bought, and the reason is said.
func TestPoolThatGoesWhileNapRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.discover(t)
		if err := w.buyOne(t, "general-a"); err != nil {
			t.Fatal(err)
		}
		w.deleteAll(t)
		token, _ := w.Server.Token("owner")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete,
			fmt.Sprintf("%s%s/agentPools/machines?api-version=2026-04-01", armtest.Endpoint, w.Server.ClusterID()), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := w.HTTP.Do(r)
		if err != nil || answer.StatusCode >= 300 {
			t.Fatalf("%v, %v", answer, err)
		}
		answer.Body.Close()
		w.put(t, "/agentPools/machines", `{"properties": {"mode": "User", "vmSize": "Standard_D4s_v5", "count": 0}}`)
		time.Sleep(3 * time.Minute)
		if got := w.paused(); !strings.HasPrefix(got, managedcluster.ReasonPoolMode) || !strings.Contains(got, "is of mode User") {
			t.Errorf("paused: %s", got)
		}
	})
}
