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
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/model"
)

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
	paid := p.azure.Supply().PriceOf(claim.Name, offering) + p.nodeCost(ctx, claim)
	created.Annotations[v1beta1.AnnotationPaidPrice] = strconv.FormatFloat(paid.Dollars(), 'f', -1, 64)
	created.Annotations[v1beta1.AnnotationDiskPrice] = strconv.FormatFloat(offering.DiskPrice.Dollars(), 'f', -1, 64)
	bought := event.Bought{Size: machine.Size, CapacityType: machine.CapacityType, Paid: paid}
	if offering.Zone != instancetype.RegionalZone {
		bought.Zone = offering.Zone
	}
	p.recorder.Publish(event.Provisioned(claim, bought))
	planned := hourly(claim, v1beta1.AnnotationPlannedPrice)
	if planned == 0 || math.Abs(paid.Dollars()/planned.Dollars()-1) <= sameWithin {
		return
	}
	p.recorder.Publish(event.PriceDiffers(claim, bought, planned))
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
