package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// longestName is what Azure allows a Linux machine's name to have.
const longestName = 64

// claimSuffix is what the name of a NodeClaim has after that of its NodePool.
const claimSuffix = "-00000"

// CheckPoolName refuses a NodePool whose machines would have names that are too long.
func CheckPoolName(c *config.Config, pool string) error {
	return checkName(c, "NodePool "+pool, pool+claimSuffix)
}

// checkName refuses the name of a claim whose machine's name would be too long. The
// names of AKS machines are shortened.
func checkName(c *config.Config, what, claim string) error {
	name := launch.ResourceName(claim)
	if len(name) <= longestName || c.StartsAKSMachines() {
		return nil
	}
	return fmt.Errorf("%s: its machine's name %s has %d characters and Azure allows %d; give the NodePool a shorter name, of at most %d",
		what, name, len(name), longestName, LongestPoolName())
}

// LongestPoolName is how many characters the name of a NodePool of plain machines may have.
func LongestPoolName() int { return longestName - len(launch.ResourceName(claimSuffix)) }

// Order is what a NodeClaim asks for.
type Order struct {
	Claim, Pool string
	Class       *nodeclass.NodeClass
	// Catalog is what to choose from, where that is not what the class can buy as it is.
	Catalog *instancetype.Built
	// Requirements that the machine must meet, and the labels that it must carry
	// besides those of its size.
	Requirements model.Requirements
	Labels       map[string]string
	// Requests along the axes of the catalogue.
	Requests model.Resources
	// Taints of the node, startup taints included.
	Taints []model.Taint
	// MostPrice is the highest price of an offering that may be bought; nil for any.
	MostPrice *model.Money
	// Beside says that the plan counted on nothing that is paid in advance: what there is goes
	// to machines whose plan did.
	Beside bool
}

// Launch buys the best machine that meets the order, or returns the one that the
// claim has already. Refusals for lack of capacity or quota are remembered, and
// the next best offering is tried, within this call. The error is a
// *launch.Refused, *launch.TooDear, launch.ErrNoCandidate, *ratelimit.Outage while Azure is out,
// *managedcluster.Pause while the cluster forbids it, or what kept Azure from
// answering.
func (p *Provider) Launch(ctx context.Context, o Order) (launch.Machine, error) {
	if err := checkName(&p.config, "NodeClaim "+o.Claim, o.Claim); err != nil {
		return launch.Machine{}, err
	}
	if pause := p.Pause(); pause != nil {
		return launch.Machine{}, pause
	}
	if err := p.breaker.Allow(); err != nil {
		return launch.Machine{}, err
	}
	built := cmp.Or(o.Catalog, p.market.catalog.For(o.Class))
	if err := p.Supply().CountMachines(ctx); err != nil {
		return launch.Machine{}, err
	}
	candidates := launch.Rank(built, o.Requirements, o.Requests, o.Claim)
	if o.Beside {
		candidates = launch.WithoutCover(candidates, o.Claim)
	}
	p.scores.prefer(ctx, candidates)
	m, err := p.buyer.Buy(ctx, launch.Purchase{
		Claim: o.Claim, Candidates: candidates, MostPrice: o.MostPrice, Cover: p.market.prices, Settle: p.config.LaunchSettle,
		Spec: func(c launch.Candidate) (launch.NodeSpec, error) { return p.specs.spec(ctx, o, c) },
	})
	if errors.Is(err, launch.ErrNoCandidate) {
		err = fmt.Errorf("%w: %s", err, launch.WhyNone(cmp.Or(o.Catalog, p.market.catalog.For(o.Class)), o.Requirements, o.Requests))
	}
	if err == nil {
		p.market.prices.Bought(m.Claim, m.Size, m.CapacityType, o.Beside)
	}
	return m, err
}

// Get reads the machine of a claim; launch.ErrNotFound when there is none.
func (p *Provider) Get(ctx context.Context, claim string) (launch.Machine, error) {
	return p.launcher.Get(ctx, claim)
}

// Find reads the machine behind a node's provider id; launch.ErrNotFound when
// there is none, launch.ErrForeign when the id is not that of a machine of nap's.
func (p *Provider) Find(ctx context.Context, providerID string) (launch.Machine, error) {
	return p.launcher.Find(ctx, providerID)
}

// List reads all machines of the cluster.
func (p *Provider) List(ctx context.Context) ([]launch.Machine, error) {
	all, err := p.orphans.list.read(ctx)
	return all.machines, err
}

