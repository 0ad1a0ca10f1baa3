// Package network finds what a machine's network interface needs: its subnet,
// the load balancer pools it joins, and the network security group where the
// cluster's own network does not bring one.
package network

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// Errors of ValidateSubnet.
var (
	ErrSubnetInvalid  = errors.New("the subnet cannot be used")
	ErrSubnetNotFound = errors.New("the subnet does not exist")
	ErrSubnetFull     = errors.New("the subnet has too few free addresses")
)

// Subnet is a subnet's resource id in parts.
type Subnet struct {
	Subscription, ResourceGroup, VNET, Name string
}

// ParseSubnet reads a subnet's resource id.
func ParseSubnet(id string) (Subnet, error) {
	r, err := arm.ParseResourceID(id)
	if err != nil || !strings.EqualFold(r.ResourceType.String(), "Microsoft.Network/virtualNetworks/subnets") || r.Parent == nil {
		return Subnet{}, fmt.Errorf("%w: %q is not of the form "+
			"/subscriptions/{id}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/{vnet}/subnets/{name}", ErrSubnetInvalid, id)
	}
	return Subnet{r.SubscriptionID, r.ResourceGroupName, r.Parent.Name, r.Name}, nil
}

// SameVNET reports whether two subnets lie in one virtual network; Azure's names
// ignore case.
func (s Subnet) SameVNET(o Subnet) bool {
	return strings.EqualFold(s.Subscription, o.Subscription) &&
		strings.EqualFold(s.ResourceGroup, o.ResourceGroup) && strings.EqualFold(s.VNET, o.VNET)
}

var managedVNET = regexp.MustCompile(`^(?i)aks-vnet-\d{8}$`)

// Managed reports whether AKS made the subnet's network, in the node resource
// group, instead of the user.
func (s Subnet) Managed(nodeResourceGroup string) bool {
	return managedVNET.MatchString(s.VNET) && strings.EqualFold(s.ResourceGroup, nodeResourceGroup)
}

// Clients are the SDK clients that this package asks. VNETs and Subnets must be
// made for the subscription of the cluster's subnet.
type Clients struct {
	VNETs         *armnetwork.VirtualNetworksClient
	Subnets       *armnetwork.SubnetsClient
	LoadBalancers *armnetwork.LoadBalancersClient
	Groups        *armnetwork.SecurityGroupsClient
}

// ValidateSubnet checks that a machine that takes so many addresses may be put
// into a class's subnet. Empty means the cluster's own, which needs to exist like
// any other. The error is ErrSubnetInvalid, ErrSubnetNotFound, ErrSubnetFull, or
// what kept Azure from answering.
func (r *Resolver) ValidateSubnet(ctx context.Context, id string, addresses int) error {
	own, err := ParseSubnet(r.clusterSubnetID)
	if err != nil {
		return fmt.Errorf("VNET_SUBNET_ID: %w", err)
	}
	subnet := own
	if id != "" && !strings.EqualFold(id, r.clusterSubnetID) {
		if subnet, err = ParseSubnet(id); err != nil {
			return err
		}
		if own.Managed(r.nodeResourceGroup) {
			return fmt.Errorf("%w: the cluster's network %s is managed by AKS, which allows no subnets of one's own; remove spec.vnetSubnetID",
				ErrSubnetInvalid, own.VNET)
		}
		if !subnet.SameVNET(own) {
			return fmt.Errorf("%w: %s is not in the cluster's virtual network %s of resource group %s",
				ErrSubnetInvalid, id, own.VNET, own.ResourceGroup)
		}
	}
	found, err := r.clients.Subnets.Get(ctx, subnet.ResourceGroup, subnet.VNET, subnet.Name, nil)
	var answer *azcore.ResponseError
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %s/%s in resource group %s", ErrSubnetNotFound, subnet.VNET, subnet.Name, subnet.ResourceGroup)
	}
	if err != nil {
		return fmt.Errorf("read subnet %s/%s: %w", subnet.VNET, subnet.Name, err)
	}
	if free, known := freeAddresses(found.Subnet); known && free < addresses {
		return fmt.Errorf("%w: %s/%s has %d and a machine takes %d; delete machines, or use a larger subnet",
			ErrSubnetFull, subnet.VNET, subnet.Name, free, addresses)
	}
	return nil
}

// azureReserved counts the addresses of a subnet that Azure keeps: the network,
// the gateway, two for DNS and the broadcast address.
const azureReserved = 5

// freeAddresses counts the IPv4 addresses of a subnet that nothing has. It is not
// known where Azure does not say how large the subnet is.
func freeAddresses(s armnetwork.Subnet) (free int, known bool) {
	if s.Properties == nil {
		return 0, false
	}
	prefixes := s.Properties.AddressPrefixes
	if len(prefixes) == 0 {
		prefixes = []*string{s.Properties.AddressPrefix}
	}
	for _, text := range prefixes {
		if text == nil {
			continue
		}
		prefix, err := netip.ParsePrefix(*text)
		if err != nil || !prefix.Addr().Is4() {
			continue
		}
		known = true
		free += max(0, 1<<(prefix.Addr().BitLen()-prefix.Bits())-azureReserved)
	}
	return free - len(s.Properties.IPConfigurations), known
}
