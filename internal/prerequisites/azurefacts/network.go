package azurefacts

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// network reads the virtual network with the subnets of machines and of the API server.
func (r *Reader) network(ctx context.Context, f *prerequisites.Facts) error {
	var nodes []string
	for i := range f.Cluster.Pools {
		nodes = append(nodes, f.Cluster.Pools[i].SubnetID)
	}
	nodes = unique(nodes...)
	if len(nodes) == 0 {
		vnets, err := armnetwork.NewVirtualNetworksClient(r.target.Subscription, r.credential, r.options)
		if err != nil {
			return err
		}
		own, err := network.OwnSubnet(ctx, vnets, f.Cluster.NodeResourceGroup)
		if err != nil {
			return err
		}
		nodes = unique(own)
	}
	if len(nodes) == 0 {
		return fmt.Errorf("the cluster names no subnet, and resource group %s has none of AKS's", f.Cluster.NodeResourceGroup)
	}
	out := &prerequisites.Network{Subnets: map[string]*prerequisites.Subnet{}}
	for _, id := range unique(append(nodes, f.Cluster.APIServerSubnetID)...) {
		subnet, err := r.subnet(ctx, f, id)
		if notFound(err) {
			continue // the check of the API server's subnet says so
		}
		if err != nil {
			return err
		}
		out.Subnets[strings.ToLower(id)] = subnet
	}
	for _, id := range nodes {
		if out.Subnets[strings.ToLower(id)] == nil {
			return fmt.Errorf("subnet %s of the cluster's machines does not exist", id)
		}
		out.Nodes = append(out.Nodes, strings.ToLower(id))
	}
	parts, err := network.ParseSubnet(nodes[0])
	if err != nil {
		return err
	}
	vnets, err := armnetwork.NewVirtualNetworksClient(parts.Subscription, r.credential, r.options)
	if err != nil {
		return err
	}
	vnet, err := vnets.Get(ctx, parts.ResourceGroup, parts.VNET, nil)
	if err != nil {
		return err
	}
	out.NetworkID = value(vnet.ID)
	if vnet.Properties != nil && vnet.Properties.AddressSpace != nil {
		out.AddressSpace = prefixes(vnet.Properties.AddressSpace.AddressPrefixes...)
	}
	f.Network = out
	return nil
}

// subnet reads a subnet with what is attached to it.
func (r *Reader) subnet(ctx context.Context, f *prerequisites.Facts, id string) (*prerequisites.Subnet, error) {
	parts, err := network.ParseSubnet(id)
	if err != nil {
		return nil, err
	}
	subnets, err := armnetwork.NewSubnetsClient(parts.Subscription, r.credential, r.options)
	if err != nil {
		return nil, err
	}
	answer, err := subnets.Get(ctx, parts.ResourceGroup, parts.VNET, parts.Name, nil)
	if err != nil {
		return nil, err
	}
	out := &prerequisites.Subnet{ID: id}
	p := answer.Properties
	if p == nil {
		return out, nil
	}
	out.Prefixes = prefixes(append(p.AddressPrefixes, p.AddressPrefix)...)
	out.NATGateway = p.NatGateway != nil
	for _, d := range p.Delegations {
		if d != nil && d.Properties != nil {
			out.Delegations = append(out.Delegations, value(d.Properties.ServiceName))
		}
	}
	out.Taken = len(p.IPConfigurations)
	for _, c := range p.IPConfigurations {
		if c != nil && !strings.Contains(strings.ToLower(value(c.ID)), "/resourcegroups/"+strings.ToLower(f.Cluster.NodeResourceGroup)+"/") {
			out.Foreign++
		}
	}
	if p.NetworkSecurityGroup != nil {
		out.GroupID = value(p.NetworkSecurityGroup.ID)
	}
	if p.RouteTable != nil {
		out.RouteTableID = value(p.RouteTable.ID)
	}
	r.attached(ctx, f, out)
	return out, nil
}

// attached reads the rules and the route of what is attached to a subnet, which others may
// own: what may not be read of it leaves the subnet known.
func (r *Reader) attached(ctx context.Context, f *prerequisites.Facts, s *prerequisites.Subnet) {
	if s.GroupID != "" {
		rules, err := r.rules(ctx, s.GroupID)
		if s.Rules = rules; err != nil {
			f.Unread[prerequisites.SourceSecurity] = Short(err)
		}
	}
	if s.RouteTableID != "" && !slices.Contains(r.target.Leave, prerequisites.SourceRoutes) {
		route, err := r.defaultRoute(ctx, s.RouteTableID)
		if s.DefaultRoute = route; err != nil {
			f.Unread[prerequisites.SourceRoutes] = Short(err)
		}
	}
}

// rules reads the rules that a user has put into a security group.
func (r *Reader) rules(ctx context.Context, id string) ([]prerequisites.Rule, error) {
	parts, err := arm.ParseResourceID(id)
	if err != nil {
		return nil, err
	}
	groups, err := armnetwork.NewSecurityGroupsClient(parts.SubscriptionID, r.credential, r.options)
	if err != nil {
		return nil, err
	}
	answer, err := groups.Get(ctx, parts.ResourceGroupName, parts.Name, nil)
	if err != nil {
		return nil, err
	}
	var out []prerequisites.Rule
	if answer.Properties == nil {
		return nil, nil
	}
	for _, rule := range answer.Properties.SecurityRules {
		if rule == nil || rule.Properties == nil {
			continue
		}
		p := rule.Properties
		out = append(out, prerequisites.Rule{
			Name: value(rule.Name), Priority: int(value(p.Priority)), Protocol: string(value(p.Protocol)),
			Inbound: value(p.Direction) == armnetwork.SecurityRuleDirectionInbound, Allow: value(p.Access) == armnetwork.SecurityRuleAccessAllow,
			Sources:      texts(p.SourceAddressPrefix, p.SourceAddressPrefixes),
			Destinations: texts(p.DestinationAddressPrefix, p.DestinationAddressPrefixes),
			SourcePorts:  texts(p.SourcePortRange, p.SourcePortRanges),
			Ports:        texts(p.DestinationPortRange, p.DestinationPortRanges),
		})
	}
	return out, nil
}

// defaultRoute is the next hop type of a route table's route for all addresses.
func (r *Reader) defaultRoute(ctx context.Context, id string) (string, error) {
	parts, err := arm.ParseResourceID(id)
	if err != nil {
		return "", err
	}
	tables, err := armnetwork.NewRouteTablesClient(parts.SubscriptionID, r.credential, r.options)
	if err != nil {
		return "", err
	}
	answer, err := tables.Get(ctx, parts.ResourceGroupName, parts.Name, nil)
	if err != nil {
		return "", err
	}
	if answer.Properties != nil {
		for _, route := range answer.Properties.Routes {
			if route != nil && route.Properties != nil && value(route.Properties.AddressPrefix) == "0.0.0.0/0" {
				return string(value(route.Properties.NextHopType)), nil
			}
		}
	}
	return "", nil
}

// texts are the values of a field that Azure writes in the singular or in the plural.
func texts(one *string, many []*string) []string {
	var out []string
	for _, p := range append(many, one) {
		if value(p) != "" {
			out = append(out, *p)
		}
	}
	return out
}

func prefixes(list ...*string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range list {
		if p, err := netip.ParsePrefix(value(text)); err == nil && p.Addr().Is4() {
			out = append(out, p.Masked())
		}
	}
	return out
}
