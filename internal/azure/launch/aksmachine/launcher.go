// Package aksmachine makes machines of an agent pool: AKS makes the virtual machine
// and its boot data, alone or in batches, and is told what the node shall be.
package aksmachine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// driftSynced is what AKS says of a machine that is as the cluster's configuration
// has it now.
const driftSynced = "Synced"

// vmRunning is the vmState of a machine that has power.
const vmRunning = "Running"

// Clients reach the machines of one agent pool.
type Clients struct {
	Machines *MachineClient
	Pools    *armcontainerservice.AgentPoolsClient
	// VMs reads and restarts the virtual machines behind the machines.
	VMs *armcompute.VirtualMachinesClient
}

// Launcher launches machines of an agent pool: AKS makes the virtual machine,
// its interface and its boot data, and is told what the node shall be. It is a
// [launch.Launcher].
type Launcher struct {
	clients   Clients
	config    *config.Config
	galleries image.Galleries
	batch     *batcher // nil when every machine is asked for by itself
	again     *batcher // for machines whose claims have waited long enough
	named     otherNames
}

// New returns a launcher for the agent pool of the configuration.
func New(clients Clients, c *config.Config) *Launcher {
	a := &Launcher{clients: clients, config: c, galleries: image.GalleriesOf(c.SIGSubscriptionID)}
	if c.ProvisionMode == config.ModeAKSMachinesBatched {
		// After a refusal a claim has already lost the time that it waits for others;
		// a quarter of it still joins what a zone that runs out refuses together.
		const hurry = 4
		b := Batching(c.Batching)
		a.batch = newBatcher(b, clients.Machines.put)
		a.again = newBatcher(Batching{Idle: b.Idle / hurry, Max: b.Max / hurry, Size: b.Size}, clients.Machines.put)
	}
	return a
}

var _ launch.Launcher = (*Launcher)(nil)

// Start asks for the machine, in a batch where that is configured.
func (a *Launcher) Start(ctx context.Context, spec launch.NodeSpec) (launch.Machine, error) {
	name, err := launch.MachineName(spec.Claim)
	if err != nil {
		return launch.Machine{}, err
	}
	body, err := a.body(spec)
	if err != nil {
		return launch.Machine{}, err
	}
	switch {
	case a.batch == nil:
		err = a.clients.Machines.put(ctx, name, body, nil)
	case spec.Again:
		err = a.again.put(ctx, name, body)
	default:
		err = a.batch.put(ctx, name, body)
	}
	if err != nil && launch.Status(err) != http.StatusPreconditionFailed {
		if m, made := a.madeAnyway(ctx, spec.Claim, err); made {
			return m, nil
		}
		return launch.Machine{}, fmt.Errorf("create AKS machine %s (%s, zone %q, %s): %w", name, spec.SKU.Name, spec.Zone, spec.CapacityType, err)
	}
	m, err := a.accepted(ctx, spec.Claim)
	if errors.Is(err, launch.ErrNotFound) {
		// Accepted, and not made: that it was lost is a reason to ask once more.
		return launch.Machine{}, fmt.Errorf("create AKS machine %s: AKS accepted it and does not know it; it is asked for again", name)
	}
	return m, err
}

