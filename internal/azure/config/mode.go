package config

import (
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// DefaultMachinesPool is the agent pool of AKS machines where nothing names another.
const DefaultMachinesPool = "machines"

// ProbePool is the agent pool whose machines tell whether AKS's machine API is to be
// had; empty where that decides nothing.
func ProbePool(c *Config, f *managedcluster.Facts) string {
	var pools []string
	if f != nil {
		pools = f.Pools.ForMachines()
	}
	switch {
	case c.ProvisionMode == ModeVMs:
		return ""
	case c.MachinesPool != "":
		return c.MachinesPool
	case len(pools) > 0:
		return pools[0]
	case c.StartsAKSMachines() || c.CreatePool:
		return DefaultMachinesPool
	}
	return ""
}

// mode settles how machines are made and which agent pool AKS machines are in, and
// refuses variables with which none could be made. Nil facts mean that the cluster
// could not be asked.
func (l *learner) mode(c *Config, f *managedcluster.Facts) {
	var pools []string
	if f != nil {
		pools = f.Pools.ForMachines()
	}
	if c.MachinesPool == "" && len(pools) == 1 {
		c.MachinesPool = pools[0]
	}
	switch {
	case c.ProvisionMode == ModeVMs:
		if c.ManageMachines && c.MachinesPool == "" {
			l.refuse("AKS_MACHINES_POOL_NAME: must be set with MANAGE_EXISTING_AKS_MACHINES: the agent pool (mode %s) that machines belong to",
				managedcluster.ModeMachines)
		}
		return
	case c.NoMachineAPI != "" && c.ProvisionMode != "":
		l.refuse("PROVISION_MODE is %s, and AKS does not make machines here: %s; set PROVISION_MODE to %s or leave it unset, or register the "+
			"feature where Azure names one: az feature register --namespace Microsoft.ContainerService --name NAME",
			c.ProvisionMode, c.NoMachineAPI, ModeVMs)
		return
	case c.CreatePool && f == nil:
		l.refuse("NAP_CREATE_MACHINES_POOL is true, and nap could not ask the cluster which agent pools it has: " +
			"permit Microsoft.ContainerService/managedClusters/read on it")
		return
	case c.MachinesPool == "" && len(pools) > 1:
		l.refuse("AKS_MACHINES_POOL_NAME: must be set, because the cluster has several agent pools of mode %s: allowed are %s",
			managedcluster.ModeMachines, strings.Join(pools, ", "))
		return
	}
	if c.ProvisionMode == "" {
		l.choose(c, f)
	}
	if !c.StartsAKSMachines() {
		return
	}
	if c.MachinesPool == "" {
		if f == nil {
			l.refuse("AKS_MACHINES_POOL_NAME: must be set with PROVISION_MODE %s, because nap could not ask the cluster: "+
				"the agent pool (mode %s) that machines belong to", c.ProvisionMode, managedcluster.ModeMachines)
			return
		}
		c.MachinesPool = DefaultMachinesPool
	}
	l.poolMode(c, f, pools)
}

// choose decides how machines are made where no variable does, and says why.
func (l *learner) choose(c *Config, f *managedcluster.Facts) {
	c.ProvisionMode = ModeVMs
	if f == nil {
		c.ModeChoice = "the cluster could not be asked whether it has an agent pool of mode " + managedcluster.ModeMachines
		return
	}
	pool := f.Pools.Find(c.MachinesPool)
	switch {
	case c.NoMachineAPI != "":
		c.ModeChoice = "AKS does not make machines here: " + c.NoMachineAPI
		if pool != nil {
			c.ModeChoice += fmt.Sprintf("; machines that agent pool %s has are listed and deleted with their NodeClaims, and nap sees to "+
				"nothing else of them; it starts again within minutes of AKS making machines", pool.Name)
		}
	case pool != nil: // of another mode it is refused
		c.ProvisionMode = ModeAKSMachines
		c.ModeChoice = fmt.Sprintf("the cluster has agent pool %s of mode %s", pool.Name, managedcluster.ModeMachines)
	case c.CreatePool:
		c.ProvisionMode = ModeAKSMachines
		c.ModeChoice = fmt.Sprintf("the cluster has no agent pool of mode %s, and NAP_CREATE_MACHINES_POOL lets nap make one",
			managedcluster.ModeMachines)
	default:
		c.ModeChoice = fmt.Sprintf("the cluster has no agent pool of mode %s; this makes one: %s",
			managedcluster.ModeMachines, managedcluster.MakePool(f.ID, DefaultMachinesPool))
	}
}

// poolMode refuses a pool that AKS makes no machines in. One that is missing is none of
// these: it may come.
func (l *learner) poolMode(c *Config, f *managedcluster.Facts, others []string) {
	if f == nil {
		return
	}
	pool := f.Pools.Find(c.MachinesPool)
	if pool == nil || pool.Mode == "" || pool.ForMachines() {
		return
	}
	instead := "the cluster has none; this makes one: " + managedcluster.MakePool(f.ID, "NAME")
	if len(others) > 0 {
		instead = "those are " + strings.Join(others, ", ")
	}
	l.refuse("AKS_MACHINES_POOL_NAME is %s, the cluster says that agent pool is of mode %s; machines are made in pools of mode %s alone: %s",
		c.MachinesPool, pool.Mode, managedcluster.ModeMachines, instead)
}
