package network

import (
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

func pool(name string, addresses ...string) *armnetwork.BackendAddressPool {
	p := &armnetwork.BackendAddressPool{
		ID: to.Ptr("/pools/" + name), Name: to.Ptr(name), Properties: &armnetwork.BackendAddressPoolPropertiesFormat{},
	}
	for _, a := range addresses {
		p.Properties.LoadBalancerBackendAddresses = append(p.Properties.LoadBalancerBackendAddresses,
			&armnetwork.LoadBalancerBackendAddress{Properties: &armnetwork.LoadBalancerBackendAddressPropertiesFormat{IPAddress: to.Ptr(a)}})
	}
	return p
}

func TestBackendPoolsOfClusterInterfacesOnly(t *testing.T) {
	pools := []*armnetwork.BackendAddressPool{pool("kubernetes"),
		pool("aksOutboundBackendPool"), pool("kubernetes-IPv6"), pool("plain", "10.0.0.4"), nil}
	for name, want := range map[string][]string{
		"kubernetes":          {"/pools/kubernetes", "/pools/aksOutboundBackendPool"},
		"Kubernetes-Internal": {"/pools/kubernetes", "/pools/aksOutboundBackendPool"},
		"mine":                nil,
	} {
		lb := &armnetwork.LoadBalancer{Name: to.Ptr(name), Properties: &armnetwork.LoadBalancerPropertiesFormat{BackendAddressPools: pools}}
		if got := poolsOf(lb); !slices.Equal(got, want) {
			t.Errorf("load balancer %s: %v, want %v", name, got, want)
		}
	}
}

func TestParseSubnetID(t *testing.T) {
	const id = "/subscriptions/s/resourceGroups/MC_c/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"
	got, err := ParseSubnet(id)
	if err != nil || got != (Subnet{"s", "MC_c", "aks-vnet-12345678", "aks-subnet"}) {
		t.Errorf("read as %+v, %v", got, err)
	}
	if !got.Managed("mc_C") || got.Managed("other") || (Subnet{VNET: "mine", ResourceGroup: "MC_c"}).Managed("MC_c") {
		t.Error("managed networks are those that AKS named, in the node resource group")
	}
	for _, wrong := range []string{"", "aks-subnet", "/subscriptions/s",
		"/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v"} {
		if s, err := ParseSubnet(wrong); err == nil {
			t.Errorf("%q was read as %+v", wrong, s)
		}
	}
}
