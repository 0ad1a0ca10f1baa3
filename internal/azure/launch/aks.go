package launch

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
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// TagClaim names the claim of an AKS machine, on it and on everything behind it.
// Plain virtual machines do not have it.
const TagClaim = "karpenter.azure.com_aksmachine_nodeclaim"

// driftSynced is what AKS says of a machine that is as the cluster's configuration
// has it now.
const driftSynced = "Synced"

// AKSClients reach the machines of one agent pool.
type AKSClients struct {
	Machines *MachineClient
	Pools    *armcontainerservice.AgentPoolsClient
	// VMs reads the virtual machines behind the machines.
	VMs *armcompute.VirtualMachinesClient
}

// AKSMachines launches machines of an agent pool: AKS makes the virtual machine,
// its interface and its boot data, and is told what the node shall be. It is a
// [Launcher].
type AKSMachines struct {
	clients   AKSClients
	config    *config.Config
	galleries image.Galleries
	batch     *batcher // nil when every machine is asked for by itself
	again     *batcher // for machines whose claims have waited long enough
}

// NewAKSMachines returns a launcher for the agent pool of the configuration.
func NewAKSMachines(clients AKSClients, c *config.Config) *AKSMachines {
	a := &AKSMachines{clients: clients, config: c, galleries: image.GalleriesOf(c.SIGSubscriptionID)}
	if c.ProvisionMode == config.ModeAKSMachinesBatched {
		// After a refusal a claim pays for company with time that it has already lost;
		// a quarter of it still joins what a zone that runs out refuses together.
		const hurry = 4
		b := Batching(c.Batching)
		a.batch = newBatcher(b, clients.Machines.put)
		a.again = newBatcher(Batching{Idle: b.Idle / hurry, Max: b.Max / hurry, Size: b.Size}, clients.Machines.put)
	}
	return a
}

var _ Launcher = (*AKSMachines)(nil)

// Start asks for the machine, in a batch where that is configured.
func (a *AKSMachines) Start(ctx context.Context, spec NodeSpec) (Machine, error) {
	name, err := MachineName(spec.Claim)
	if err != nil {
		return Machine{}, err
	}
	body, err := a.body(spec)
	if err != nil {
		return Machine{}, err
	}
	switch {
	case a.batch == nil:
		err = a.clients.Machines.put(ctx, name, body, nil)
	case spec.Again:
		err = a.again.put(ctx, name, body)
	default:
		err = a.batch.put(ctx, name, body)
	}
	if err != nil && status(err) != http.StatusPreconditionFailed {
		if m, made := a.madeAnyway(ctx, spec.Claim, err); made {
			return m, nil
		}
		return Machine{}, fmt.Errorf("create AKS machine %s (%s, zone %q, %s): %w", name, spec.SKU.Name, spec.Zone, spec.CapacityType, err)
	}
	m, err := a.accepted(ctx, spec.Claim)
	if errors.Is(err, ErrNotFound) {
		// Accepted, and not made: that it was lost is a reason to ask once more.
		return Machine{}, fmt.Errorf("create AKS machine %s: AKS accepted it and does not know it; it is asked for again", name)
	}
	return m, err
}

