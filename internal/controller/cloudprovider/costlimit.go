package cloudprovider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// ReasonLimitReached is the reason of a NodeClaim that gets no machine because its NodePool
// would cost more per hour than its limit, and of the event that says so.
const ReasonLimitReached = event.ReasonLimitReached

// limitReached says that a NodePool's limit in dollars leaves too little for a machine.
type limitReached struct{ text string }

// Error is the sentence for events and conditions.
func (l *limitReached) Error() string { return l.text }

// costLimits are the last look at limits in dollars before machines are bought: plans keep
// to them, and here prices have changed since, or the limit, or no plan asked for the
// machine, as for NodePools of fixed size. It is safe for concurrent use.
type costLimits struct {
	mu sync.Mutex
	// granted is what machines may cost that are being bought, or cost that have been bought
	// while their NodeClaims do not show it yet, by the claim's name.
	granted map[string]model.Money
}

// launch buys the machine of a claim within the limit in dollars of its NodePool. The error
// is that of [azure.Provider.Launch], or a limitReached: a claim that a plan made ends with
// it, since it is also a [launch.ErrNoCandidate]; one of a NodePool of fixed size waits.
func (p *Port) launch(ctx context.Context, claim *karpv1.NodeClaim, order azure.Order) (launch.Machine, error) {
	pool := &karpv1.NodePool{}
	err := p.kube.Get(ctx, client.ObjectKey{Name: order.Pool}, pool)
	if err != nil && !apierrors.IsNotFound(err) {
		return launch.Machine{}, fmt.Errorf("reading NodePool %s: %w", order.Pool, err)
	}
	if supply := p.azure.Supply(); supply.Advance() != nil {
		if err := supply.CountMachines(ctx); err != nil {
			return launch.Machine{}, err
		}
		order.Beside = besideAdvance(claim, &order, nodeCostOf(pool))
	}
	limit, invalid := kube.CostLimit(pool)
	if limit == nil {
		return p.azure.Launch(ctx, order)
	}
	room, err := p.costs.grant(ctx, p.kube, &purchase{
		claim: claim, order: &order, pool: pool, limit: *limit, priceOf: p.azure.Supply().PriceOf,
	})
	if err != nil {
		return launch.Machine{}, err
	}
	if invalid != nil {
		room = headroom{grant: nothing, left: nothing, short: invalid.Error()}
	}
	// A machine that the claim has already is found, whatever the limit.
	perNode := nodeCostOf(pool)
	if most := room.grant - perNode; order.MostPrice == nil || most < *order.MostPrice {
		order.MostPrice = &most
	}
	machine, err := p.azure.Launch(ctx, order)
	if err == nil {
		cost := room.grant
		if _, o, known := p.azure.Describe(order.Catalog, machine); known {
			cost = p.azure.Supply().PriceOf(claim.Name, o) + perNode
		}
		p.costs.settle(claim.Name, cost)
		return machine, nil
	}
	p.costs.forget(claim.Name)
	var dear *launch.TooDear
	if !errors.As(err, &dear) || dear.Next.Offering.Price+perNode <= room.left {
		return machine, err
	}
	p.recorder.Publish(event.LimitOfClaim(claim, room.short))
	if pool.Spec.Replicas != nil {
		return machine, &limitReached{room.short}
	}
	return machine, errors.Join(&limitReached{room.short}, launch.ErrNoCandidate)
}

// besideAdvance reports whether the plan of a claim counted on nothing that is paid in advance:
// it has planned to pay what the machine costs without. A claim of no plan takes what there is.
func besideAdvance(claim *karpv1.NodeClaim, order *azure.Order, perNode model.Money) bool {
	planned := hourly(claim, v1beta1.AnnotationPlannedPrice)
	bare := launch.WithoutCover(launch.Rank(order.Catalog, order.Requirements, order.Requests, order.Claim), order.Claim)
	return planned > 0 && len(bare) > 0 && planned >= bare[0].Offering.Price+perNode
}

// nothing is less than any machine costs.
const nothing model.Money = -1

// purchase is a machine that is to be bought under a limit.
type purchase struct {
	claim *karpv1.NodeClaim
	order *azure.Order
	pool  *karpv1.NodePool
	limit model.Money
	// priceOf is what the machine of a claim costs that was bought as an offering.
	priceOf func(claim string, o *model.Offering) model.Money
}

// headroom is what a limit leaves for a machine, the cost per node included.
type headroom struct {
	// grant is what the machine may cost, left what the limit leaves in all.
	grant, left model.Money
	// short says what the limit leaves, for the case that it is too little.
	short string
}