// accepted reads a machine that AKS has just accepted, which may know it a moment
// later.
func (a *Launcher) accepted(ctx context.Context, claim string) (launch.Machine, error) {
	for wait := launch.NewPoll; ; wait *= 2 {
		m, err := a.Get(ctx, claim)
		if !errors.Is(err, launch.ErrNotFound) || wait > launch.MissingFor {
			return m, err
		}
		select {
		case <-ctx.Done():
			return launch.Machine{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// madeAnyway finds the machine of a batch that failed as a whole: of such a batch
// AKS may have made some.
func (a *Launcher) madeAnyway(ctx context.Context, claim string, err error) (launch.Machine, bool) {
	var own *unavailable.Failure
	if a.batch == nil || errors.As(err, &own) {
		return launch.Machine{}, false
	}
	m, err := a.Get(ctx, claim)
	return m, err == nil && m.State != launch.Deleting
}

// Finish has nothing to do: AKS finishes its machines itself.
func (a *Launcher) Finish(context.Context, launch.Machine) error { return nil }

// Run has nothing to do: AKS keeps no interfaces back.
func (a *Launcher) Run(context.Context) {}

// Get reads one machine.
func (a *Launcher) Get(ctx context.Context, claim string) (launch.Machine, error) {
	raw, err := a.read(ctx, claim)
	if err != nil {
		return launch.Machine{}, err
	}
	m, ours := a.describe(raw.Zones, &raw.Properties.described)
	if !ours || m.Claim != claim {
		return launch.Machine{}, fmt.Errorf("%w: AKS machine %s of agent pool %s lacks the tags %s=%s and %s=%s",
			launch.ErrForeign, raw.Name, a.config.MachinesPool, launch.TagCluster, a.config.ClusterName, launch.TagClaim, claim)
	}
	return m, nil
}

func (a *Launcher) read(ctx context.Context, claim string) (machine, error) {
	name, err := a.named.of(claim)
	if err != nil {
		return machine{}, launch.ErrNotFound // no such machine can have been made
	}
	raw, err := a.clients.Machines.get(ctx, name)
	if launch.Status(err) == http.StatusNotFound {
		if a.named.forget(claim) {
			return a.read(ctx, claim)
		}
		return machine{}, launch.ErrNotFound
	}
	if err != nil {
		return machine{}, fmt.Errorf("read AKS machine %s: %w", name, err)
	}
	return raw, nil
}

// Find reads the machine behind a provider id.
func (a *Launcher) Find(ctx context.Context, providerID string) (launch.Machine, error) {
	name, ok := launch.MachineOfVM(a.config.MachinesPool, providerID)
	if !ok {
		return launch.Machine{}, fmt.Errorf("%w: provider id %q is not that of a machine of agent pool %s",
			launch.ErrForeign, providerID, a.config.MachinesPool)
	}
	raw, err := a.clients.Machines.get(ctx, name)
	if launch.Status(err) == http.StatusNotFound {
		return launch.Machine{}, launch.ErrNotFound
	}
	if err != nil {
		return launch.Machine{}, fmt.Errorf("read AKS machine %s: %w", name, err)
	}
	m, ours := a.describe(raw.Zones, &raw.Properties.described)
	if !ours {
		return launch.Machine{}, fmt.Errorf("%w: AKS machine %s has no tag %s=%s",
			launch.ErrForeign, name, launch.TagCluster, a.config.ClusterName)
	}
	return m, nil
}

// List reads every machine of the pool that is this cluster's and nap's.
func (a *Launcher) List(ctx context.Context) ([]launch.Machine, error) {
	all, err := list[listedMachine](ctx, a.clients.Machines)
	if err != nil {
		return nil, fmt.Errorf("list the machines of agent pool %s: %w", a.config.MachinesPool, err)
	}
	var out []launch.Machine
	for i := range all {
		if m, ours := a.describe(all[i].Zones, &all[i].Properties); ours {
			a.named.note(m.Claim, all[i].Name)
			out = append(out, m)
		}
	}
	return out, nil
}

// describe reads an AKS machine; false when it is not nap's.
func (a *Launcher) describe(zones []string, p *described) (launch.Machine, bool) {
	claim := p.Tags[launch.TagClaim]
	if claim == "" || p.Tags[launch.TagCluster] != a.config.ClusterName {
		return launch.Machine{}, false
	}
	m := launch.Machine{
		Claim: claim, Pool: p.Tags[launch.TagPool], ProviderID: launch.ProviderIDOf(p.ResourceID),
		Size: p.Hardware.VMSize, AKS: true,
		CapacityType: model.OnDemand, State: launch.StateOf(p.ProvisioningState), Tags: p.Tags, ImageID: a.galleries.ID(p.NodeImageVersion),
	}
	if len(zones) > 0 {
		m.Zone = zones[0]
	}
	if strings.EqualFold(p.Priority, prioritySpot) {
		m.CapacityType = model.Spot
	}
	if p.Status != nil {
		m.Created = p.Status.CreationTimestamp
		m.Drifted = p.Status.DriftAction != "" && p.Status.DriftAction != driftSynced
	}
	return m, true
}

// Failure says why AKS gave the machine up.
func (a *Launcher) Failure(ctx context.Context, claim string) (*unavailable.Failure, error) {
	raw, err := a.read(ctx, claim)
	if errors.Is(err, launch.ErrNotFound) {
		return launch.GoneFailure(err), nil
	}
	if err != nil {
		return nil, err
	}
	s := raw.Properties.Status
	if s == nil || s.ProvisioningError == nil {
		if s != nil && s.VMState == vmRunning {
			return nil, nil
		}
		return unavailable.NewFailure("ProvisioningFailed", "AKS says no more than that the machine failed", nil), nil
	}
	failure := s.ProvisioningError.Failure(nil)
	// Of a machine that runs, only its boot can have failed: everything else is about a later
	// change of it.
	_, boot := launch.BootFailureIn(failure.Code, failure.Message)
	if s.VMState == vmRunning && !boot && !launch.OSGivenUp(failure.Code) {
		return nil, nil
	}
	return failure, nil
}

// Delete removes the machine; AKS removes everything behind it.
func (a *Launcher) Delete(ctx context.Context, claim string) error {
	m, err := a.Get(ctx, claim)
	if err != nil || m.State == launch.Deleting {
		return err
	}
	name, err := a.named.of(claim)
	if err != nil {
		return err
	}
	_, err = a.clients.Pools.BeginDeleteMachines(ctx, a.config.ResourceGroup, a.config.ClusterName, a.config.MachinesPool,
		armcontainerservice.AgentPoolDeleteMachinesParameter{MachineNames: []*string{to.Ptr(name)}}, nil)
	var answer *azcore.ResponseError
	if launch.Status(err) == http.StatusNotFound ||
		errors.As(err, &answer) && strings.Contains(answer.Error(), "Cannot find any valid machines") {
		return nil // the next call sees that it is gone
	}
	if err != nil {
		return fmt.Errorf("delete AKS machine %s: %w", name, err)
	}
	return nil
}

// Restart reboots the virtual machine behind the machine: AKS has no such call for machines.
func (a *Launcher) Restart(ctx context.Context, claim string) error {
	m, err := a.Get(ctx, claim)
	if err != nil {
		return err
	}
	return launch.Restart(ctx, a.clients.VMs, a.config.NodeResourceGroup, m.ProviderID[strings.LastIndexByte(m.ProviderID, '/')+1:])
}

// tags of an AKS machine are those of any machine, and its claim.
func (a *Launcher) tags(spec launch.NodeSpec) map[string]string {
	out := maps.Clone(launch.TagsOf(a.config, spec))
	out[launch.TagClaim] = spec.Claim
	return out
}

// Update gives the machine the tags that it would be made with today; AKS carries
// them on. Identities are the agent pool's business.
func (a *Launcher) Update(ctx context.Context, m launch.Machine, class *nodeclass.NodeClass) error {
	name, err := a.named.of(m.Claim)
	if err != nil {
		return launch.ErrNotFound // no such machine can have been made
	}
	want := a.tags(launch.NodeSpec{Claim: m.Claim, Pool: m.Pool, Class: class})
	err = a.clients.Machines.changeTags(ctx, name, func(now machine) map[string]string {
		if maps.Equal(now.Properties.Tags, want) {
			return nil
		}
		return want
	})
	switch {
	case launch.Status(err) == http.StatusNotFound:
		return launch.ErrNotFound
	case err != nil:
		return fmt.Errorf("update the tags of AKS machine %s: %w", name, err)
	}
	return nil
}

// BootFailure finds nothing that the watcher has not found: AKS ends the making of a
// machine with what its provisioning ended with.
func (a *Launcher) BootFailure(context.Context, launch.Machine) (launch.BootFailure, error) {
	return launch.BootFailure{}, nil
}

// Console has nothing to tell: AKS says itself why a machine of its own failed.
func (a *Launcher) Console(context.Context, launch.Machine) ([]string, error) { return nil, nil }

// Joined has nothing to do: AKS machines are watched until AKS has made them.
func (a *Launcher) Joined(string) {}
