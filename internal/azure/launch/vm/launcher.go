// Package vm makes plain virtual machines: the network interface, the machine with
// its system disk and boot data, and the extensions on it. All of it is named after
// the NodeClaim and ends with the machine.
package vm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// nicPoll is how often the creation of a network interface is looked at when
// Azure does not name an interval; it takes a second or two.
const nicPoll = time.Second

// nicTimeout is how long Azure may take for a network interface before the launch
// is given up, to be tried again.
const nicTimeout = 2 * time.Minute

var errNICTimeout = fmt.Errorf("it is not finished within %s; it is tried again", nicTimeout)

// Clients are the clients that make and list virtual machines.
type Clients struct {
	Lists      *Lists
	Machines   *armcompute.VirtualMachinesClient
	Extensions *armcompute.VirtualMachineExtensionsClient
	NICs       *armnetwork.InterfacesClient
	// Blobs reads what Azure gives the address of, without a token.
	Blobs policy.Transporter
}

// Launcher launches plain virtual machines: a network interface, then the machine
// with its system disk, both named after the claim and tied to the machine's
// life. It is a [launch.Launcher].
type Launcher struct {
	clients Clients
	config  *config.Config
	network *network.Resolver
	// later are interfaces to delete once Azure lets go of them.
	later *leftovers
	// going are machines that Azure is deleting.
	going *deletions
	// provisionings are machines that run and are not nodes yet; what has failed is in
	// boots.
	provisionings *provisionings
	boots         *launch.Boots
}

// New returns a launcher for the cluster's node resource group. It tells boots of
// machines whose provisioning has failed.
func New(clients Clients, c *config.Config, resolver *network.Resolver, boots *launch.Boots) *Launcher {
	return &Launcher{
		clients: clients, config: c, network: resolver, later: newLeftovers(), going: newDeletions(),
		provisionings: newProvisionings(), boots: boots,
	}
}

var _ launch.Launcher = (*Launcher)(nil)

// Start makes the network interface and asks for the machine. "Create only if
// absent" makes Azure the judge when two processes ask at the same time.
func (v *Launcher) Start(ctx context.Context, spec launch.NodeSpec) (launch.Machine, error) {
	name := launch.ResourceName(spec.Claim)
	customData, err := v.customData(ctx, spec)
	if err != nil {
		return launch.Machine{}, err
	}
	nic, err := v.putNIC(ctx, spec)
	if err != nil {
		return launch.Machine{}, err
	}
	body := v.machineBody(spec, nic, customData)
	_, err = v.clients.Machines.BeginCreateOrUpdate(ctx, v.config.NodeResourceGroup, name, body,
		&armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: to.Ptr("*")})
	if m, made := v.madeByOthers(ctx, spec.Claim, err); made {
		return m, nil
	}
	if err != nil {
		return launch.Machine{}, fmt.Errorf("create virtual machine %s (%s, zone %q, %s): %w",
			name, spec.SKU.Name, spec.Zone, spec.CapacityType, err)
	}
	v.provisionings.expect(spec.Claim)
	return launch.Machine{
		Claim: spec.Claim, Pool: spec.Pool, ProviderID: v.providerID(spec.Claim), Size: spec.SKU.Name, Zone: spec.Zone,
		CapacityType: spec.CapacityType, ImageID: spec.Image.ID, State: launch.Creating,
		Tags: launch.TagsOf(v.config, spec), Missing: v.extensions(),
	}, nil
}

// madeByOthers finds the machine that another process has made meanwhile, which
// Azure says of itself, or by refusing to change it.
func (v *Launcher) madeByOthers(ctx context.Context, claim string, err error) (launch.Machine, bool) {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) || answer.StatusCode != http.StatusPreconditionFailed && answer.ErrorCode != "PropertyChangeNotAllowed" {
		return launch.Machine{}, false
	}
	m, err := v.Get(ctx, claim)
	return m, err == nil
}