// grant sets aside what the machine may cost by the prices of the catalogue: what the limit
// leaves beside all other machines of the NodePool and those that are planned, and no more
// than the dearest costs that the claim allows. A claim without a plan gets the price of the
// cheapest.
func (l *costLimits) grant(ctx context.Context, reader client.Reader, p *purchase) (headroom, error) {
	var claims karpv1.NodeClaimList
	err := reader.List(ctx, &claims, client.MatchingLabels{karpv1.NodePoolLabelKey: p.pool.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return headroom{}, fmt.Errorf("listing the NodeClaims of NodePool %s: %w", p.pool.Name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidy(p.pool.Name, claims.Items)
	left := p.limit
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.Name == p.claim.Name {
			continue
		}
		cost, known := l.cost(c, p)
		if !known {
			return headroom{nothing, nothing, fmt.Sprintf(
				"what NodeClaim %s costs is not known, so neither is what the limit of %s of NodePool %s leaves", c.Name, p.limit, p.pool.Name)}, nil
		}
		left -= cost
	}
	short := fmt.Sprintf("the limit of %s of NodePool %s leaves %s, too little for the machine", p.limit, p.pool.Name, left)
	room := headroom{left, left, short}
	candidates := launch.Rank(p.order.Catalog, p.order.Requirements, p.order.Requests, p.order.Claim)
	if p.order.Beside {
		candidates = launch.WithoutCover(candidates, p.order.Claim)
	}
	if len(candidates) == 0 {
		return room, nil
	}
	cheapest, most := candidates[0].Offering.Price, candidates[len(candidates)-1].Offering.Price
	switch {
	case hourly(p.claim, v1beta1.AnnotationPlannedPrice) == 0:
		most = cheapest
	case p.order.MostPrice != nil:
		most = min(most, *p.order.MostPrice)
	}
	if cost := cheapest + nodeCostOf(p.pool); cost > left {
		room.grant, room.short = nothing, room.short+", which costs "+cost.String()
		return room, nil
	}
	room.grant = min(left, most+nodeCostOf(p.pool))
	l.granted[p.claim.Name] = room.grant
	return room, nil
}

// cost is what another machine of the NodePool counts for, and whether that is known: what
// it may cost while it is bought, then its offering's price now, or what was paid for it,
// and before all that what was planned.
func (l *costLimits) cost(c *karpv1.NodeClaim, p *purchase) (model.Money, bool) {
	if granted, is := l.granted[c.Name]; is {
		return granted, true
	}
	paid, planned := hourly(c, v1beta1.AnnotationPaidPrice), hourly(c, v1beta1.AnnotationPlannedPrice)
	if c.Status.ProviderID == "" {
		return planned, true // it passes here before it is bought
	}
	if o := offeringOf(p.order.Catalog, c.Labels); o != nil {
		now := *o
		now.Price = p.priceOf(c.Name, o)
		return now.PriceWithDisk(kube.DiskPrice(c)) + nodeCostOf(p.pool), true
	}
	cost := cmp.Or(paid, planned)
	return cost, cost > 0
}

// tidy forgets what the NodeClaims of a NodePool say themselves by now.
func (l *costLimits) tidy(pool string, claims []karpv1.NodeClaim) {
	for i := range claims {
		if c := &claims[i]; c.Labels[karpv1.NodePoolLabelKey] == pool && c.Annotations[v1beta1.AnnotationPaidPrice] != "" {
			delete(l.granted, c.Name)
		}
	}
}

// settle notes what a machine costs until its claim says so.
func (l *costLimits) settle(claim string, cost model.Money) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted[claim] = cost
}

// forget takes back what was set aside for a machine that was not bought, or that goes.
func (l *costLimits) forget(claim string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.granted, claim)
}

// offeringOf is the offering that a machine's labels name, nil if there is none.
func offeringOf(catalog *instancetype.Built, labels map[string]string) *model.Offering {
	types := catalog.Catalog.InstanceTypes
	at := slices.IndexFunc(types, func(t model.InstanceType) bool { return t.Name == labels[model.LabelInstanceType] })
	if at < 0 {
		return nil
	}
	of := types[at].Offerings
	i := slices.IndexFunc(of, func(o model.Offering) bool {
		return o.Zone == labels[model.LabelZone] && string(o.CapacityType) == labels[model.LabelCapacityType]
	})
	if i < 0 {
		return nil
	}
	return &of[i]
}

// nodeCostOf is what the nodes of a NodePool cost per hour beside machine and disk. A cost
// that cannot be read keeps the NodePool from buying, and is told there.
func nodeCostOf(pool *karpv1.NodePool) model.Money {
	cost, err := kube.NodeCost(pool)
	if err != nil {
		return 0
	}
	return cost
}

// hourly reads an annotation in dollars per hour, zero where it says nothing.
func hourly(claim *karpv1.NodeClaim, annotation string) model.Money {
	dollars, err := strconv.ParseFloat(claim.Annotations[annotation], 64)
	if err != nil || math.IsNaN(dollars) || dollars < 0 {
		return 0
	}
	return model.USD(dollars)
}
