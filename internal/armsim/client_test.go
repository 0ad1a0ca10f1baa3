package armsim_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

const gen2Image = "/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2containerd/versions/202606.09.0"

// subscriber drives a simulated Azure with the SDK's clients, as the provider does.
type subscriber struct {
	*armtest.Env
	t       testing.TB
	vms     *armcompute.VirtualMachinesClient
	exts    *armcompute.VirtualMachineExtensionsClient
	nics    *armnetwork.InterfacesClient
	usages  *armcompute.UsageClient
	skus    *armcompute.ResourceSKUsClient
	subnets *armnetwork.SubnetsClient
}

func subscribe(t testing.TB, options ...func(*armsim.Config)) *subscriber {
	t.Helper()
	return clientsOf(t, armtest.New(t, options...))
}

func clientsOf(t testing.TB, env *armtest.Env) *subscriber {
	t.Helper()
	u := &subscriber{Env: env, t: t}
	o := env.ClientOptions()
	var errs [6]error
	u.vms, errs[0] = armcompute.NewVirtualMachinesClient(env.SubscriptionID, env.Credential, o)
	u.exts, errs[1] = armcompute.NewVirtualMachineExtensionsClient(env.SubscriptionID, env.Credential, o)
	u.nics, errs[2] = armnetwork.NewInterfacesClient(env.SubscriptionID, env.Credential, o)
	u.usages, errs[3] = armcompute.NewUsageClient(env.SubscriptionID, env.Credential, o)
	u.skus, errs[4] = armcompute.NewResourceSKUsClient(env.SubscriptionID, env.Credential, o)
	u.subnets, errs[5] = armnetwork.NewSubnetsClient(env.SubscriptionID, env.Credential, o)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return u
}

// nicID is the ID of the network interface of a machine made by vm.
func (u *subscriber) nicID(name string) string {
	return "/subscriptions/" + u.SubscriptionID + "/resourceGroups/" +
		u.NodeResourceGroup + "/providers/Microsoft.Network/networkInterfaces/" + name
}

// nicBody is a network interface with one address.
func (u *subscriber) nicBody() armnetwork.Interface {
	return armnetwork.Interface{
		Location: to.Ptr(u.Region),
		Properties: &armnetwork.InterfacePropertiesFormat{IPConfigurations: []*armnetwork.InterfaceIPConfiguration{{
			Name: to.Ptr("ipconfig0"),
			Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{
				Primary: to.Ptr(true), Subnet: &armnetwork.Subnet{ID: to.Ptr(u.SubnetID)},
			},
		}}},
	}
}

// nic creates a network interface.
func (u *subscriber) nic(name string) (armnetwork.Interface, error) {
	p, err := u.nics.BeginCreateOrUpdate(u.t.Context(), u.NodeResourceGroup, name, u.nicBody(), nil)
	if err != nil {
		return armnetwork.Interface{}, err
	}
	r, err := p.PollUntilDone(u.t.Context(), nil)
	return r.Interface, err
}

// machine says what to buy: size, zone and whether spot.
type machine struct {
	size, zone string
	spot       bool
	change     func(*armcompute.VirtualMachine)
}

