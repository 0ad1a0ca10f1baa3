package providertest

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestRegionalQuotaRefusalStillAllowsSpot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		// On-demand is asked for first where it is cheaper.
		if err := w.Server.SetPrice("Standard_D4s_v5", true, 10); err != nil {
			t.Fatal(err)
		}
		// Prices are read again after twelve hours; quotas not at the moment of the fault.
		time.Sleep(12*time.Hour + 5*time.Minute)
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultQuota, Family: "cores", Limit: limit(0)}); err != nil {
			t.Fatal(err)
		}
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), zones("eastus-1")))
		if err != nil || m.CapacityType != model.Spot {
			t.Errorf("bought %+v, %v; want a spot machine", m, err)
		}
		if n := w.Server.Stats()["errors OperationNotAllowed"]; n != 1 {
			t.Errorf("on-demand was refused %d times, want once", n)
		}
	})
}

func TestSpotUnavailableFallsBackToOnDemandInSameLaunch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Priority: "Spot"}); err != nil {
			t.Fatal(err)
		}
		family := model.Requirement{Key: instancetype.LabelSKUFamily, Operator: model.In, Values: []string{"D"}}
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", family, zones("eastus-1")))
		if err != nil || m.CapacityType != model.OnDemand {
			t.Errorf("bought %+v, %v; want a machine on demand", m, err)
		}
		if n := w.Server.Faults()[0].Hits; n > 6 {
			t.Errorf("spot was refused %d times before that", n)
		}
	})
}
