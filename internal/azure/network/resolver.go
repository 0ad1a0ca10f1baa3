package network

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// poolsFor is how long the load balancers' pools are believed: machines must soon
// join a balancer that is new, such as the first internal one of the cluster. A
// refusal that names a pool refreshes them at once, see [Resolver.Forget].
const poolsFor = 5 * time.Minute

// groupPattern is how AKS names the network security group of its agent pools.
var groupPattern = regexp.MustCompile(`(?i)^aks-agentpool-\d{8}-nsg$`)

// Resolver finds load balancer pools and the network security group, and
// remembers them. It is safe for concurrent use.
type Resolver struct {
	clients           Clients
	nodeResourceGroup string
	clusterSubnetID   string
	now               func() time.Time

	// turn is held by the one call that asks Azure while others wait for its
	// answer; what it guards is below. A channel, so that waiting ends with the
	// caller's context.
	turn  chan struct{}
	pools []string
	asked time.Time
	group string
	guid  string
}

// NewResolver returns a resolver for a cluster's node resource group and subnet.
func NewResolver(clients Clients, nodeResourceGroup, clusterSubnetID string, now func() time.Time) *Resolver {
	return &Resolver{
		clients: clients, nodeResourceGroup: nodeResourceGroup, clusterSubnetID: clusterSubnetID, now: now,
		turn: make(chan struct{}, 1),
	}
}

// take waits for the turn; leave gives it back.
func (r *Resolver) take(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Resolver) leave() { <-r.turn }

// Subnet is the subnet that machines of a class are put into.
func (r *Resolver) Subnet(classSubnetID string) string {
	if classSubnetID != "" {
		return classSubnetID
	}
	return r.clusterSubnetID
}

// BackendPools are the load balancer pools that every machine joins: those of
// the balancers kubernetes and kubernetes-internal, without pools of IPv6 and of
// plain addresses.
func (r *Resolver) BackendPools(ctx context.Context) ([]string, error) {
	if err := r.take(ctx); err != nil {
		return nil, err
	}
	defer r.leave()
	if !r.asked.IsZero() && r.now().Sub(r.asked) < poolsFor {
		return r.pools, nil
	}
	var pools []string
	for pager := r.clients.LoadBalancers.NewListPager(r.nodeResourceGroup, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the load balancers of resource group %s: %w", r.nodeResourceGroup, err)
		}
		for _, lb := range page.Value {
			pools = append(pools, poolsOf(lb)...)
		}
	}
	r.pools, r.asked = pools, r.now()
	return pools, nil
}

// Forget makes the next BackendPools ask Azure again.
func (r *Resolver) Forget() {
	r.turn <- struct{}{}
	defer r.leave()
	r.asked = time.Time{}
}

func poolsOf(lb *armnetwork.LoadBalancer) []string {
	if lb == nil || lb.Name == nil || lb.Properties == nil {
		return nil
	}
	if name := strings.ToLower(*lb.Name); name != "kubernetes" && name != "kubernetes-internal" {
		return nil
	}
	var out []string
	for _, p := range lb.Properties.BackendAddressPools {
		if p == nil || p.ID == nil || p.Name == nil || strings.HasSuffix(strings.ToLower(*p.Name), "-ipv6") || addressBased(p) {
			continue
		}
		out = append(out, *p.ID)
	}
	return out
}

// addressBased reports whether a pool lists plain addresses, which cannot be
// mixed with network interfaces.
func addressBased(p *armnetwork.BackendAddressPool) bool {
	if p.Properties == nil {
		return false
	}
	for _, a := range p.Properties.LoadBalancerBackendAddresses {
		if a != nil && a.Properties != nil && a.Properties.IPAddress != nil && *a.Properties.IPAddress != "" {
			return true
		}
	}
	return false
}

// SecurityGroup is the id of the group that a machine in this subnet needs on
// its interface, empty when the subnet brings one: AKS puts its group on networks
// that it manages, and not on those that users bring.
func (r *Resolver) SecurityGroup(ctx context.Context, subnetID string) (string, error) {
	subnet, err := ParseSubnet(subnetID)
	if err != nil {
		return "", err
	}
	if subnet.Managed(r.nodeResourceGroup) {
		return "", nil
	}
	return r.AgentPoolGroup(ctx)
}

// AgentPoolGroup is the id of the network security group that AKS made for the
// cluster's agent pools.
func (r *Resolver) AgentPoolGroup(ctx context.Context) (string, error) {
	if err := r.take(ctx); err != nil {
		return "", err
	}
	defer r.leave()
	if r.group != "" {
		return r.group, nil
	}
	var found []string
	for pager := r.clients.Groups.NewListPager(r.nodeResourceGroup, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("list the network security groups of resource group %s: %w", r.nodeResourceGroup, err)
		}
		for _, g := range page.Value {
			if g != nil && g.Name != nil && g.ID != nil && groupPattern.MatchString(*g.Name) {
				found = append(found, *g.ID)
			}
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("resource group %s has %d network security groups named aks-agentpool-<8 digits>-nsg, want exactly one",
			r.nodeResourceGroup, len(found))
	}
	r.group = found[0]
	return r.group, nil
}

// GUID is the id that Azure gave the cluster's virtual network. It never changes,
// so it is read once.
func (r *Resolver) GUID(ctx context.Context) (string, error) {
	subnet, err := ParseSubnet(r.clusterSubnetID)
	if err != nil {
		return "", fmt.Errorf("VNET_SUBNET_ID: %w", err)
	}
	if err := r.take(ctx); err != nil {
		return "", err
	}
	defer r.leave()
	if r.guid != "" {
		return r.guid, nil
	}
	const advice = "permit Microsoft.Network/virtualNetworks/read on it, or set VNET_GUID"
	found, err := r.clients.VNETs.Get(ctx, subnet.ResourceGroup, subnet.VNET, nil)
	if err != nil {
		return "", fmt.Errorf("read the id of virtual network %s of resource group %s, which nodes carry as a label: %w; %s",
			subnet.VNET, subnet.ResourceGroup, err, advice)
	}
	if found.Properties == nil || found.Properties.ResourceGUID == nil || *found.Properties.ResourceGUID == "" {
		return "", fmt.Errorf("virtual network %s of resource group %s has no id, which nodes carry as a label; set VNET_GUID",
			subnet.VNET, subnet.ResourceGroup)
	}
	r.guid = *found.Properties.ResourceGUID
	return r.guid, nil
}
