package managedcluster

import (
	"fmt"
	"strings"
)

// Pause is why no machine may be bought for a cluster. It is an error of launches.
type Pause struct {
	// Reason is in CamelCase, Message says what to do.
	Reason, Message string
}

// The reasons of a Pause.
const (
	ReasonAutoprovisioned = "NodeProvisioningAuto"
	ReasonStopped         = "ClusterStopped"
	// ReasonPrerequisite is that of a cluster that lacks what nap's machines need.
	ReasonPrerequisite = "PrerequisiteNotMet"
	// ReasonPoolMissing and ReasonPoolMode are those of AKS machines without a pool.
	ReasonPoolMissing = "MachinesPoolMissing"
	ReasonPoolMode    = "AgentPoolNotForMachines"
)

// Error implements error.
func (p *Pause) Error() string { return p.Message }

// Pause is nil while machines may be bought.
func (f *Facts) Pause() *Pause {
	switch {
	case strings.EqualFold(f.State.NodeProvisioning, modeAuto):
		return &Pause{ReasonAutoprovisioned, fmt.Sprintf("AKS's own node auto-provisioning is on for cluster %s "+
			"(nodeProvisioningProfile.mode is %s), and two must not buy for the same pods: nap buys nothing. Turn the other off: "+
			"az aks update --resource-group %s --name %s --node-provisioning-mode Manual", f.Name, modeAuto, f.ResourceGroup, f.Name)}
	case f.State.stopped():
		return &Pause{ReasonStopped, fmt.Sprintf("cluster %s is stopped, or on its way there (power state %s, provisioning state %s): "+
			"nap buys nothing until it is started: az aks start --resource-group %s --name %s",
			f.Name, f.State.Power, f.State.Provisioning, f.ResourceGroup, f.Name)}
	}
	return nil
}
