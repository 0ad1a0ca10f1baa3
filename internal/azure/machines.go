package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// orphanAge is how old a machine without a NodeClaim must be before it is
// removed: a claim may be younger in the caller's view than in the API server.
const orphanAge = 5 * time.Minute

// longestName is what Azure allows a Linux machine's name to have.
const longestName = 64

// Order is what a NodeClaim asks for.
type Order struct {
	Claim, Pool string
	Class       *nodeclass.NodeClass
	// Requirements that the machine must meet, and the labels that it must carry
	// besides those of its size.
	Requirements model.Requirements
	Labels       map[string]string
	// Requests along instancetype.Axes.
	Requests model.Resources
	// Taints of the node, startup taints included.
	Taints []model.Taint
}

// Launch buys the best machine that meets the order, or returns the one that the
// claim has already. Refusals for lack of capacity or quota are remembered, and
// the next best offering is tried, within this call. The error is a
// *launch.Refused, launch.ErrNoCandidate, *pace.Outage while Azure is out, or what
// kept Azure from answering.
func (p *Provider) Launch(ctx context.Context, o Order) (launch.Machine, error) {
	if name := launch.ResourceName(o.Claim); len(name) > longestName && !p.config.StartsAKSMachines() {
		return launch.Machine{}, fmt.Errorf("NodeClaim %s: its machine's name %s has %d characters and Azure allows %d; give the NodePool a shorter name", o.Claim, name, len(name), longestName)
	}
	if err := p.breaker.Allow(); err != nil {
		return launch.Machine{}, err
	}
	built := p.catalog.For(o.Class)
	candidates := launch.Rank(built, o.Requirements, o.Requests, o.Claim)
	p.preferLikely(ctx, candidates)
	m, err := p.buyer.Buy(ctx, o.Claim, candidates, func(c launch.Candidate) (launch.NodeSpec, error) { return p.spec(ctx, o, c) }, p.config.LaunchSettle)
	if errors.Is(err, launch.ErrNoCandidate) {
		err = fmt.Errorf("%w: %s", err, launch.WhyNone(p.catalog.For(o.Class), o.Requirements, o.Requests))
	}
	if err == nil {
		p.prices.Bought(m.Claim, m.Size, m.CapacityType)
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
func (p *Provider) List(ctx context.Context) ([]launch.Machine, error) { return p.launcher.List(ctx) }

// Update gives a running machine the tags and identities that a new machine of
// the class would have; launch.ErrNotFound when there is none.
func (p *Provider) Update(ctx context.Context, claim string, class *nodeclass.NodeClass) error {
	m, err := p.launcher.Get(ctx, claim)
	if err != nil {
		return err
	}
	return p.launcher.Update(ctx, m, class)
}

// Trouble says what keeps the machine of a claim from becoming a node, empty when
// nothing is known to be wrong or there is no machine.
func (p *Provider) Trouble(ctx context.Context, claim string) (string, error) {
	m, err := p.launcher.Get(ctx, claim)
	if err == nil {
		var text string
		if text, err = p.launcher.Trouble(ctx, m); err == nil {
			return text, nil
		}
	}
	if errors.Is(err, launch.ErrNotFound) {
		return "", nil
	}
	return "", err
}

// Delete starts the removal of a claim's machine with everything that belongs to
// it. Call it until it gives launch.ErrNotFound.
func (p *Provider) Delete(ctx context.Context, claim string) error {
	err := p.launcher.Delete(ctx, claim)
	if errors.Is(err, launch.ErrNotFound) {
		p.quota.Release(launch.ResourceName(claim))
		p.prices.Gone(claim)
	}
	return err
}

// spec is the one description of the machine that a candidate would be.
func (p *Provider) spec(ctx context.Context, o Order, c launch.Candidate) (launch.NodeSpec, error) {
	picked, ok := nodeclass.Pick(o.Class.Images, c.SKU.Arch, c.SKU.Generations)
	if !ok {
		return launch.NodeSpec{}, fmt.Errorf("no image of node class %s runs on %s: %w", o.Class.Name, c.SKU.Name, image.ErrNotFound)
	}
	labels, err := p.nodeLabels(ctx, o, c)
	if err != nil {
		return launch.NodeSpec{}, err
	}
	return launch.NodeSpec{
		Claim: o.Claim, Pool: o.Pool, SKU: c.SKU, Zone: instancetype.AzureZone(p.config.Location, c.Offering.Zone),
		CapacityType: c.Offering.CapacityType, Class: o.Class, Image: picked,
		Labels: labels, Taints: o.Taints, MaxPods: int(c.Type.Capacity.Get(model.Pods)),
		UltraSSD: labels[instancetype.LabelSKUUltraSSD] == "true",
	}, nil
}

// clusterLabels are the same on every node of the cluster.
func (p *Provider) clusterLabels() map[string]string {
	l := map[string]string{instancetype.LabelAKSCluster: clusterLabel(p.config.NodeResourceGroup)}
	if p.config.NetworkDataplane == "cilium" {
		l[instancetype.LabelAKSEBPFDataplane] = "cilium"
	}
	return l
}

// clusterLabel makes the node resource group's name a label value, as AKS does.
func clusterLabel(group string) string {
	const longest = 63
	value := strings.NewReplacer("(", "-", ")", "-").Replace(group)
	if len(value) > longest {
		value = value[:longest]
	}
	if strings.HasSuffix(value, "-") || strings.HasSuffix(value, "_") || strings.HasSuffix(value, ".") {
		value = value[:min(len(value), longest-1)] + "z"
	}
	return value
}

// Labels are the labels of a node of this type and offering, the open choices
// made by the requirements: the first allowed value, in the catalogue's order.
func Labels(t *model.InstanceType, o *model.Offering, requirements model.Requirements) map[string]string {
	l := maps.Clone(t.Labels)
	for key, choices := range t.Choices {
		for _, value := range choices {
			if !slices.ContainsFunc(requirements, func(r model.Requirement) bool { return r.Key == key && !r.Matches(value, true) }) {
				l[key] = value
				break
			}
		}
	}
	maps.Copy(l, o.Labels)
	return l
}

// nodeLabels is everything that the node registers with: the order's labels, those
// of size and offering, and those that AKS's own nodes carry.
func (p *Provider) nodeLabels(ctx context.Context, o Order, c launch.Candidate) (map[string]string, error) {
	const aks = "kubernetes.azure.com/"
	l := map[string]string{
		aks + "role":                       "agent",
		"karpenter.sh/do-not-sync-taints":  "true",
		aks + "os-sku-requested":           o.Class.ImageFamily,
		aks + "kubelet-identity-client-id": p.config.KubeletIdentityClientID,
		"karpenter.azure.com/aksnodeclass": o.Class.Name,
	}
	release, err := image.ReleaseFor(o.Class, o.Class.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	l[aks+"os-sku-effective"] = release.Name
	if p.config.KubeletIdentityClientID == "" {
		delete(l, aks+"kubelet-identity-client-id")
	}
	if p.config.NetworkPluginMode == config.ModeOverlay {
		subnet, err := network.ParseSubnet(p.network.Subnet(o.Class.SubnetID))
		if err != nil {
			return nil, err
		}
		l[aks+"network-subnet"], l[aks+"azure-cni-overlay"], l[aks+"podnetwork-type"] = subnet.Name, "true", "overlay"
		guid, err := p.vnetGUID(ctx)
		if err != nil {
			return nil, err
		}
		if guid != "" {
			l[aks+"nodenetwork-vnetguid"] = guid
		}
		if image.AtLeast(o.Class.KubernetesVersion, 34) {
			l[aks+"network-stateless-cni"] = "true"
		}
	}
	l[aks+"localdns-state"] = "disabled"
	if o.Class.LocalDNS {
		l[aks+"localdns-state"] = "enabled"
	}
	if o.Class.ArtifactStreaming {
		l[aks+"artifactstreaming-enabled"] = "true"
	}
	for _, r := range o.Requirements {
		if r.Operator == model.In && len(r.Values) == 1 {
			l[r.Key] = r.Values[0]
		}
	}
	maps.Copy(l, o.Labels)
	maps.Copy(l, Labels(c.Type, c.Offering, o.Requirements))
	return l, nil
}

// vnetGUID is the id of the cluster's virtual network, as its nodes carry it; empty
// where they do not. AKS labels its machines itself.
func (p *Provider) vnetGUID(ctx context.Context) (string, error) {
	if p.config.VNETGUID != "" || p.config.NetworkPluginMode != config.ModeOverlay || p.config.StartsAKSMachines() {
		return p.config.VNETGUID, nil
	}
	return p.network.GUID(ctx)
}

// Describe finds the instance type and offering that a machine is, for a node
// class; false when the catalogue does not have them (any more).
func (p *Provider) Describe(class *nodeclass.NodeClass, m launch.Machine) (*model.InstanceType, *model.Offering, bool) {
	built := p.catalog.For(class)
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
	_, err := p.vnetGUID(ctx)
	return err
}

// ValidateTags checks that Azure takes a class's tags; see launch.CheckTags.
func (p *Provider) ValidateTags(class *nodeclass.NodeClass) error {
	return launch.CheckTags(&p.config, class)
}

// CollectMachines removes machines that are older than five minutes and belong to
// no NodeClaim, and returns their claims' names. live is asked after Azure is, so
// that a claim made meanwhile counts. Machines that have lost their tags are
// recognised by their names and collected at the next call. Machines that have
// their claim and lack what Azure accepted and then failed to do get it again.
func (p *Provider) CollectMachines(ctx context.Context, live func(context.Context) (map[string]bool, error)) ([]string, error) {
	machines, err := p.launcher.List(ctx)
	if err != nil {
		return nil, err
	}
	p.count(machines)
	claims, err := live(ctx)
	if err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	var removed []string
	errs := []error{p.adoptMachines(ctx, claims), p.adoptAKSMachines(ctx, claims)}
	for _, m := range machines {
		if m.State == launch.Deleting || p.now().Sub(m.Created) < orphanAge {
			continue
		}
		if claims[m.Claim] {
			errs = append(errs, p.finish(ctx, m))
			continue
		}
		if err := p.Delete(ctx, m.Claim); err != nil && !errors.Is(err, launch.ErrNotFound) {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, m.Claim)
	}
	return removed, errors.Join(errs...)
}

// finish does what a machine lacks that has run for a while.
func (p *Provider) finish(ctx context.Context, m launch.Machine) error {
	if !m.Unfinished || m.State == launch.Creating {
		return nil
	}
	if m.State == launch.Failed {
		if failure, err := p.launcher.Failure(ctx, m.Claim); failure != nil || err != nil {
			return err // it does not run, which the watcher deals with
		}
	}
	return p.launcher.Finish(ctx, m)
}

// count tells the prices which machines use up what is paid for in advance.
func (p *Provider) count(machines []launch.Machine) {
	sizes := map[string]string{}
	for _, m := range machines {
		if m.CapacityType == model.OnDemand && m.State != launch.Deleting {
			sizes[m.Claim] = m.Size
		}
	}
	p.prices.SetMachines(sizes)
}

// CollectNICs removes network interfaces of the cluster that have no machine and
// belong to no NodeClaim, and returns their claims' names.
func (p *Provider) CollectNICs(ctx context.Context, live func(context.Context) (map[string]bool, error)) ([]string, error) {
	orphans, err := launch.OrphanNICs(ctx, p.clients.vms.NICs, p.config.NodeResourceGroup, p.config.ClusterName)
	if err != nil {
		return nil, err
	}
	claims, err := live(ctx)
	if err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	var removed []string
	errs := []error{p.adoptNICs(ctx, claims)}
	for _, claim := range orphans {
		if claims[claim] {
			continue
		}
		if err := p.Delete(ctx, claim); err != nil && !errors.Is(err, launch.ErrNotFound) {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, claim)
	}
	return removed, errors.Join(errs...)
}
