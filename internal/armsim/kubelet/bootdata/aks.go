package bootdata

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/textproto"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/kubeletflags"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/nodeconfig"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
)

// AKSNode is what AKS knows when it writes the boot data of an agent pool's machine
// itself: how to reach the cluster, and what the pool or the machine API was told.
type AKSNode struct {
	APIServer      string // host name of the API server
	CA             []byte // PEM
	Token          string
	SubscriptionID string
	ResourceGroup  string // of the nodes
	Location       string

	Pool        string
	Mode        string // System or User
	Spot        bool
	Labels      map[string]string
	Taints      []string // key=value:effect
	MaxPods     int
	Version     string // of Kubernetes
	NodeImage   string // such as AKSUbuntu-2404gen2containerd-202606.09.0, empty where it is not known
	ClusterDNS  string
	NoGPUDriver bool
	ManagedGPU  bool

	VMSize      string
	VCPUs       int64
	MemoryBytes int64
	NvidiaGPUs  bool // the size has some
}

// CustomData is what the machine boots from. AKS adds the labels of its own domain and the
// reservations that it publishes.
func (n AKSNode) CustomData() ([]byte, error) {
	labels := map[string]string{
		"agentpool": n.Pool, "kubernetes.azure.com/agentpool": n.Pool, "kubernetes.azure.com/role": "agent",
		"kubernetes.azure.com/mode": strings.ToLower(n.Mode), "kubernetes.azure.com/cluster": n.ResourceGroup,
	}
	if n.Spot {
		labels["kubernetes.azure.com/scalesetpriority"] = "spot"
	}
	if n.NodeImage != "" {
		labels["kubernetes.azure.com/node-image-version"] = n.NodeImage
	}
	maps.Copy(labels, n.Labels)
	driver := n.NvidiaGPUs && !n.NoGPUDriver
	c := nodeconfig.Configuration{
		Version: nodeconfig.Version, KubernetesVersion: strings.TrimPrefix(n.Version, "v"), VMSize: n.VMSize,
		KubernetesCACert: base64.StdEncoding.EncodeToString(n.CA),
		APIServerConfig:  nodeconfig.APIServerConfig{APIServerName: n.APIServer},
		AuthConfig:       nodeconfig.AuthConfig{SubscriptionID: n.SubscriptionID},
		BootstrappingConfig: nodeconfig.BootstrappingConfig{
			BootstrappingAuthMethod: "BOOTSTRAPPING_AUTH_METHOD_BOOTSTRAP_TOKEN",
			ClusterJoinMethod:       "CLUSTER_JOIN_METHOD_USE_BOOTSTRAPPING_AUTH", TLSBootstrappingToken: &n.Token,
		},
		KubeletConfig: nodeconfig.KubeletConfig{KubeletNodeLabels: labels, KubeletFlags: n.flags()},
		GPUConfig:     nodeconfig.GPUConfig{EnableNvidia: &driver, ConfigGPUDriver: driver, EnableManagedGPU: driver && n.ManagedGPU},
		// The name that images carry it by (Azure/AgentBaker, parts/common/components.json).
		KubeBinaryConfig: nodeconfig.KubeBinaryConfig{PodInfraContainerImageURL: "mcr.microsoft.com/oss/v2/kubernetes/pause:3.10.2"},
	}
	c.ClusterConfig.ResourceGroup, c.ClusterConfig.Location = n.ResourceGroup, n.Location
	c.ClusterConfig.ClusterNetworkConfig.VNetName = "aks-vnet"
	c.ClusterConfig.ClusterNetworkConfig.RouteTable = "aks-agentpool-routetable"
	config, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("boot data of a machine of agent pool %s: %w", n.Pool, err)
	}
	return customData(config)
}

// flags are those with which AKS starts the kubelet.
func (n AKSNode) flags() map[string]string {
	const gibibyte = 1 << 30
	flags := map[string]string{
		"--address": "0.0.0.0", "--anonymous-auth": "false", "--authentication-token-webhook": "true",
		"--authorization-mode": "Webhook", "--client-ca-file": kubeletflags.CAFile, "--cloud-provider": "external",
		"--cluster-domain": "cluster.local", "--event-qps": "0", "--max-pods": fmt.Sprint(n.MaxPods),
		"--kube-reserved": fmt.Sprintf("cpu=%dm,memory=%dMi", instancetype.KubeReservedCPU(n.VCPUs),
			instancetype.KubeReservedMemoryMiB(float64(n.MemoryBytes)/gibibyte)),
		"--eviction-hard":  fmt.Sprintf("memory.available<%dMi", instancetype.EvictionMemoryMiB()),
		"--read-only-port": "0", "--rotate-certificates": "true",
	}
	if len(n.Taints) > 0 {
		flags["--register-with-taints"] = strings.Join(n.Taints, ",")
	}
	if n.ClusterDNS != "" {
		flags["--cluster-dns"] = n.ClusterDNS
	}
	return flags
}

// boothook is the script that writes the configuration and starts the program that reads
// it.
const boothook = `#cloud-boothook
#!/bin/bash
set -euo pipefail
mkdir -p /opt/azure/containers
cat <<'END' | base64 -d >%[1]s
%[2]s
END
chmod 0600 %[1]s
nohup /bin/bash %[3]s >/dev/null 2>&1 &
`

// customData puts a configuration into the MIME document that cloud-init unpacks.
func customData(config []byte) ([]byte, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	script := fmt.Sprintf(boothook, configFile, base64.StdEncoding.EncodeToString(config), launcher)
	for _, part := range [][2]string{{"text/cloud-boothook", script}, {"text/cloud-config", "#cloud-config\n{}\n"}} {
		p, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {part[0]}, "Mime-Version": {"1.0"}})
		if err != nil {
			return nil, fmt.Errorf("custom data: %w", err)
		}
		if _, err := p.Write([]byte(part[1])); err != nil {
			return nil, fmt.Errorf("custom data: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("custom data: %w", err)
	}
	head := fmt.Appendf(nil, "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=%q\r\n\r\n", w.Boundary())
	return append(head, body.Bytes()...), nil
}
