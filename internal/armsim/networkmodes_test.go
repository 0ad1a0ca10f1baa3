package armsim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/armsim"
)

// What a cluster tells of its network is what the SDK's types allow, and the parts of the
// network are there that the way out needs, and no others.
func TestClustersHaveTheNetworkThatTheyTellOf(t *testing.T) {
	type parts struct{ balancers, gateways, routes int }
	want := map[string]parts{"loadBalancer": {balancers: 1}, "natGateway": {gateways: 1}, "udr": {routes: 1}, "none": {}}
	for _, network := range armsim.Networks() {
		for _, outbound := range armsim.Outbounds() {
			t.Run(network+"-"+outbound, func(t *testing.T) {
				u := subscribe(t, func(c *armsim.Config) { c.Cluster.Network, c.Cluster.Outbound = network, outbound })
				clusters, err := armcontainerservice.NewManagedClustersClient(u.SubscriptionID, u.Credential, u.ClientOptions())
				if err != nil {
					t.Fatal(err)
				}
				answer, err := clusters.Get(t.Context(), "nap", "nap", nil)
				if err != nil {
					t.Fatal(err)
				}
				n := answer.Properties.NetworkProfile
				known(t, "plugin", n.NetworkPlugin, armcontainerservice.PossibleNetworkPluginValues())
				known(t, "mode", n.NetworkPluginMode, armcontainerservice.PossibleNetworkPluginModeValues())
				known(t, "dataplane", n.NetworkDataplane, armcontainerservice.PossibleNetworkDataplaneValues())
				known(t, "policy", n.NetworkPolicy, armcontainerservice.PossibleNetworkPolicyValues())
				known(t, "outbound type", n.OutboundType, armcontainerservice.PossibleOutboundTypeValues())
				known(t, "artifact source", answer.Properties.BootstrapProfile.ArtifactSource, armcontainerservice.PossibleArtifactSourceValues())
				if overlay := strings.HasPrefix(network, "overlay"); (n.NetworkPluginMode != nil) != overlay || (n.PodCidr != nil) != overlay {
					t.Errorf("network %s: mode %v, pods in %v", network, n.NetworkPluginMode, n.PodCidr)
				}
				f, err := armnetwork.NewClientFactory(u.SubscriptionID, u.Credential, u.ClientOptions())
				if err != nil {
					t.Fatal(err)
				}
				balancers, err := f.NewLoadBalancersClient().NewListPager(u.NodeResourceGroup, nil).NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				gateways, err := f.NewNatGatewaysClient().NewListPager(u.NodeResourceGroup, nil).NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				tables, err := f.NewRouteTablesClient().NewListPager(u.NodeResourceGroup, nil).NextPage(t.Context())
				if err != nil || len(tables.Value) != 1 {
					t.Fatalf("%d route tables, %v", len(tables.Value), err)
				}
				if got := (parts{len(balancers.Value), len(gateways.Value), len(tables.Value[0].Properties.Routes)}); got != want[outbound] {
					t.Errorf("%+v, want %+v", got, want[outbound])
				}
				subnet, err := f.NewSubnetsClient().Get(t.Context(), u.NodeResourceGroup, "aks-vnet-10000001", "aks-subnet", nil)
				if err != nil || (subnet.Properties.NatGateway != nil) != (outbound == "natGateway") || (subnet.Properties.RouteTable != nil) != (outbound == "udr") {
					t.Errorf("subnet %+v, %v", subnet.Properties, err)
				}
			})
		}
	}
}

// known fails unless a value is among those that the SDK knows, or not set.
func known[T ~string](t *testing.T, what string, value *T, allowed []T) {
	t.Helper()
	if value != nil && !slices.Contains(allowed, *value) {
		t.Errorf("%s %s is none of %v", what, *value, allowed)
	}
}

func TestUnknownNetworksAreRefused(t *testing.T) {
	for _, c := range []armsim.Cluster{{Network: "kubenet"}, {Outbound: "carrier pigeon"}} {
		if _, err := armsim.New(armsim.Config{Cluster: c}); err == nil || !strings.Contains(err.Error(), "allowed are") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