// putNIC makes the machine's network interface. Load balancers come and go: a
// refusal that names one of their pools is answered with fresh pools, once.
func (v *Launcher) putNIC(ctx context.Context, spec launch.NodeSpec) (id string, err error) {
	name := launch.ResourceName(spec.Claim)
	v.later.remove(name) // it is wanted again
	ctx, cancel := context.WithTimeoutCause(ctx, nicTimeout, errNICTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		body, err := v.interfaceBody(ctx, spec)
		if err != nil {
			return "", err
		}
		var answer *http.Response
		poller, err := v.clients.NICs.BeginCreateOrUpdate(policy.WithCaptureResponse(ctx, &answer), v.config.NodeResourceGroup, name, body, nil)
		if err == nil && !succeeded(answer) {
			_, err = poller.PollUntilDone(ctx, &runtime.PollUntilDoneOptions{Frequency: nicPoll})
		}
		if err == nil {
			return fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Network/networkInterfaces/%s",
				v.config.SubscriptionID, v.config.NodeResourceGroup, name), nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return "", fmt.Errorf("create network interface %s: %w", name, cause)
		}
		failure := unavailable.Classify(err)
		if attempt == 1 && failure != nil && failure.Code == "InvalidResourceReference" &&
			strings.Contains(failure.Message, "/backendAddressPools/") {
			v.network.Forget()
			continue
		}
		return "", fmt.Errorf("create network interface %s: %w", name, err)
	}
}

// succeeded says whether a resource is done already in the answer to its PUT. Azure
// names an operation there even then, which need not be asked about.
func succeeded(answer *http.Response) bool {
	var made struct {
		Properties struct {
			ProvisioningState string `json:"provisioningState"`
		} `json:"properties"`
	}
	return runtime.UnmarshalAsJSON(answer, &made) == nil && made.Properties.ProvisioningState == "Succeeded"
}

func (v *Launcher) providerID(claim string) string {
	return launch.ProviderID(v.config.SubscriptionID, v.config.NodeResourceGroup, claim)
}

// billingExtension marks the machine as AKS's for Azure's billing.
const billingExtension = "computeAksLinuxBilling"

// extensions names those that a machine is to have, in the order in which they are put.
// By the first Azure learns how the machine's provisioning ended.
func (v *Launcher) extensions() []string {
	out := []string{bootstrap.ProvisioningExtension().Name}
	if v.config.Cloud.BillsLinux() {
		out = append(out, billingExtension)
	}
	return out
}

// Finish puts the extensions on the machine that it lacks and does not wait for them.
func (v *Launcher) Finish(ctx context.Context, m launch.Machine) error {
	var errs []error
	for _, name := range m.Missing {
		put := v.provision
		if name == billingExtension {
			put = v.bill
		}
		errs = append(errs, put(ctx, m))
	}
	return errors.Join(errs...)
}

// bill puts the billing extension on the machine.
func (v *Launcher) bill(ctx context.Context, m launch.Machine) error {
	name := launch.ResourceName(m.Claim)
	_, err := v.clients.Extensions.BeginCreateOrUpdate(ctx, v.config.NodeResourceGroup,
		name, billingExtension, armcompute.VirtualMachineExtension{
			Location: &v.config.Location, Tags: pointers(m.Tags),
			Properties: &armcompute.VirtualMachineExtensionProperties{
				Publisher: to.Ptr("Microsoft.AKS"), Type: to.Ptr("Compute.AKS.Linux.Billing"), TypeHandlerVersion: to.Ptr("1.0"),
				AutoUpgradeMinorVersion: to.Ptr(true), Settings: map[string]any{},
			},
		}, nil)
	if err != nil {
		return fmt.Errorf("put extension %s on virtual machine %s: %w", billingExtension, name, err)
	}
	return nil
}

// Get reads one machine.
func (v *Launcher) Get(ctx context.Context, claim string) (launch.Machine, error) {
	name := launch.ResourceName(claim)
	answer, err := v.clients.Machines.Get(ctx, v.config.NodeResourceGroup, name, nil)
	if launch.Status(err) == http.StatusNotFound {
		return launch.Machine{}, launch.ErrNotFound
	}
	if err != nil {
		return launch.Machine{}, fmt.Errorf("read virtual machine %s: %w", name, err)
	}
	m, ours := v.machine(&answer.VirtualMachine)
	if !ours {
		return launch.Machine{}, fmt.Errorf("%w: virtual machine %s in resource group %s has no tag %s=%s",
			launch.ErrForeign, name, v.config.NodeResourceGroup, launch.TagCluster, v.config.ClusterName)
	}
	return m, nil
}

