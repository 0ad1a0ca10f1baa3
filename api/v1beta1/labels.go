package v1beta1

// Label domains of nap and of AKS.
const (
	LabelDomain    = Group
	AKSLabelDomain = "kubernetes.azure.com"
)

const (
	// LabelNodeClass names the AKSNodeClass of a node or NodeClaim.
	LabelNodeClass = Group + "/aksnodeclass"
	// LabelKubeletIdentity is the client id of the identity with which a node's
	// kubelet pulls images. AKS's name.
	LabelKubeletIdentity = AKSLabelDomain + "/kubelet-identity-client-id"
)

// Labels of objects that belong to the controller itself.
const (
	// LabelFeature is on roles that only one feature of the controller needs; the
	// value is the feature's name.
	LabelFeature = "nap.azure.com/feature"
)

// RequirementLabels lists the labels of the domain karpenter.azure.com that
// NodePools and pods may select on.
func RequirementLabels() []string {
	return []string{
		LabelNodeClass,
		Group + "/sku-name",
		Group + "/sku-family",
		Group + "/sku-series",
		Group + "/sku-version",
		Group + "/sku-cpu",
		Group + "/sku-memory",
		Group + "/sku-networking-accelerated",
		Group + "/sku-storage-premium-capable",
		Group + "/sku-storage-ultra-ssd",
		Group + "/sku-storage-ephemeralos-maxsize",
		Group + "/sku-gpu-name",
		Group + "/sku-gpu-manufacturer",
		Group + "/sku-gpu-count",
		Group + "/placement-scope",
	}
}

// AKSRequirementLabels lists the labels of the domain kubernetes.azure.com that
// NodePools and pods may select on.
func AKSRequirementLabels() []string {
	return []string{
		AKSLabelDomain + "/mode",
		AKSLabelDomain + "/scalesetpriority",
		AKSLabelDomain + "/priority",
		AKSLabelDomain + "/fips_enabled",
		AKSLabelDomain + "/os-sku",
		AKSLabelDomain + "/cluster",
		AKSLabelDomain + "/sku-cpu",
		AKSLabelDomain + "/sku-memory",
		AKSLabelDomain + "/ebpf-dataplane",
		AKSLabelDomain + "/ebpf-host-routing",
		AKSLabelDomain + "/network-policy",
		AKSLabelDomain + "/hostedvm",
	}
}

// LegacyLabels are the labels of AKS that are older than its label domain. AKS alone
// sets them, so that NodePools must not ask for them.
func LegacyLabels() []string {
	return []string{"agentpool", "storageprofile", "storagetier", "accelerator"}
}

// PreviewLabelDomain is the domain of the labels that AKS had for sizes in its preview.
const PreviewLabelDomain = "karpenter.k8s.azure"

// PreviewLabels are the labels of the preview without their domain, each with what says
// the same today.
func PreviewLabels() [][2]string {
	const group = Group + "/"
	return [][2]string{
		{"sku-name", group + "sku-name"},
		{"sku-series", group + "sku-series, as Ds_v3 for DSv3"},
		{"sku-cpu", group + "sku-cpu with operator Gt and one less: it was the least"},
		{"sku-memory", group + "sku-memory in MiB with operator Gt and one less: it was the least"},
		{"sku-gpu-count", group + "sku-gpu-count with operator Gt and one less: it was the least"},
		{"sku-gpu-memory", group + "sku-gpu-name with the names of GPUs that have as much"},
	}
}
