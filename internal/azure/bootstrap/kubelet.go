package bootstrap

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Kubernetes minor versions at which the kubelet's command line changes. They are
// those at which Azure/karpenter-provider-azure, pkg/providers/imagefamily/bootstrap,
// changes it; from 34 on the node itself takes the streaming timeout away
// (Azure/AgentBaker, aks-node-controller/parser).
const (
	oldestMinor               = 28 // the images carry none older
	fromCredentialProvider    = 30
	fromNoTerminatedVolumes   = 31
	fromPackagedCredentials   = 33
	fromNoCloudConfig         = 34
	fromPackagedKubelet       = 34
	fromNoStreamingTimeout    = 34
	fromNoPodInfraImage       = 35
	credentialProviderDir     = "/var/lib/kubelet/credential-provider"
	credentialProviderConfig  = "/var/lib/kubelet/credential-provider-config.yaml"
	azureConfig               = "/etc/kubernetes/azure.json"
	defaultImageGCHighPercent = 85
	defaultImageGCLowPercent  = 80
)

// unregistered keeps pods away from a node until its claim has taken it over.
func unregistered() model.Taint {
	return model.Taint{Key: "karpenter.sh/unregistered", Effect: model.NoExecute}
}

// cipherSuites are those that AKS allows its kubelets.
func cipherSuites() []string {
	return []string{
		"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
		"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
		"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
		"TLS_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_GCM_SHA256",
	}
}

// kubeletFlags is the kubelet's command line: what AKS gives every node of the
// version, what the node was planned with, and the class's settings on top.
func kubeletFlags(n *Node, minor int, clusterDNS string) map[string]string {
	flags := map[string]string{
		"--address":                      "0.0.0.0",
		"--anonymous-auth":               "false",
		"--authentication-token-webhook": "true",
		"--authorization-mode":           "Webhook",
		"--cgroups-per-qos":              "true",
		"--client-ca-file":               "/etc/kubernetes/certs/ca.crt",
		"--cloud-provider":               "external",
		"--cluster-dns":                  clusterDNS,
		"--cluster-domain":               "cluster.local",
		"--enforce-node-allocatable":     "pods",
		"--event-qps":                    "0",
		"--eviction-hard": fmt.Sprintf("memory.available<%dMi,nodefs.available<%d%%,nodefs.inodesFree<%d%%",
			n.Eviction.MemoryMiB, n.Eviction.DiskPercent, n.Eviction.InodesPercent),
		"--image-gc-high-threshold":      strconv.Itoa(defaultImageGCHighPercent),
		"--image-gc-low-threshold":       strconv.Itoa(defaultImageGCLowPercent),
		"--kube-reserved":                fmt.Sprintf("cpu=%dm,memory=%dMi", n.Reserved.CPUMillis, n.Reserved.MemoryMiB),
		"--kubeconfig":                   "/var/lib/kubelet/kubeconfig",
		"--max-pods":                     strconv.Itoa(n.MaxPods),
		"--node-status-update-frequency": "10s",
		"--pod-manifest-path":            "/etc/kubernetes/manifests",
		"--pod-max-pids":                 "-1",
		"--protect-kernel-defaults":      "true",
		"--read-only-port":               "0",
		"--register-with-taints":         strings.Join(taintFlags(n.Taints), ","),
		"--resolv-conf":                  "/run/systemd/resolve/resolv.conf",
		"--rotate-certificates":          "true",
		"--tls-cert-file":                "/etc/kubernetes/certs/kubeletserver.crt",
		"--tls-cipher-suites":            strings.Join(cipherSuites(), ","),
		"--tls-private-key-file":         "/etc/kubernetes/certs/kubeletserver.key",
	}
	if n.ProviderID != "" {
		flags["--provider-id"] = n.ProviderID
	}
	addVersionFlags(flags, minor)
	maps.Copy(flags, classFlags(&n.Kubelet))
	return flags
}

// addVersionFlags adds what only some versions of the kubelet know.
func addVersionFlags(flags map[string]string, minor int) {
	if minor >= fromCredentialProvider {
		flags["--image-credential-provider-bin-dir"] = credentialProviderDir
		flags["--image-credential-provider-config"] = credentialProviderConfig
	} else {
		// The kubelet itself signs in to Azure's registries.
		flags["--feature-gates"] = "DisableKubeletCloudCredentialProviders=false"
		flags["--azure-container-registry-config"] = azureConfig
	}
	if minor < fromNoTerminatedVolumes {
		flags["--keep-terminated-pod-volumes"] = "false"
	}
	if minor < fromNoCloudConfig {
		flags["--cloud-config"] = azureConfig
	}
	if minor < fromNoStreamingTimeout {
		flags["--streaming-connection-idle-timeout"] = "4h"
	}
	if minor < fromNoPodInfraImage {
		flags["--pod-infra-container-image"] = podInfraImage
	}
}

// classFlags are the kubelet settings of the node class, where they are set.
func classFlags(k *Kubelet) map[string]string {
	out := map[string]string{}
	text := func(flag, value string) {
		if value != "" {
			out["--"+flag] = value
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

// taintFlags are the node's taints, each once, as kubelets take them.
func taintFlags(taints []model.Taint) []string {
	out := []string{unregistered().String()}
	for _, t := range taints {
		if text := t.String(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// longestLabelKey is the length to which the node cuts the keys of labels, prefix
// included (Azure/AgentBaker, cse_config.sh, validateKubeletNodeLabels).
const longestLabelKey = 63

// kubeletLabels are the labels that the kubelet gives its own node.
func kubeletLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if MayLabelItself(key) && len(key) <= longestLabelKey {
			out[key] = value
		}
	}
	return out
}

// wellKnownLabels are those of Kubernetes' own domains that kubelets and the cloud
// node manager write.
var wellKnownLabels = regexp.MustCompile(`^(kubernetes\.io/(hostname|os|arch)|beta\.kubernetes\.io/(os|arch|instance-type)|` +
	`node\.kubernetes\.io/instance-type|(topology|failure-domain\.beta)\.kubernetes\.io/(zone|region))$`)

// WellKnownLabel reports whether kubelets and the cloud node manager write the label
// by themselves.
func WellKnownLabel(key string) bool { return wellKnownLabels.MatchString(key) }

// MayLabelItself reports whether the API server lets a kubelet give its node the
// label: in Kubernetes' own domains well-known labels and two prefixes alone
// (admission plugin NodeRestriction).
func MayLabelItself(key string) bool {
	if WellKnownLabel(key) {
		return true
	}
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return true
	}
	within := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	if within("kubelet.kubernetes.io") || within("node.kubernetes.io") {
		return true
	}
	return !within("kubernetes.io") && !within("k8s.io")
}