// Update gives a running machine the tags and identities that a new machine of
// the class would have; launch.ErrNotFound when there is none.
func (p *Provider) Update(ctx context.Context, claim string, class *nodeclass.NodeClass) error {
	m, err := p.launcher.Get(ctx, claim)
	if err != nil {
		return err
	}
	return p.launcher.Update(ctx, m, class)
}

// Delete starts the removal of a claim's machine with everything that belongs to
// it. Call it until it gives launch.ErrNotFound. Where the claim's provider id is not empty, that
// says that the machine behind it is gone, too, however it was made and named. That a machine
// which is still being made goes by this is no failure of Azure's, and not reported as one.
func (p *Provider) Delete(ctx context.Context, claim, providerID string) error {
	p.buyer.Watcher().Forget(claim)
	err := p.launcher.Delete(ctx, claim)
	if errors.Is(err, launch.ErrNotFound) {
		if behind := p.orphans.remover.Delete(ctx, claim, providerID); !errors.Is(behind, launch.ErrNotFound) {
			err = behind
		}
	}
	if err == nil {
		p.market.quota.Settle(launch.ResourceName(claim)) // some callers do not ask until it is gone
	}
	if errors.Is(err, launch.ErrNotFound) {
		p.boots.Forget(claim)
		p.market.quota.Release(launch.ResourceName(claim))
		p.market.prices.Gone(claim)
	}
	return err
}

// Describe finds the instance type and offering of a catalogue that a machine is; false
// when the catalogue does not have them (any more).
func (p *Provider) Describe(built *instancetype.Built, m launch.Machine) (*model.InstanceType, *model.Offering, bool) {
	for i := range built.Catalog.InstanceTypes {
		t := &built.Catalog.InstanceTypes[i]
		if t.Name != m.Size {
			continue
		}
		zone := instancetype.ZoneLabel(p.config.Location, m.Zone)
		for j := range t.Offerings {
			if o := &t.Offerings[j]; o.Zone == zone && o.CapacityType == m.CapacityType {
				return t, o, true
			}
		}
	}
	return nil, nil, false
}

// ResolveImages finds the images of a class for a Kubernetes version, in order of
// preference; see image.Resolver.Resolve for its errors.
func (p *Provider) ResolveImages(ctx context.Context, class *nodeclass.NodeClass, kubernetesVersion string) ([]nodeclass.Image, error) {
	return p.images.Resolve(ctx, class, kubernetesVersion)
}

// ImageWithdrawn reports whether an image of a class is gone from its gallery; see
// image.Resolver.Withdrawn for its errors.
func (p *Provider) ImageWithdrawn(ctx context.Context, class *nodeclass.NodeClass, kubernetesVersion, id string) (bool, error) {
	return p.images.Withdrawn(ctx, class, kubernetesVersion, id)
}

// ValidateSubnet checks a class's subnet, and that what nodes must know of its
// network is known; see network.Resolver.ValidateSubnet for its errors.
func (p *Provider) ValidateSubnet(ctx context.Context, class *nodeclass.NodeClass) error {
	addresses := 1
	if p.config.PodsTakeNodeSubnet() {
		addresses = cmp.Or(class.MaxPods, p.config.DefaultMaxPods())
	}
	if err := p.network.ValidateSubnet(ctx, class.SubnetID, addresses); err != nil {
		return err
	}
	_, err := p.specs.vnetGUID(ctx)
	return err
}

// ValidateTags checks that Azure takes a class's tags; see launch.CheckTags.
func (p *Provider) ValidateTags(class *nodeclass.NodeClass) error {
	return launch.CheckTags(&p.config, class)
}

// CollectMachines removes machines that are older than five minutes and belong to
// no NodeClaim, and returns their claims' names. Azure is asked where nothing has asked
// it for two minutes, or its last answer shows something to do; live is asked after that, so
// that a claim made meanwhile counts. Machines that have lost their tags are
// recognised by their names and collected at the next call. Machines that have
// their claim and lack what Azure accepted and then failed to do get it again.
func (p *Provider) CollectMachines(ctx context.Context, live func(context.Context) (map[string]bool, error)) ([]string, error) {
	return p.orphans.machines(ctx, live)
}

// CollectNICs removes network interfaces of the cluster that have no machine and
// belong to no NodeClaim, and returns their claims' names.
func (p *Provider) CollectNICs(ctx context.Context, live func(context.Context) (map[string]bool, error)) ([]string, error) {
	return p.orphans.interfaces(ctx, live)
}
