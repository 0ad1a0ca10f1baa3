package providertest

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// inBatchedMode runs a test with AKS machines that are asked for in batches, and
// counts their calls.
func inBatchedMode(t *testing.T, test func(t *testing.T, w *world, calls *puts), options ...func(*armsim.Config)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		calls := &puts{RoundTripper: w.HTTP.Transport}
		w.HTTP = &http.Client{Transport: calls}
		w.restartAs(t, config.ModeAKSMachinesBatched)
		test(t, w, calls)
		w.deleteAll(t)
		w.noLeaks(t)
	}, append(options, armtest.Realistic)...)
}

func TestAKSBatchWithoutCapacityFallsBackInSameLaunch(t *testing.T) {
	inBatchedMode(t, func(t *testing.T, w *world, _ *puts) {
		// However long Azure takes to find out: what it finds out later costs the claim.
		w.stop()
		w.config.LaunchSettle = time.Minute
		w.start(t)
		w.breaking(t, armsim.Fault{Kind: armsim.FaultCapacity, Size: "Standard_D4s_v5", Zone: "1"})
		machines, errs := w.launchAlike(t, 9, anywhere)
		for i, err := range errs {
			if err != nil || machines[i].Zone == "1" || machines[i].Zone == "" {
				t.Errorf("machine %d is in zone %q, %v", i, machines[i].Zone, err)
			}
		}
		if n := w.Server.Stats()["vm.failed"]; n == 0 {
			t.Error("none of the batch was meant for the zone without capacity, so that the test shows nothing")
		}
	})
}

func TestAKSBatchOutOfAddressesRefusesOnlyTheRest(t *testing.T) {
	inBatchedMode(t, func(t *testing.T, w *world, _ *puts) {
		_, errs := w.launchAlike(t, 14, anywhere)
		refused := 0
		for i, err := range errs {
			var r *launch.Refused
			switch {
			case err == nil:
			case errors.As(err, &r) && r.Failure.Kind == unavailable.SubnetFull:
				refused++
			default:
				t.Errorf("machine %d: %v", i, err)
			}
		}
		if list, err := w.provider.List(t.Context()); err != nil || len(list) != 11 || refused != 3 {
			t.Errorf("%d machines, %d refused, %v; want 11 and 3", len(list), refused, err)
		}
	}, func(c *armsim.Config) { c.Cluster.Subnet = netip.MustParsePrefix("10.224.0.0/28") })
}

// lossy is a transport that answers calls for batches with a failure of AKS,
// although AKS has made the first half of the machines.
type lossy struct{ http.RoundTripper }

func (l lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	header := r.Header.Get("BatchPutMachine")
	if header == "" {
		return l.RoundTripper.RoundTrip(r)
	}
	entries := strings.SplitAfter(strings.TrimSuffix(strings.TrimPrefix(header, `{"batchMachines":[`), "]}"), "}},")
	half := strings.TrimSuffix(strings.Join(entries[:(len(entries)+1)/2], ""), ",")
	r = r.Clone(r.Context())
	r.Header.Set("BatchPutMachine", `{"batchMachines":[`+half+"]}")
	answer, err := l.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	answer.StatusCode, answer.Status = http.StatusInternalServerError, "500 Internal Server Error"
	answer.Body = http.NoBody
	return answer, nil
}

func TestAKSBatchFailureAdoptsCreatedMachinesAndRetriesRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		healthy := w.HTTP
		w.HTTP = &http.Client{Transport: lossy{healthy.Transport}}
		w.restartAs(t, config.ModeAKSMachinesBatched)
		_, errs := w.launchAlike(t, 8, anywhere)
		bought := 0
		for _, err := range errs {
			if err == nil {
				bought++
			}
		}
		if bought != 4 {
			t.Errorf("%d calls have their machine, want the 4 that AKS made: %v", bought, errs)
		}
		w.HTTP = healthy
		w.restartAs(t, config.ModeAKSMachinesBatched)
		if _, errs := w.launchAlike(t, 8, anywhere); errors.Join(errs...) != nil {
			t.Errorf("asking again: %v", errs)
		}
		if list, err := w.provider.List(t.Context()); err != nil || len(list) != 8 || w.Server.Stats()["machine.accepted"] != 8 {
			t.Errorf("%d machines, %d made, %v; want 8 each", len(list), w.Server.Stats()["machine.accepted"], err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestAKSBatchFailureIsReportedPerClaimWithoutLeaks(t *testing.T) {
	inBatchedMode(t, func(t *testing.T, w *world, _ *puts) {
		mend := w.breaking(t, armsim.Fault{
			Kind: armsim.FaultError, Operation: "Microsoft.ContainerService/managedClusters/agentPools/machines/write",
			Status: http.StatusInternalServerError,
			Code:   "BatchMachineInternalServerError", Message: `[{"code":"SkuNotAvailable","message":"none left","target":"general-001"}]`,
		})
		_, errs := w.launchAlike(t, 3, func(int) []model.Requirement { return []model.Requirement{zones("eastus-1")} })
		for i, want := range []string{"BatchMachineInternalServerError", "SkuNotAvailable", "BatchMachineInternalServerError"} {
			var r *launch.Refused
			if !errors.As(errs[i], &r) || r.Failure.Code != want {
				t.Errorf("claim %d: %v, want %s", i, errs[i], want)
			}
		}
		if blocked := w.blocked("Standard_D4s_v5"); len(blocked) == 0 {
			t.Error("what AKS said about one machine is not remembered")
		}
		mend()
		w.noLeaks(t)
	})
}
