package vm

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// BootData is the script that a machine runs first: the assignments that AKS's
// node image reads, and the call of its provisioning script. It is not encoded.
func BootData(c *config.Config, spec launch.NodeSpec) string {
	plugin := c.NetworkPlugin
	if c.NetworkPluginMode == config.ModeOverlay || c.NetworkDataplane == "cilium" {
		// The network agent runs as a DaemonSet and brings its own plugin.
		plugin = config.PluginNone
	}
	gpu := spec.SKU.GPUs > 0
	values := [][2]string{
		{"API_SERVER_NAME", c.ClusterEndpoint},
		{"KUBE_CA_CRT", base64.StdEncoding.EncodeToString(c.ClusterCA)},
		{"TLS_BOOTSTRAP_TOKEN", spec.JoinToken},
		{"KUBERNETES_VERSION", strings.TrimPrefix(spec.Class.KubernetesVersion, "v")},
		{"KUBELET_NODE_LABELS", nodeLabels(spec.Labels)},
		{"KUBELET_FLAGS", strings.Join(kubeletFlags(c, spec), " ")},
		{"NETWORK_PLUGIN", plugin},
		{"NETWORK_POLICY", c.NetworkPolicy},
		{"GPU_NODE", fmt.Sprint(gpu)},
		{"CONFIG_GPU_DRIVER_IF_NEEDED", fmt.Sprint(gpu && !spec.Class.NoGPUDriver)},
		{"VM_SIZE", spec.SKU.Name},
		{"LOCATION", c.Location},
		{"RESOURCE_GROUP", c.NodeResourceGroup},
		{"SUBSCRIPTION_ID", c.SubscriptionID},
		{"TENANT_ID", c.Cloud.TenantID},
		{"USER_ASSIGNED_IDENTITY_ID", c.KubeletIdentityClientID},
		{"ADMINUSER", c.AdminUsername},
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for _, v := range values {
		fmt.Fprintf(&b, "export %s=%s\n", v[0], quote(v[1]))
	}
	b.WriteString("/usr/bin/nohup /bin/bash /opt/azure/containers/provision_start.sh\n")
	return b.String()
}

// quote makes one word of a shell command, whatever is in it.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// nodeLabels are the labels that the kubelet may give its own node, sorted.
func nodeLabels(labels map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if launch.MayLabelItself(key) {
			out = append(out, key+"="+labels[key])
		}
	}
	return strings.Join(out, ",")
}

// kubeletFlags is the kubelet's command line. Reservations are those that the
// catalogue planned with, so that a node has what was promised.
func kubeletFlags(c *config.Config, spec launch.NodeSpec) []string {
	flags := []string{
		"--register-with-taints=" + strings.Join(launch.RegisterTaints(spec.Taints), ","),
		fmt.Sprintf("--max-pods=%d", spec.MaxPods),
		fmt.Sprintf("--kube-reserved=cpu=%dm,memory=%dMi", instancetype.KubeReservedCPU(spec.SKU.VCPUs),
			instancetype.KubeReservedMemoryMiB(spec.SKU.MemoryGiB)),
		"--eviction-hard=" + eviction(),
		"--cloud-provider=external",
		"--provider-id=" + launch.ProviderID(c.SubscriptionID, c.NodeResourceGroup, spec.Claim),
		"--cluster-dns=" + c.DNSServiceIP,
		"--cluster-domain=cluster.local",
		"--rotate-certificates=true",
		"--node-status-update-frequency=10s",
	}
	return append(flags, classFlags(&spec.Class.Kubelet)...)
}

// eviction is when the kubelet evicts pods. Naming one threshold switches the
// kubelet's own ones off, so what is not planned with does not hold either.
func eviction() string {
	return fmt.Sprintf("memory.available<%dMi,nodefs.available<%d%%,nodefs.inodesFree<%d%%",
		instancetype.EvictionMemoryMiB(), instancetype.EvictionDiskPercent(), instancetype.EvictionInodesPercent())
}

// classFlags are the kubelet settings of the node class, where they are set.
func classFlags(k *nodeclass.Kubelet) []string {
	var out []string
	text := func(flag, value string) {
		if value != "" {
			out = append(out, "--"+flag+"="+value)
		}
	}
	text("cpu-manager-policy", k.CPUManagerPolicy)
	text("cpu-cfs-quota", show(k.CPUCFSQuota))
	text("cpu-cfs-quota-period", k.CPUCFSQuotaPeriod)
	text("image-gc-high-threshold", show(k.ImageGCHighThresholdPercent))
	text("image-gc-low-threshold", show(k.ImageGCLowThresholdPercent))
	text("topology-manager-policy", k.TopologyManagerPolicy)
	text("allowed-unsafe-sysctls", strings.Join(k.AllowedUnsafeSysctls, ","))
	text("container-log-max-size", k.ContainerLogMaxSize)
	text("container-log-max-files", show(k.ContainerLogMaxFiles))
	text("pod-max-pids", show(k.PodPidsLimit))
	text("fail-swap-on", show(k.FailSwapOn))
	return out
}

// show prints a value that may be unset as empty.
func show[T any](p *T) string {
	if p == nil {
		return ""
	}
	return fmt.Sprint(*p)
}