// accepted reads a machine that AKS has just accepted, which may know it a moment
// later.
func (a *AKSMachines) accepted(ctx context.Context, claim string) (Machine, error) {
	for wait := newPoll; ; wait *= 2 {
		m, err := a.Get(ctx, claim)
		if !errors.Is(err, ErrNotFound) || wait > missingFor {
			return m, err
		}
		select {
		case <-ctx.Done():
			return Machine{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// madeAnyway finds the machine of a batch that failed as a whole: of such a batch
// AKS may have made some.
func (a *AKSMachines) madeAnyway(ctx context.Context, claim string, err error) (Machine, bool) {
	var own *unavailable.Failure
	if a.batch == nil || errors.As(err, &own) {
		return Machine{}, false
	}
	m, err := a.Get(ctx, claim)
	return m, err == nil && m.State != Deleting
}

// Finish has nothing to do: AKS finishes its machines itself.
func (a *AKSMachines) Finish(context.Context, Machine) error { return nil }

// Run has nothing to do: AKS keeps no interfaces back.
func (a *AKSMachines) Run(context.Context) {}

// Get reads one machine.
func (a *AKSMachines) Get(ctx context.Context, claim string) (Machine, error) {
	raw, err := a.read(ctx, claim)
	if err != nil {
		return Machine{}, err
	}
	m, ours := a.machine(&raw)
	if !ours || m.Claim != claim {
		return Machine{}, fmt.Errorf("%w: AKS machine %s of agent pool %s lacks the tags %s=%s and %s=%s",
			ErrForeign, raw.Name, a.config.MachinesPool, TagCluster, a.config.ClusterName, TagClaim, claim)
	}
	return m, nil
}

func (a *AKSMachines) read(ctx context.Context, claim string) (aksMachine, error) {
	name, err := MachineName(claim)
	if err != nil {
		return aksMachine{}, ErrNotFound // no such machine can have been made
	}
	raw, err := a.clients.Machines.get(ctx, name)
	if status(err) == http.StatusNotFound {
		return aksMachine{}, ErrNotFound
	}
	if err != nil {
		return aksMachine{}, fmt.Errorf("read AKS machine %s: %w", name, err)
	}
	return raw, nil
}

// Find reads the machine behind a provider id.
func (a *AKSMachines) Find(ctx context.Context, providerID string) (Machine, error) {
	name, ok := MachineOfVM(a.config.MachinesPool, providerID)
	if !ok {
		return Machine{}, fmt.Errorf("%w: provider id %q is not that of a machine of agent pool %s",
			ErrForeign, providerID, a.config.MachinesPool)
	}
	raw, err := a.clients.Machines.get(ctx, name)
	if status(err) == http.StatusNotFound {
		return Machine{}, ErrNotFound
	}
	if err != nil {
		return Machine{}, fmt.Errorf("read AKS machine %s: %w", name, err)
	}
	m, ours := a.machine(&raw)
	if !ours {
		return Machine{}, fmt.Errorf("%w: AKS machine %s has no tag %s=%s", ErrForeign, name, TagCluster, a.config.ClusterName)
	}
	return m, nil
}

// List reads every machine of the pool that is this cluster's and nap's.
func (a *AKSMachines) List(ctx context.Context) ([]Machine, error) {
	all, err := a.clients.Machines.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the machines of agent pool %s: %w", a.config.MachinesPool, err)
	}
	var out []Machine
	for i := range all {
		if m, ours := a.machine(&all[i]); ours {
			out = append(out, m)
		}
	}
	return out, nil
}

// machine reads an AKS machine; false when it is not nap's.
func (a *AKSMachines) machine(raw *aksMachine) (Machine, bool) {
	p := &raw.Properties
	claim := p.Tags[TagClaim]
	if claim == "" || p.Tags[TagCluster] != a.config.ClusterName {
		return Machine{}, false
	}
	m := Machine{
		Claim: claim, Pool: p.Tags[TagPool], ProviderID: providerIDOf(p.ResourceID), Size: p.Hardware.VMSize, AKS: true,
		CapacityType: model.OnDemand, State: stateOf(p.ProvisioningState), Tags: p.Tags, ImageID: a.galleries.ID(p.NodeImageVersion),
	}
	if len(raw.Zones) > 0 {
		m.Zone = raw.Zones[0]
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
func (a *AKSMachines) Failure(ctx context.Context, claim string) (*unavailable.Failure, error) {
	raw, err := a.read(ctx, claim)
	if errors.Is(err, ErrNotFound) {
		return gone(err), nil
	}
	if err != nil {
		return nil, err
	}
	s := raw.Properties.Status
	if s == nil || s.ProvisioningError == nil {
		if s != nil && s.VMState == "Running" {
			return nil, nil
		}
		return unavailable.NewFailure("ProvisioningFailed", "AKS says no more than that the machine failed", nil), nil
	}
	return s.ProvisioningError.Failure(nil), nil
}

// Delete removes the machine; AKS removes everything behind it.
func (a *AKSMachines) Delete(ctx context.Context, claim string) error {
	m, err := a.Get(ctx, claim)
	if err != nil || m.State == Deleting {
		return err
	}
	name, err := MachineName(claim)
	if err != nil {
		return err
	}
	_, err = a.clients.Pools.BeginDeleteMachines(ctx, a.config.ResourceGroup, a.config.ClusterName, a.config.MachinesPool,
		armcontainerservice.AgentPoolDeleteMachinesParameter{MachineNames: []*string{to.Ptr(name)}}, nil)
	var answer *azcore.ResponseError
	if status(err) == http.StatusNotFound || errors.As(err, &answer) && strings.Contains(answer.Error(), "Cannot find any valid machines") {
		return nil // the next call sees that it is gone
	}
	if err != nil {
		return fmt.Errorf("delete AKS machine %s: %w", name, err)
	}
	return nil
}

// tags of an AKS machine are those of any machine, and its claim.
func (a *AKSMachines) tags(spec NodeSpec) map[string]string {
	out := maps.Clone(tagsOf(a.config, spec))
	out[TagClaim] = spec.Claim
	return out
}
