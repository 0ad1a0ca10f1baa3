package vm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// pages answers requests with its pages in turn and notes their addresses.
type pages struct {
	azure
	texts     []string
	addresses []string
}

func (p *pages) Do(r *http.Request) (*http.Response, error) {
	text := p.texts[min(len(p.addresses), len(p.texts)-1)]
	p.addresses = append(p.addresses, r.Method+" "+r.URL.String())
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(text)), Request: r,
	}, nil
}

func (p *pages) options() *arm.ClientOptions {
	return &arm.ClientOptions{ClientOptions: policy.ClientOptions{Transport: p}, DisableRPRegistration: true}
}

func (p *pages) lists(t rapid.TB) *Lists {
	t.Helper()
	p.addresses = nil
	lists, err := NewLists("s/1", "a group", p, p.options())
	if err != nil {
		t.Fatal(err)
	}
	return lists
}

// maybe draws a value, or none.
func maybe[T any](t *rapid.T, name string, value func() T) *T {
	if rapid.IntRange(0, 9).Draw(t, name) == 0 {
		return nil
	}
	return to.Ptr(value())
}

func drawMachine(t *rapid.T) *armcompute.VirtualMachine {
	text := func(name string, values ...string) *string {
		return maybe(t, name, func() string { return rapid.SampledFrom(values).Draw(t, name+" text") })
	}
	q := &armcompute.VirtualMachineProperties{
		ProvisioningState: text("state", "Succeeded", "Creating", "Failed", "Deleting"),
		TimeCreated:       maybe(t, "created", func() time.Time { return time.Unix(int64(rapid.IntRange(1, 1<<31).Draw(t, "at")), 0).UTC() }),
		Priority: maybe(t, "priority", func() armcompute.VirtualMachinePriorityTypes {
			return rapid.SampledFrom(armcompute.PossibleVirtualMachinePriorityTypesValues()).Draw(t, "priorities")
		}),
		// What is not read.
		UserData: text("user data", "x"), LicenseType: text("license", "y"), VMID: text("id", "z"),
		DiagnosticsProfile: &armcompute.DiagnosticsProfile{BootDiagnostics: &armcompute.BootDiagnostics{Enabled: to.Ptr(true)}},
		HardwareProfile: maybe(t, "hardware", func() armcompute.HardwareProfile {
			return armcompute.HardwareProfile{VMSize: to.Ptr(armcompute.VirtualMachineSizeTypesStandardD4SV3)}
		}),
		OSProfile: maybe(t, "os", func() armcompute.OSProfile {
			return armcompute.OSProfile{ComputerName: text("computer", "aks-general-a", "b"), AdminUsername: to.Ptr("azureuser")}
		}),
		StorageProfile: maybe(t, "storage", func() armcompute.StorageProfile {
			return armcompute.StorageProfile{
				ImageReference: maybe(t, "image", func() armcompute.ImageReference {
					return armcompute.ImageReference{ID: text("image id", "/images/1"), CommunityGalleryImageID: text("community", "/CommunityGalleries/1")}
				}),
				OSDisk: maybe(t, "disk", func() armcompute.OSDisk {
					return armcompute.OSDisk{Name: text("disk name", "aks-general-a", "c"), DiskSizeGB: to.Ptr(int32(128))}
				}),
			}
		}),
		NetworkProfile: maybe(t, "network", func() armcompute.NetworkProfile {
			var out armcompute.NetworkProfile
			for range rapid.IntRange(0, 2).Draw(t, "nics") {
				out.NetworkInterfaces = append(out.NetworkInterfaces, &armcompute.NetworkInterfaceReference{ID: text("nic", "/nics/aks-general-a")})
			}
			return out
		}),
	}
	vm := &armcompute.VirtualMachine{
		Location: to.Ptr("westeurope"), Name: text("name", "aks-general-a", "jumpbox"), Properties: q,
		Tags: map[string]*string{"other": to.Ptr("value")},
	}
	if rapid.IntRange(0, 9).Draw(t, "properties") == 0 {
		vm.Properties = nil
	}
	if cluster := text("cluster", "c", "d"); cluster != nil {
		vm.Tags[launch.TagCluster] = cluster
	}
	if zone := text("zone", "1", "2"); zone != nil {
		vm.Zones = []*string{zone}
	}
	for range rapid.IntRange(0, 3).Draw(t, "extensions") {
		vm.Resources = append(vm.Resources, &armcompute.VirtualMachineExtension{
			ID: text("extension id", "/x/Extensions/computeAksLinuxBilling"), Name: text("extension", "cse-agent-karpenter", "computeAksLinuxBilling"),
			Properties: maybe(t, "extension properties", func() armcompute.VirtualMachineExtensionProperties {
				return armcompute.VirtualMachineExtensionProperties{ProvisioningState: text("result", "Succeeded", "Failed"), Publisher: to.Ptr("p")}
			}),
		})
	}
	return vm
}

