package providertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// sizes asks for one of some sizes.
func sizes(names ...string) model.Requirement {
	return model.Requirement{Key: model.LabelInstanceType, Operator: model.In, Values: names}
}

func onDemand() model.Requirement {
	return model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{"on-demand"}}
}

func spot() model.Requirement {
	return model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{"spot"}}
}

func zones(labels ...string) model.Requirement {
	return model.Requirement{Key: model.LabelZone, Operator: model.In, Values: labels}
}

func (w *world) order(claim string, requirements ...model.Requirement) azure.Order {
	return azure.Order{
		Claim: claim, Pool: "general", Class: w.class, Requirements: requirements, Requests: model.Resources{1000, 1 << 30, 0, 1},
	}
}

// pooled is an order of a NodePool's claim, with the labels that claims have.
func (w *world) pooled(claim string) azure.Order {
	o := w.order(claim, sizes("Standard_D4s_v5"), onDemand())
	o.Labels = map[string]string{"karpenter.sh/nodepool": "general"}
	return o
}

func limit(n int64) *int64 { return &n }

// launchAll buys machines in parallel and returns how long each took.
func (w *world) launchAll(t *testing.T, n int) []time.Duration {
	t.Helper()
	begin := time.Now()
	took := make([]time.Duration, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := w.provider.Launch(t.Context(), w.order(fmt.Sprintf("general-%03d", i), onDemand())); err != nil {
				t.Error(err)
			}
			took[i] = time.Since(begin)
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took
}

// launchAlike asks for so many machines at once, general-000 and so on, and
// returns what became of each.
func (w *world) launchAlike(t *testing.T, n int, requirements func(i int) []model.Requirement) (machines []launch.Machine, errs []error) {
	t.Helper()
	machines, errs = make([]launch.Machine, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			machines[i], errs[i] = w.provider.Launch(t.Context(),
				w.order(fmt.Sprintf("general-%03d", i), append(requirements(i), onDemand(), sizes("Standard_D4s_v5"))...))
		})
	}
	wg.Wait()
	return machines, errs
}

func anywhere(int) []model.Requirement { return nil }

// launchBatch asks for machines of one batch, in this order, and returns what
// became of each.
func (w *world) launchBatch(t *testing.T, claims ...string) []error {
	t.Helper()
	errs := make([]error, len(claims))
	var wg sync.WaitGroup
	for i, claim := range claims {
		wg.Go(func() {
			_, errs[i] = w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
		})
	}
	wg.Wait()
	return errs
}

func kindOf(err error) unavailable.Kind {
	var refused *launch.Refused
	if errors.As(err, &refused) {
		return refused.Failure.Kind
	}
	return ""
}

// The rows of the error map that are about something else than what is for sale.

const (
	vmWrites  = "calls Microsoft.Compute/virtualMachines/write"
	aksWrites = "Microsoft.ContainerService/managedClusters/agentPools/machines/write"
)