// Find reads the machine behind a provider id.
func (v *Launcher) Find(ctx context.Context, providerID string) (launch.Machine, error) {
	if name := providerID[strings.LastIndexByte(providerID, '/')+1:]; launch.IsAKSVM(name) {
		return findBehind(ctx, v.config, v.clients.Machines, name)
	}
	claim, ok := launch.ClaimOfProviderID(providerID)
	if !ok {
		return launch.Machine{}, fmt.Errorf("%w: provider id %q is not that of a virtual machine of nap's", launch.ErrForeign, providerID)
	}
	return v.Get(ctx, claim)
}

// List reads every machine of the cluster, and the virtual machines behind AKS machines that no
// other launcher reads.
func (v *Launcher) List(ctx context.Context) ([]launch.Machine, error) {
	listed, err := v.clients.Lists.Machines(ctx)
	if err != nil {
		return nil, err
	}
	var out []launch.Machine
	for _, vm := range listed {
		if m, ours := v.machine(vm); ours {
			out = append(out, m)
		} else if m, ours := behind(v.config, vm); ours {
			out = append(out, m)
		}
	}
	return out, nil
}

// machine reads a virtual machine; false when it is not this cluster's.
func (v *Launcher) machine(vm *armcompute.VirtualMachine) (launch.Machine, bool) {
	if vm == nil || vm.Name == nil || vm.Properties == nil {
		return launch.Machine{}, false
	}
	claim, ok := launch.ClaimOf(*vm.Name)
	tags := launch.Values(vm.Tags)
	// Virtual machines behind AKS machines are told apart by their names too: AKS
	// machines that lost their tags hand the loss on.
	if !ok || tags[launch.TagCluster] != v.config.ClusterName || tags[launch.TagClaim] != "" || launch.IsAKSVM(*vm.Name) {
		return launch.Machine{}, false
	}
	m := described(vm, tags)
	m.Claim, m.ProviderID = claim, v.providerID(claim)
	for _, name := range v.extensions() {
		e := extensionOf(vm, name)
		// That provisioning has failed is its result; putting it again changes nothing.
		again := name == billingExtension && e != nil && e.Properties != nil &&
			launch.State(launch.Value(e.Properties.ProvisioningState)) == launch.Failed
		if e == nil || again {
			m.Missing = append(m.Missing, name)
		}
	}
	return m, true
}

// described is what a virtual machine with properties says of itself, whichever way it was made.
func described(vm *armcompute.VirtualMachine, tags map[string]string) launch.Machine {
	p := vm.Properties
	m := launch.Machine{
		Pool: tags[launch.TagPool], Tags: tags,
		CapacityType: model.OnDemand, State: launch.StateOf(launch.Value(p.ProvisioningState)), Created: launch.Value(p.TimeCreated),
	}
	if p.HardwareProfile != nil {
		m.Size = string(launch.Value(p.HardwareProfile.VMSize))
	}
	if len(vm.Zones) > 0 {
		m.Zone = launch.Value(vm.Zones[0])
	}
	if launch.Value(p.Priority) == armcompute.VirtualMachinePriorityTypesSpot {
		m.CapacityType = model.Spot
	}
	if p.StorageProfile != nil && p.StorageProfile.ImageReference != nil {
		ref := p.StorageProfile.ImageReference
		if m.ImageID = launch.Value(ref.CommunityGalleryImageID); m.ImageID == "" {
			m.ImageID = launch.Value(ref.ID)
		}
	}
	return m
}