// What is read of lists of machines is what the SDK's models read: the same pages are given
// to both, and both ask the same of Azure.
func TestListedMachinesAreThoseOfTheSDK(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pages
		for i := range 2 {
			var result armcompute.VirtualMachineListResult
			for range rapid.IntRange(0, 3).Draw(t, "machines") {
				result.Value = append(result.Value, drawMachine(t))
			}
			if i == 0 {
				result.NextLink = to.Ptr("https://management.azure.com/next?api-version=1&$skiptoken=2")
			}
			text, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			p.texts = append(p.texts, string(text))
		}
		client, err := armcompute.NewVirtualMachinesClient("s/1", &p, p.options())
		if err != nil {
			t.Fatal(err)
		}
		v := New(Clients{Lists: p.lists(t)}, &config.Config{NodeResourceGroup: "a group", ClusterName: "c"}, nil, launch.NewBoots())
		var want []launch.Machine
		var names []string
		for pager := client.NewListPager("a group", nil); pager.More(); {
			page, err := pager.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, vm := range page.Value {
				names = append(names, said(vm))
				if m, ours := v.machine(vm); ours {
					want = append(want, m)
				}
			}
		}
		asked := p.addresses
		lists := p.lists(t)
		got, err := v.List(t.Context())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
		}
		if !reflect.DeepEqual(p.addresses, asked) {
			t.Errorf("asked for\n%q, the SDK for\n%q", p.addresses, asked)
		}
		p.addresses = nil
		all, err := lists.Machines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, vm := range all {
			if got := said(vm); got != names[i] {
				t.Errorf("got %s, want %s", got, names[i])
			}
		}
	})
}

// said is what the collector of garbage reads of a machine beside what a launcher does.
func said(vm *armcompute.VirtualMachine) string {
	out := fmt.Sprint(launch.Value(vm.Name), launch.Values(vm.Tags))
	q := vm.Properties
	if q == nil {
		return out
	}
	out += fmt.Sprint(launch.Value(q.TimeCreated), q.OSProfile != nil, q.StorageProfile != nil, q.NetworkProfile != nil)
	if q.OSProfile != nil {
		out += launch.Value(q.OSProfile.ComputerName)
	}
	if q.StorageProfile != nil && q.StorageProfile.OSDisk != nil {
		out += launch.Value(q.StorageProfile.OSDisk.Name)
	}
	if q.NetworkProfile != nil {
		for _, n := range q.NetworkProfile.NetworkInterfaces {
			out += launch.Value(n.ID)
		}
	}
	return out
}

// Interfaces are asked for as the SDK asks.
func TestInterfacesAreListedAsTheSDKDoes(t *testing.T) {
	p := pages{texts: []string{`{"value": [null, {"name": "a", "properties": {}}], "nextLink": "https://management.azure.com/next"}`, `{"value": [
		{"name": "b", "properties": {"virtualMachine": {"id": "x"}}}, {"name": "c", "properties": {"virtualMachine": null}, "tags": {"x": "y"}}]}`}}
	client, err := armnetwork.NewInterfacesClient("s/1", &p, p.options())
	if err != nil {
		t.Fatal(err)
	}
	for pager := client.NewListPager("a group", nil); pager.More(); {
		if _, err := pager.NextPage(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	asked := p.addresses
	loose, err := p.lists(t).LooseNICs(t.Context())
	if err != nil || len(loose) != 2 || loose[0].Name != "a" || loose[1].Name != "c" || *loose[1].Tags["x"] != "y" {
		t.Errorf("got %+v, %v", loose, err)
	}
	if !reflect.DeepEqual(p.addresses, asked) {
		t.Errorf("asked for\n%q, the SDK for\n%q", p.addresses, asked)
	}
}

// BenchmarkListMachines reads a list of 1,000 machines with nap's model and with the SDK's.
func BenchmarkListMachines(b *testing.B) {
	var result armcompute.VirtualMachineListResult
	draw := rapid.Custom(drawMachine)
	for i := range 1000 {
		result.Value = append(result.Value, draw.Example(i))
	}
	text, err := json.Marshal(result)
	if err != nil {
		b.Fatal(err)
	}
	p := pages{texts: []string{string(text)}}
	lists := p.lists(b)
	client, err := armcompute.NewVirtualMachinesClient("s", &p, p.options())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("nap", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := lists.Machines(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.NewListPager("g", nil).NextPage(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