// body is a machine as the provider writes it.
func (u *subscriber) body(name string, m machine) armcompute.VirtualMachine {
	vm := armcompute.VirtualMachine{
		Location: to.Ptr(u.Region),
		Tags:     map[string]*string{"karpenter.sh_nodepool": to.Ptr("default")},
		Properties: &armcompute.VirtualMachineProperties{
			HardwareProfile: &armcompute.HardwareProfile{VMSize: to.Ptr(armcompute.VirtualMachineSizeTypes(m.size))},
			Priority:        to.Ptr(armcompute.VirtualMachinePriorityTypesRegular),
			StorageProfile: &armcompute.StorageProfile{
				ImageReference: &armcompute.ImageReference{CommunityGalleryImageID: to.Ptr(gen2Image)},
				OSDisk: &armcompute.OSDisk{Name: to.Ptr(name), DiskSizeGB: to.Ptr[int32](128),
					CreateOption: to.Ptr(armcompute.DiskCreateOptionTypesFromImage), DeleteOption: to.Ptr(armcompute.DiskDeleteOptionTypesDelete)},
			},
			OSProfile: &armcompute.OSProfile{ComputerName: to.Ptr(name), AdminUsername: to.Ptr("azureuser"),
				CustomData: to.Ptr(base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\n# " + name)))},
			NetworkProfile: &armcompute.NetworkProfile{NetworkInterfaces: []*armcompute.NetworkInterfaceReference{{
				ID: to.Ptr(u.nicID(name)),
				Properties: &armcompute.NetworkInterfaceReferenceProperties{Primary: to.Ptr(true),
					DeleteOption: to.Ptr(armcompute.DeleteOptionsDelete)},
			}}},
		},
	}
	if m.zone != "" {
		vm.Zones = []*string{to.Ptr(m.zone)}
	}
	if m.spot {
		vm.Properties.Priority = to.Ptr(armcompute.VirtualMachinePriorityTypesSpot)
		vm.Properties.EvictionPolicy = to.Ptr(armcompute.VirtualMachineEvictionPolicyTypesDelete)
		vm.Properties.BillingProfile = &armcompute.BillingProfile{MaxPrice: to.Ptr(-1.0)}
	}
	if m.change != nil {
		m.change(&vm)
	}
	return vm
}

type vmPoller = runtime.Poller[armcompute.VirtualMachinesClientCreateOrUpdateResponse]

// begin creates the network interface and asks for the machine.
func (u *subscriber) begin(name string, m machine) (*vmPoller, error) {
	if _, err := u.nic(name); err != nil {
		return nil, err
	}
	return u.vms.BeginCreateOrUpdate(u.t.Context(), u.NodeResourceGroup, name, u.body(name, m), nil)
}

// buy creates a machine and waits for it.
func (u *subscriber) buy(name string, m machine) (armcompute.VirtualMachine, error) {
	p, err := u.begin(name, m)
	if err != nil {
		return armcompute.VirtualMachine{}, err
	}
	r, err := p.PollUntilDone(u.t.Context(), nil)
	return r.VirtualMachine, err
}

// mustBuy creates a machine that there is no reason to refuse.
func (u *subscriber) mustBuy(name string, m machine) armcompute.VirtualMachine {
	u.t.Helper()
	vm, err := u.buy(name, m)
	if err != nil {
		u.t.Fatalf("buy %s: %v", name, err)
	}
	return vm
}

// sell deletes a machine and waits for its end.
func (u *subscriber) sell(name string) error {
	p, err := u.vms.BeginDelete(u.t.Context(), u.NodeResourceGroup, name,
		&armcompute.VirtualMachinesClientBeginDeleteOptions{ForceDeletion: to.Ptr(true)})
	if err != nil {
		return err
	}
	_, err = p.PollUntilDone(u.t.Context(), nil)
	return err
}

// usage is the current value of a quota as the API shows it.
func (u *subscriber) usage(name string) (current, limit int64) {
	u.t.Helper()
	for pager := u.usages.NewListPager(u.Region, nil); pager.More(); {
		page, err := pager.NextPage(u.t.Context())
		if err != nil {
			u.t.Fatal(err)
		}
		for _, v := range page.Value {
			if *v.Name.Value == name {
				return int64(*v.CurrentValue), *v.Limit
			}
		}
	}
	u.t.Fatalf("no usage %s", name)
	return 0, 0
}

// wantError checks code and a part of the message of an API error.
func wantError(t testing.TB, err error, code, message string) {
	t.Helper()
	var re *azcore.ResponseError
	if !errors.As(err, &re) {
		t.Fatalf("error %v, want %s of the API", err, code)
	}
	if re.ErrorCode != code || !strings.Contains(err.Error(), message) {
		t.Fatalf("error %s, want code %s and a message with %q", err, code, message)
	}
}

// wantStatus checks the HTTP status of an API error.
func wantStatus(t testing.TB, err error, status int) {
	t.Helper()
	var re *azcore.ResponseError
	if !errors.As(err, &re) || re.StatusCode != status {
		t.Fatalf("error %v, want status %d", err, status)
	}
}

// fault adds a fault.
func (u *subscriber) fault(f armsim.Fault) armsim.Fault {
	u.t.Helper()
	f, err := u.Server.AddFault(f)
	if err != nil {
		u.t.Fatal(err)
	}
	return f
}

// kill stops a server without letting it write.
func kill(s *armsim.Server) { s.Kill() }

func resumeWith(token string) *armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions {
	return &armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{ResumeToken: token}
}

// read is the body of an answer.
func read(t testing.TB, resp *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
