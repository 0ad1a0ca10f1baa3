package kubelet

import (
	"fmt"
	"maps"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
)

// AKSNode is what AKS knows when it writes the boot data of an agent pool's
// machine itself: how to reach the cluster, and what the machine API was told.
type AKSNode struct {
	Server string
	CA     []byte
	Token  string

	NodeResourceGroup string
	Pool              string
	Mode              string // System or User
	Spot              bool
	Labels            map[string]string
	Taints            []string // key=value:effect
	MaxPods           int
	Version           string
	NoGPUDriver       bool
}

// BootData is what the machine boots from. AKS adds the labels of its own domain
// and the reservations that it publishes. An error says what of it no kubelet
// would start with.
func (n AKSNode) BootData(m Machine) (BootData, error) {
	labels := map[string]string{
		"agentpool": n.Pool, "kubernetes.azure.com/agentpool": n.Pool, "kubernetes.azure.com/role": "agent",
		"kubernetes.azure.com/mode": strings.ToLower(n.Mode), "kubernetes.azure.com/cluster": n.NodeResourceGroup,
	}
	if n.Spot {
		labels["kubernetes.azure.com/scalesetpriority"] = "spot"
	}
	maps.Copy(labels, n.Labels)
	const gibibyte = 1 << 30
	flags, err := ParseFlags(fmt.Sprintf(
		"--register-with-taints=%s --max-pods=%d --kube-reserved=cpu=%dm,memory=%dMi --eviction-hard=memory.available<%dMi --cloud-provider=external",
		strings.Join(n.Taints, ","), n.MaxPods, instancetype.KubeReservedCPU(m.VCPUs), instancetype.KubeReservedMemoryMiB(float64(m.MemoryBytes)/gibibyte), instancetype.EvictionMemoryMiB()))
	if err != nil {
		return BootData{}, err
	}
	return BootData{
		Server: n.Server, CA: n.CA, Token: n.Token, Version: n.Version, Labels: labels, Flags: flags, GPUDriver: m.GPUs > 0 && !n.NoGPUDriver,
	}, nil
}
