package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/model"
)

// ReasonPrice is the reason of the event that a machine costs another price than planned.
const ReasonPrice = "PriceDiffers"

// ReasonProvisioned is the reason of the event that says what was bought, which AKS's pages
// on node auto-provisioning look for.
const ReasonProvisioned = "Provisioned"

// sameWithin is by which part a price may differ from the planned one without an event.
const sameWithin = 0.01

// pay notes on a claim since when its machine is billed and what it costs, and tells where
// that is not what was planned.
func (p *Port) pay(ctx context.Context, claim, created *karpv1.NodeClaim, machine launch.Machine, catalog *instancetype.Built) {
	if !machine.Created.IsZero() {
		created.Annotations[v1beta1.AnnotationBilledSince] = machine.Created.UTC().Format(time.RFC3339Nano)
	}
	_, offering, known := p.azure.Describe(catalog, machine)
	if !known {
		return
	}
	paid := offering.Price + p.nodeCost(ctx, claim)
	created.Annotations[v1beta1.AnnotationPaidPrice] = strconv.FormatFloat(paid.Dollars(), 'f', -1, 64)
	where := ""
	if offering.Zone != instancetype.RegionalZone {
		where = " in " + offering.Zone
	}
	p.warnings.note(claim, ReasonProvisioned, fmt.Sprintf("%s %s%s was bought at %s", machine.Size, machine.CapacityType, where, paid))
	planned := hourly(claim, v1beta1.AnnotationPlannedPrice).Dollars()
	if planned == 0 || math.Abs(paid.Dollars()/planned-1) <= sameWithin {
		return
	}
	p.warnings.tell(claim, ReasonPrice, fmt.Sprintf(
		"%s %s was bought at %s instead of the planned $%.3f/h (%+.0f%%): Azure refused what was cheaper, or prices have changed",
		machine.Size, machine.CapacityType, paid, planned, 100*(paid.Dollars()/planned-1)))
}

// nodeCost is what the nodes of a claim's NodePool cost per hour beside machine and disk.
func (p *Port) nodeCost(ctx context.Context, claim *karpv1.NodeClaim) model.Money {
	pool := &karpv1.NodePool{}
	if err := p.kube.Get(ctx, client.ObjectKey{Name: claim.Labels[karpv1.NodePoolLabelKey]}, pool); err != nil {
		return 0
	}
	return nodeCostOf(pool)
}

// mostPrice is up to which price of an offering a claim's machine may be bought; nil means
// any.
func (p *Port) mostPrice(ctx context.Context, claim *karpv1.NodeClaim) (*model.Money, error) {
	text, limited := claim.Annotations[v1beta1.AnnotationMostPrice]
	if !limited {
		return nil, nil
	}
	dollars, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(dollars) || dollars < 0 {
		return nil, fmt.Errorf("NodeClaim %s: metadata.annotations[%s]: got %q, allowed: dollars per hour, such as \"0.10\"",
			claim.Name, v1beta1.AnnotationMostPrice, text)
	}
	most := model.USD(dollars) - p.nodeCost(ctx, claim)
	return &most, nil
}

// soldOut reports whether a claim ends since Azure has refused what it allows, or has
// nothing left of it at a price that it may have: a plan that knows of the refusals may find
// something else.
func soldOut(err error) bool {
	var dear *launch.TooDear
	var refused *launch.Refused
	return errors.As(err, &dear) || errors.Is(err, launch.ErrNoCandidate) || errors.As(err, &refused) && refused.Failure.Capacity()
}

// WatchUnsold makes the port tell of claims that end as soldOut has it. Call it before anything runs.
func (p *Port) WatchUnsold(told func(*karpv1.NodeClaim)) { p.unsold = told }