// extensionOf is the machine's extension of a name, nil when it has none. Lists of
// machines may show no more of an extension than its id.
func extensionOf(vm *armcompute.VirtualMachine, name string) *armcompute.VirtualMachineExtension {
	for _, e := range vm.Resources {
		if e != nil && (strings.EqualFold(launch.Value(e.Name), name) ||
			strings.HasSuffix(strings.ToLower(launch.Value(e.ID)), "/extensions/"+strings.ToLower(name))) {
			return e
		}
	}
	return nil
}

// Failure reads from the machine itself why it failed.
func (v *Launcher) Failure(ctx context.Context, claim string) (*unavailable.Failure, error) {
	name := launch.ResourceName(claim)
	view, err := v.clients.Machines.InstanceView(ctx, v.config.NodeResourceGroup, name, nil)
	if launch.Status(err) == http.StatusNotFound {
		return launch.GoneFailure(err), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of virtual machine %s: %w", name, err)
	}
	code, message, running := "ProvisioningFailed", "Azure says no more than that the machine failed", false
	for _, s := range view.Statuses {
		if s == nil {
			continue
		}
		if c, ok := strings.CutPrefix(launch.Value(s.Code), "ProvisioningState/failed/"); ok {
			code, message = c, launch.Value(s.Message)
		}
		running = running || launch.Value(s.Code) == "PowerState/running"
	}
	// An operating system that never reported ready is a failed launch although the
	// machine has power.
	if running && !launch.OSGivenUp(code) {
		return nil, nil
	}
	return unavailable.NewFailure(code, message, nil), nil
}

// Delete removes the machine; its interface and disk go with it. An interface
// whose machine never came is removed on its own.
func (v *Launcher) Delete(ctx context.Context, claim string) error {
	name := launch.ResourceName(claim)
	v.provisionings.forget(claim)
	if v.going.running(ctx, name) {
		return nil
	}
	m, err := v.Get(ctx, claim)
	if errors.Is(err, launch.ErrNotFound) {
		if err := v.deleteNIC(ctx, name); err != nil {
			return err
		}
		return v.going.over(ctx, name)
	}
	if err != nil || m.State == launch.Deleting {
		return err
	}
	poller, err := v.clients.Machines.BeginDelete(ctx, v.config.NodeResourceGroup, name,
		&armcompute.VirtualMachinesClientBeginDeleteOptions{ForceDeletion: to.Ptr(true)})
	if launch.Status(err) == http.StatusNotFound {
		return nil // the next call sees that it is gone, and looks after the interface
	}
	if err != nil {
		return fmt.Errorf("delete virtual machine %s: %w", name, err)
	}
	v.going.keep(name, &deletion{poller: poller, seen: time.Now()})
	return nil
}

// Restart reboots the machine (Virtual Machines - Restart).
func (v *Launcher) Restart(ctx context.Context, claim string) error {
	return launch.Restart(ctx, v.clients.Machines, v.config.NodeResourceGroup, launch.ResourceName(claim))
}

// Run follows the provisioning of machines, and deletes, as soon as Azure lets go of
// them, interfaces that it keeps for machines that it refused.
func (v *Launcher) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { v.provisionings.run(ctx, v.lookAtProvisioning) })
	v.later.run(ctx, func(ctx context.Context, name string) {
		// A failure is no news: it is tried again, and the garbage collection
		// would find the interface too.
		_ = v.deleteNIC(ctx, name)
	})
}

// deleteNIC removes an interface. One that Azure keeps for the machine that was
// refused (three minutes) is removed later, by Run.
func (v *Launcher) deleteNIC(ctx context.Context, name string) error {
	_, err := v.clients.NICs.BeginDelete(ctx, v.config.NodeResourceGroup, name, nil)
	var answer *azcore.ResponseError
	switch {
	case err == nil, launch.Status(err) == http.StatusNotFound:
		v.later.remove(name)
		return nil
	case errors.As(err, &answer) && answer.ErrorCode == "NicReservedForAnotherVm":
		v.later.add(name)
		return nil
	case errors.As(err, &answer) && answer.ErrorCode == "NicInUse":
		v.later.remove(name) // it goes with its machine
		return nil
	}
	return fmt.Errorf("delete network interface %s: %w", name, err)
}
