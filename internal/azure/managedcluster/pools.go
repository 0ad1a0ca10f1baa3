package managedcluster

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// MachineAPI is the version of AKS's API with which machines of agent pools are made.
// The stable versions, and with them the SDK, can only read a machine's address and
// id; creating one, its state and its tags are in preview.
const MachineAPI = "2026-04-02-preview"

// ModeMachines is the mode of agent pools whose machines are made one by one. A pool
// has its mode from its creation on.
const ModeMachines = "Machines"

// autoprovisionedPool is the pool that AKS's own node auto-provisioning keeps its
// machines in (Azure/karpenter-provider-azure, test/pkg/environment/azure/environment.go).
const autoprovisionedPool = "aksmanagedap"

// Find finds an agent pool by its name; nil when the cluster lists none.
func (a AgentPools) Find(name string) *AgentPool {
	for i := range a {
		if strings.EqualFold(a[i].Name, name) {
			return &a[i]
		}
	}
	return nil
}

// ForMachines are the names of the pools of mode Machines, in order, without the one
// that AKS's own node auto-provisioning keeps.
func (a AgentPools) ForMachines() []string {
	var names []string
	for _, p := range a {
		if p.ForMachines() && !strings.EqualFold(p.Name, autoprovisionedPool) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// ForMachines reports whether machines can be made in the pool.
func (p *AgentPool) ForMachines() bool { return strings.EqualFold(p.Mode, ModeMachines) }

// busy reports whether AKS is making or deleting the pool, so that it takes no machines.
func (p *AgentPool) busy() bool {
	return strings.EqualFold(p.Provisioning, "Creating") || strings.EqualFold(p.Provisioning, "Deleting")
}

// MakePool is the command that makes an agent pool of mode Machines, given the
// cluster's resource id and the pool's name.
func MakePool(cluster, pool string) string {
	return fmt.Sprintf(`az rest --method PUT --url "%s/agentPools/%s?api-version=%s" --body '{"properties": {"mode": "%s"}}'`,
		cluster, pool, MachineAPI, ModeMachines)
}

// Pause is why no machine can be made in an agent pool of the cluster with this
// resource id; nil while machines can. making says what nap does about a pool that is
// missing; empty where that is up to the cluster's owner.
func (a AgentPools) Pause(id, name, making string) *Pause {
	pool, cluster := a.Find(name), path.Base(id)
	switch {
	case pool == nil && making != "":
		return &Pause{ReasonPoolMissing, fmt.Sprintf("cluster %s has no agent pool %s: %s", cluster, name, making)}
	case pool == nil:
		return &Pause{ReasonPoolMissing, fmt.Sprintf("cluster %s has no agent pool %s, and AKS makes machines in a pool of mode %s alone. "+
			"Make it: %s; or let nap do so with NAP_CREATE_MACHINES_POOL=true; or set PROVISION_MODE to aksscriptless",
			cluster, name, ModeMachines, MakePool(id, name))}
	case pool.Mode != "" && !pool.ForMachines():
		return &Pause{ReasonPoolMode, fmt.Sprintf("agent pool %s of cluster %s is of mode %s, and AKS makes machines in a pool of "+
			"mode %s alone. Make another: %s; then set AKS_MACHINES_POOL_NAME to it", name, cluster, pool.Mode, ModeMachines, MakePool(id, "NAME"))}
	case pool.busy():
		return &Pause{ReasonPoolMissing, fmt.Sprintf("agent pool %s of cluster %s is %s", name, cluster, strings.ToLower(pool.Provisioning))}
	}
	return nil
}
