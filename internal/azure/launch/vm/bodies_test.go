package vm

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// general is a plain machine of a class that leaves everything to its defaults.
func general() launch.NodeSpec {
	return launch.NodeSpec{
		Claim: "general-a", SKU: &instancetype.SKU{Name: "Standard_D4s_v5"}, CapacityType: model.OnDemand,
		Class: &nodeclass.NodeClass{OSDiskSizeGB: 128}, Image: nodeclass.Image{ID: "/subscriptions/i"},
	}
}

// What Azure is told about a machine: its disk and interface end with it, it takes no passwords
// and its serial log is kept. Whatever differs is there because of one setting.
func TestMachineBodyBySetting(t *testing.T) {
	const base = `{"location":"","properties":{` +
		`"diagnosticsProfile":{"bootDiagnostics":{"enabled":true}},"hardwareProfile":{"vmSize":"Standard_D4s_v5"},` +
		`"networkProfile":{"networkInterfaces":[{"id":"/nic","properties":{"deleteOption":"Delete","primary":true}}]},` +
		`"osProfile":{"adminUsername":"admin","computerName":"aks-general-a","customData":"data",` +
		`"linuxConfiguration":{"disablePasswordAuthentication":true,"ssh":{"publicKeys":[{"keyData":"key","path":"/home/admin/.ssh/authorized_keys"}]}}},"priority":"Regular",` +
		`"storageProfile":{"imageReference":{"id":"/subscriptions/i"},"osDisk":{"createOption":"FromImage","deleteOption":"Delete","diskSizeGB":128,` +
		`"name":"aks-general-a"}}},"tags":{"compute.aks.billing":"linux","karpenter.azure.com_cluster":"c"}}`
	for name, c := range map[string]struct {
		change   func(*launch.NodeSpec, *config.Config)
		from, to string // what is there instead of what
	}{
		"plain": {func(*launch.NodeSpec, *config.Config) {}, "", ""},
		"zonal": {func(s *launch.NodeSpec, _ *config.Config) { s.Zone = "2" }, `{"location"`, `{"zones":["2"],"location"`},
		"on spot": {func(s *launch.NodeSpec, _ *config.Config) { s.CapacityType = model.Spot },
			`"priority":"Regular"`, `"priority":"Spot","evictionPolicy":"Delete","billingProfile":{"maxPrice":-1}`},
		"ultra disks": {func(s *launch.NodeSpec, _ *config.Config) { s.UltraSSD = true },
			`"diagnosticsProfile"`, `"additionalCapabilities":{"ultraSSDEnabled":true},"diagnosticsProfile"`},
		"encrypted at the host": {func(s *launch.NodeSpec, _ *config.Config) { s.Class.EncryptionAtHost = to.Ptr(true) },
			`"storageProfile"`, `"securityProfile":{"encryptionAtHost":true},"storageProfile"`},
		"trusted launch": {func(s *launch.NodeSpec, _ *config.Config) { s.Class.VTPM = true },
			`"storageProfile"`, `"securityProfile":{"securityType":"TrustedLaunch",` +
				`"uefiSettings":{"secureBootEnabled":false,"vTpmEnabled":true}},"storageProfile"`},
		"a public image": {func(s *launch.NodeSpec, _ *config.Config) { s.Image.ID = "/CommunityGalleries/x" },
			`{"id":"/subscriptions/i"}`, `{"communityGalleryImageId":"/CommunityGalleries/x"}`},
		"a disk of one's own key": {func(_ *launch.NodeSpec, c *config.Config) { c.DiskEncryptionSetID = "/des" },
			`"name":"aks-general-a"}}`, `"managedDisk":{"diskEncryptionSet":{"id":"/des"}},"name":"aks-general-a"}}`},
		"the machine's own drive": {func(s *launch.NodeSpec, _ *config.Config) {
			s.SKU.EphemeralDisk = instancetype.EphemeralDisk{Bytes: 128 << 30, Placement: "NvmeDisk"}
		}, `"createOption"`, `"caching":"ReadOnly","diffDiskSettings":{"option":"Local","placement":"NvmeDisk"},"createOption"`},
		"NVMe alone": {func(s *launch.NodeSpec, _ *config.Config) { s.SKU.NVMeOnly = true }, `"storageProfile":{`, `"storageProfile":{"diskControllerType":"NVMe",`},
		"identities": {func(_ *launch.NodeSpec, c *config.Config) { c.NodeIdentities = []string{"/a", "/b"} },
			`{"location"`, `{"identity":{"type":"UserAssigned","userAssignedIdentities":{"/a":{},"/b":{}}},"location"`},
	} {
		v := (&azure{answer: always(http.StatusOK, `{}`)}).launcher(t)
		v.config.AdminUsername, v.config.SSHPublicKey = "admin", "key"
		spec := general()
		c.change(&spec, v.config)
		text, err := json.Marshal(v.machineBody(spec, "/nic", "data"))
		var got, want any
		err = errors.Join(err, json.Unmarshal(text, &got), json.Unmarshal([]byte(strings.Replace(base, c.from, c.to, 1)), &want))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// networked is a launcher in a cluster with a network of AKS's and load balancers.
func (a *azure) networked(t *testing.T) *Launcher {
	t.Helper()
	v := a.launcher(t)
	balancers, err := armnetwork.NewLoadBalancersClient("s", a, &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: a, Retry: policy.RetryOptions{MaxRetries: -1}}, DisableRPRegistration: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	const subnet = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"
	v.network = network.NewResolver(network.Clients{LoadBalancers: balancers}, "g", subnet, time.Now)
	return v
}

const oneBalancer = `{"value": [{"name": "kubernetes", "properties": {"backendAddressPools": [{"name": "p", "id": "/pool"}]}}]}`

// The interface joins the load balancers' pools, and has an address for each pod where pods
// take those of the nodes' subnet.
func TestInterfaceBodyBySetting(t *testing.T) {
	const subnet = `"subnet":{"id":"/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/` +
		`virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"}`
	const first = `{"name":"ipconfig0","properties":{"loadBalancerBackendAddressPools":[{"id":"/pool"}],` +
		`"primary":true,"privateIPAllocationMethod":"Dynamic",` + subnet + `}}`
	second := `,{"name":"ipconfig1","properties":{"primary":false,"privateIPAllocationMethod":"Dynamic",` + subnet + `}}`
	for plugin, more := range map[string]string{"none": "", config.PluginAzure: second} {
		v := (&azure{answer: always(http.StatusOK, oneBalancer)}).networked(t)
		v.config.NetworkPlugin = plugin
		spec := general()
		spec.MaxPods, spec.SKU.AcceleratedNet = 2, true
		body, err := v.interfaceBody(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(body)
		want := `{"location":"","properties":{"enableAcceleratedNetworking":true,"enableIPForwarding":false,"ipConfigurations":[` + first + more +
			`]},"tags":{"compute.aks.billing":"linux","karpenter.azure.com_cluster":"c"}}`
		if err != nil || string(text) != want {
			t.Errorf("plugin %s: %v\n%s\n, want\n%s", plugin, err, text, want)
		}
	}
}

// A refusal that names a load balancer's pool is answered with fresh pools, once. Azure is asked
// about an interface only while it is not done, and one that is wanted again is not removed.
func TestInterfaceIsMadeWithFreshPools(t *testing.T) {
	refusal := func(code, message string) string {
		return `{"error": {"code": "` + code + `", "message": "` + message + `"}}`
	}
	const pools, put, poll = "GET loadbalancers", "PUT aks-general-a", "GET put"
	stale := refusal("InvalidResourceReference", "Resource /x/backendAddressPools/p was not found.")
	for name, c := range map[string]struct {
		status []int
		body   string
		asked  []string
		made   bool
	}{
		"done at once":      {[]int{201}, `{"properties": {"provisioningState": "Succeeded"}}`, []string{pools, put}, true},
		"done later":        {[]int{201}, `{"properties": {"provisioningState": "Updating"}}`, []string{pools, put, poll, "GET aks-general-a"}, true},
		"stale pools":       {[]int{400, 201}, stale, []string{pools, put, pools, put, poll, "GET aks-general-a"}, true},
		"stale pools again": {[]int{400, 400}, stale, []string{pools, put, pools, put}, false},
		"another reference": {[]int{400, 201}, refusal("InvalidResourceReference", "Resource /x/subnets/p was not found."), []string{pools, put}, false},
		"another refusal":   {[]int{400, 201}, refusal("Another", "/backendAddressPools/"), []string{pools, put}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, puts := &azure{}, 0
			a.answer = func(request string) (int, string) {
				switch request {
				case pools:
					return http.StatusOK, oneBalancer
				case put:
					puts++
					return c.status[puts-1], c.body
				case poll:
					return http.StatusOK, `{"status": "Succeeded"}`
				}
				return http.StatusOK, `{}`
			}
			v := a.networked(t)
			v.later.add("aks-general-a")
			id, err := v.putNIC(t.Context(), general())
			if (err == nil) != c.made || (id != "") != c.made || !slices.Equal(a.asked, c.asked) || len(v.later.list()) > 0 {
				t.Errorf("%s: %q, %v, asked %v, want %v; to be removed are %v", name, id, err, a.asked, c.asked, v.later.list())
			}
		})
	}
}

// The end of a deletion is noticed by looking at its operation and at the machine in turn, and
// counts from when Azure says that it was.
func TestDeletionIsFollowedByItsOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const get, remove, poll = "GET aks-general-a", "DELETE aks-general-a", "GET put"
		operation, machine := `{"status": "InProgress"}`, http.StatusOK
		a := &azure{}
		a.answer = func(request string) (int, string) {
			switch {
			case request == poll:
				return http.StatusOK, operation
			case request == get:
				return machine, vmText(clusterTag, `"properties": {"provisioningState": "Succeeded"}`)
			case machine == http.StatusNotFound:
				return machine, `{}` // the interface went too
			}
			return http.StatusAccepted, `{}`
		}
		v := a.launcher(t)
		want := func(when string, gone bool, asked ...string) error {
			t.Helper()
			a.asked = nil
			err := v.Delete(t.Context(), "general-a")
			if errors.Is(err, launch.ErrNotFound) != gone || !gone && err != nil || !slices.Equal(a.asked, asked) {
				t.Errorf("%s: %v, asked %v, want %v", when, err, a.asked, asked)
			}
			return err
		}
		_ = want("at first", false, get, remove)
		_ = want("a moment later", false, poll)
		time.Sleep(operationFor)
		machine = http.StatusNotFound
		ended := time.Now().UTC().Add(-time.Second)
		operation = `{"status": "Succeeded", "endTime": "` + ended.Format(time.RFC3339Nano) + `"}`
		err := want("after a while", true, get, remove, poll)
		var gone *launch.GoneError
		if !errors.As(err, &gone) || !gone.At.Equal(ended) {
			t.Errorf("%v, want it gone at %s", err, ended)
		}
		if err := want("once more", true, get, remove); errors.As(err, &gone) && err != launch.ErrNotFound { //nolint:errorlint // that very error
			t.Errorf("an operation that has ended is remembered: %v", err)
		}
	})
}
