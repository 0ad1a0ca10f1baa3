package bootresult

import "slices"

// Code is an exit code of a node's provisioning.
type Code struct {
	// Number is the exit code, Name what AKS's scripts call it.
	Number int
	Name   string
	// Meaning says what did not work, Remedy what to do about it; Remedy is empty where
	// nothing better is known than to read the last lines.
	Meaning, Remedy string
}

// CodeOf is the row of an exit code; false for one that the table lacks.
func CodeOf(number int) (Code, bool) {
	codes := Codes()
	i := slices.IndexFunc(codes, func(c Code) bool { return c.Number == number })
	if i < 0 {
		return Code{}, false
	}
	return codes[i], true
}

// What helps against kinds of failures.
const (
	checkOutbound  = "allow the nodes' subnet what AKS requires outbound (firewall, route table, security group, proxy)"
	checkAPIServer = "check that the nodes' subnet reaches the API server on port 443 (security group, firewall, private cluster's network)"
	checkDNS       = "check the DNS servers of the virtual network; for a private cluster, that its private DNS zone is linked to that network"
	checkConfig    = "the boot data do not fit the image: pin a newer image, or none, in the AKSNodeClass"
	checkGPU       = "choose a size or image whose GPU driver AKS installs, or set spec.gpu.mode: None and bring a driver"
	checkProxy     = "check the certificates of the cluster's HTTP proxy and custom CA trust settings"
	checkDisk      = "make spec.osDiskSizeGB larger or the swap file smaller"
	checkRegistry  = "check that the kubelet identity may pull from the cluster's bootstrap registry"
	checkLocalDNS  = "check spec.localDNS of the AKSNodeClass, or set its mode to Disabled"
)

// Codes are the exit codes of AKS's node images, by number.
func Codes() []Code {
	return []Code{
		{1, "", "a command failed without a code of its own", ""},
		{2, "ERR_SYSTEMCTL_MASK_FAIL", "a service could not be masked", ""},
		{4, "ERR_SYSTEMCTL_START_FAIL", "a service could not be enabled or started", ""},
		{5, "ERR_CLOUD_INIT_TIMEOUT", "cloud-init did not finish in time", ""},
		{6, "ERR_FILE_WATCH_TIMEOUT", "a file that provisioning waits for did not come", checkConfig},
		{9, "ERR_APT_INSTALL_TIMEOUT", "packages could not be installed in time", checkOutbound},
		{10, "ERR_MISSING_CUDA_PACKAGE", "the packages of CUDA were not found", checkGPU},
		{26, "ERR_MS_GPG_KEY_DOWNLOAD_TIMEOUT", "the signing key of the package repository could not be downloaded", checkOutbound},
		{28, "ERR_CONTAINERD_INSTALL_TIMEOUT", "containerd could not be installed in time", checkOutbound},
		{29, "ERR_RUNC_INSTALL_TIMEOUT", "runc could not be installed in time", checkOutbound},
		{30, "ERR_K8S_RUNNING_TIMEOUT", "Kubernetes did not become healthy in time", ""},
		{31, "ERR_K8S_DOWNLOAD_TIMEOUT", "Kubernetes' programs could not be downloaded", checkOutbound},
		{32, "ERR_KUBECTL_NOT_FOUND", "the image has no kubectl", ""},
		{33, "ERR_IMG_DOWNLOAD_TIMEOUT", "a container image could not be downloaded", checkOutbound},
		{34, "ERR_KUBELET_START_FAIL", "the kubelet did not start",
			"check the kubelet settings of the AKSNodeClass and the labels and taints of the NodePool"},
		{36, "ERR_CONTAINERD_CTR_IMG_PULL_TIMEOUT", "a container image could not be pulled", checkOutbound},
		{37, "ERR_CONTAINERD_CRICTL_IMG_PULL_TIMEOUT", "a container image could not be pulled", checkOutbound},
		{38, "ERR_CONTAINERD_INSTALL_FILE_NOT_FOUND", "the package of containerd was not found", ""},
		{39, "ERR_CONTAINERD_VERSION_INVALID", "the version of containerd is invalid", checkConfig},
		{41, "ERR_CNI_DOWNLOAD_TIMEOUT", "the network plugins could not be downloaded", checkOutbound},
		{42, "ERR_MS_PROD_DEB_DOWNLOAD_TIMEOUT", "the package repository could not be reached", checkOutbound},
		{43, "ERR_MS_PROD_DEB_PKG_ADD_FAIL", "the package repository could not be added", ""},
		{45, "ERR_ORAS_DOWNLOAD_ERROR", "oras could not be installed", checkOutbound},
		{48, "ERR_SYSTEMD_INSTALL_FAIL", "the required version of systemd could not be installed", ""},
		{49, "ERR_MODPROBE_FAIL", "a kernel module could not be loaded", ""},
		{50, "ERR_OUTBOUND_CONN_FAIL", "the machine reaches nothing outside its network", checkOutbound},
		{51, "ERR_K8S_API_SERVER_CONN_FAIL", "the machine does not reach the API server", checkAPIServer},
		{52, "ERR_K8S_API_SERVER_DNS_LOOKUP_FAIL", "the API server's name could not be resolved", checkDNS},
		{53, "ERR_K8S_API_SERVER_AZURE_DNS_LOOKUP_FAIL", "the API server's name could not be resolved because Azure DNS failed", checkDNS},
		{60, "ERR_KATA_KEY_DOWNLOAD_TIMEOUT", "the signing key of Kata could not be downloaded", checkOutbound},
		{61, "ERR_KATA_APT_KEY_TIMEOUT", "the signing key of Kata could not be added", ""},
		{62, "ERR_KATA_INSTALL_TIMEOUT", "Kata could not be installed in time", checkOutbound},
		{65, "ERR_VHD_FILE_NOT_FOUND", "the image is not one of AKS's: a file that they have is missing", checkConfig},
		{70, "ERR_CONTAINERD_DOWNLOAD_TIMEOUT", "containerd could not be downloaded", checkOutbound},
		{71, "ERR_RUNC_DOWNLOAD_TIMEOUT", "runc could not be downloaded", checkOutbound},
		{80, "ERR_CUSTOM_SEARCH_DOMAINS_FAIL", "search domains could not be configured", ""},
		{83, "ERR_GPU_DOWNLOAD_TIMEOUT", "the GPU driver could not be downloaded", checkOutbound},
		{84, "ERR_GPU_DRIVERS_START_FAIL", "the GPU driver did not start", checkGPU},
		{85, "ERR_GPU_DRIVERS_INSTALL_TIMEOUT", "the GPU driver could not be installed in time", checkGPU},
		{86, "ERR_GPU_DEVICE_PLUGIN_START_FAIL", "the GPU device plugin did not start", checkGPU},
		{87, "ERR_GPU_INFO_ROM_CORRUPTED", "the GPU reports a corrupted info ROM: the hardware is faulty", ""},
		{90, "ERR_SGX_DRIVERS_INSTALL_TIMEOUT", "what the SGX driver needs could not be downloaded", checkOutbound},
		{91, "ERR_SGX_DRIVERS_START_FAIL", "the SGX driver did not start", ""},
		{95, "ERR_AMDAMA_DRIVER_NOT_FOUND", "there is no AMD AMA driver for the image's kernel", ""},
		{96, "ERR_AMDAMA_INSTALL_FAIL", "the AMD AMA driver could not be installed", ""},
		{98, "ERR_APT_DAILY_TIMEOUT", "the daily package update did not end in time", ""},
		{99, "ERR_APT_UPDATE_TIMEOUT", "the list of packages could not be updated in time", checkOutbound},
		{100, "ERR_CSE_PROVISION_SCRIPT_NOT_READY_TIMEOUT", "cloud-init did not place the provisioning script in time", checkConfig},
		{101, "ERR_APT_DIST_UPGRADE_TIMEOUT", "packages could not be upgraded in time", checkOutbound},
		{102, "ERR_APT_PURGE_FAIL", "packages could not be removed", ""},
		{103, "ERR_SYSCTL_RELOAD", "kernel parameters could not be set", "check spec.linuxOSConfig.sysctls of the AKSNodeClass"},
		{111, "ERR_CIS_ASSIGN_ROOT_PW", "the root password could not be set", ""},
		{112, "ERR_CIS_ASSIGN_FILE_PERMISSION", "permissions of a file could not be set", ""},
		{115, "ERR_CIS_APPLY_PASSWORD_CONFIG", "password rules could not be applied", ""},
		{117, "ERR_CRICTL_DOWNLOAD_TIMEOUT", "crictl could not be downloaded", checkOutbound},
		{118, "ERR_CRICTL_OPERATION_ERROR", "an operation of crictl failed", ""},
		{119, "ERR_CTR_OPERATION_ERROR", "an operation of ctr failed", ""},
		{120, "ERR_INVALID_CLI_TOOL", "a tool for containers is not known", ""},
		{121, "ERR_KUBELET_INSTALL_FAIL", "the kubelet could not be installed", checkOutbound},
		{122, "ERR_KUBECTL_INSTALL_FAIL", "kubectl could not be installed", checkOutbound},
		{123, "ERR_ENABLE_MANAGED_GPU_EXPERIENCE", "the managed GPU experience could not be configured", checkGPU},
		{124, "", "provisioning took longer than its time limit of 15 minutes", "read the last lines: the step that hangs is there"},
		{128, "ERR_NODE_EXPORTER_START_FAIL", "the node exporter did not start", ""},
		{129, "ERR_DRA_DRIVER_START_FAIL", "the DRA driver of the GPU did not start", checkGPU},
		{130, "ERR_SWAP_CREATE_FAIL", "the swap file could not be made", checkDisk},
		{131, "ERR_SWAP_CREATE_INSUFFICIENT_DISK_SPACE", "the disk has no room for the swap file", checkDisk},
		{152, "ERR_ARTIFACT_STREAMING_DOWNLOAD", "the programs of artifact streaming could not be downloaded", checkOutbound},
		{153, "ERR_ARTIFACT_STREAMING_INSTALL", "the programs of artifact streaming could not be installed",
			"set spec.artifactStreaming.mode: Disabled"},
		{154, "ERR_ARTIFACT_STREAMING_ACR_NODEMON_START_FAIL", "the service of artifact streaming did not start",
			"set spec.artifactStreaming.mode: Disabled"},
		{160, "ERR_HTTP_PROXY_CA_CONVERT", "the certificate of the HTTP proxy could not be converted", checkProxy},
		{161, "ERR_UPDATE_CA_CERTS", "the custom certificates could not be added", checkProxy},
		{169, "ERR_SECURE_TLS_BOOTSTRAP_CLIENT_DOWNLOAD_ERROR", "the client of secure TLS bootstrapping could not be downloaded", checkOutbound},
		{170, "ERR_DISBALE_IPTABLES", "the iptables service could not be disabled", ""}, //nolint:misspell // AKS spells it so
		{172, "ERR_DISABLE_SSH", "the SSH service could not be disabled", ""},
		{173, "ERR_PRIMARY_NIC_IP_NOT_FOUND", "the machine found no address of its own", ""},
		{174, "ERR_INSERT_IMDS_RESTRICTION_RULE_INTO_MANGLE_TABLE", "the instance metadata service could not be restricted", ""},
		{175, "ERR_INSERT_IMDS_RESTRICTION_RULE_INTO_FILTER_TABLE", "the instance metadata service could not be restricted", ""},
		{176, "ERR_DELETE_IMDS_RESTRICTION_RULE_FROM_MANGLE_TABLE", "the instance metadata service could not be opened", ""},
		{177, "ERR_DELETE_IMDS_RESTRICTION_RULE_FROM_FILTER_TABLE", "the instance metadata service could not be opened", ""},
		{178, "ERR_CONFIG_PUBKEY_AUTH_SSH", "SSH could not be configured", ""},
		{202, "ERR_SNAPSHOT_UPDATE_START_FAIL", "the service of package snapshots did not start", ""},
		{203, "ERR_PRIVATE_K8S_PKG_ERR", "the private package of Kubernetes could not be extracted", ""},
		{204, "ERR_K8S_INSTALL_ERR", "Kubernetes' programs could not be installed", ""},
		{205, "ERR_CREDENTIAL_PROVIDER_DOWNLOAD_TIMEOUT", "the credential provider could not be downloaded", checkOutbound},
		{206, "ERR_CNI_VERSION_INVALID", "the version of the network plugins is invalid", ""},
		{207, "ERR_ORAS_PULL_K8S_FAIL", "Kubernetes' programs could not be pulled from the registry", checkRegistry},
		{208, "ERR_ORAS_PULL_CREDENTIAL_PROVIDER", "the credential provider could not be pulled from the registry", checkRegistry},
		{210, "ERR_ORAS_IMDS_TIMEOUT", "the instance metadata service did not answer", ""},
		{211, "ERR_ORAS_PULL_NETWORK_TIMEOUT", "the registry could not be reached", checkOutbound},
		{212, "ERR_ORAS_PULL_UNAUTHORIZED", "the registry refused the machine", checkRegistry},
		{213, "ERR_LOOKUP_DISABLE_KUBELET_SERVING_CERTIFICATE_ROTATION_TAG", "the machine's tags could not be read", ""},
		{214, "ERR_CLEANUP_CONTAINER_IMAGES", "container images that are not needed could not be removed", ""},
		{215, "ERR_DNS_HEALTH_FAIL", "DNS does not answer", checkDNS},
		{216, "ERR_LOCALDNS_FAIL", "LocalDNS did not start", checkLocalDNS},
		{217, "ERR_LOCALDNS_COREFILE_NOTFOUND", "LocalDNS has no configuration", checkLocalDNS},
		{218, "ERR_LOCALDNS_SLICEFILE_NOTFOUND", "LocalDNS has no resource limits", checkLocalDNS},
		{219, "ERR_LOCALDNS_BINARY_ERR", "the image has no program of LocalDNS", checkLocalDNS},
		{220, "ERR_SECURE_TLS_BOOTSTRAP_ENABLE_FAILURE", "secure TLS bootstrapping did not start", ""},
		{223, "ERR_CLOUD_INIT_FAILED", "cloud-init failed", ""},
		{224, "ERR_NVIDIA_DRIVER_INSTALL", "whether to install NVIDIA's driver could not be found out", checkGPU},
		{225, "ERR_NVIDIA_GPG_KEY_DOWNLOAD_TIMEOUT", "NVIDIA's signing key could not be downloaded", checkOutbound},
		{226, "ERR_NVIDIA_AZURELINUX_REPO_FILE_DOWNLOAD_TIMEOUT", "NVIDIA's package repository could not be reached", checkOutbound},
		{227, "ERR_MANAGED_NVIDIA_EXP_INSTALL_FAIL", "packages of the managed GPU experience could not be installed", checkGPU},
		{228, "ERR_NVIDIA_DCGM_FAIL", "NVIDIA DCGM did not start", checkGPU},
		{229, "ERR_NVIDIA_DCGM_EXPORTER_FAIL", "the NVIDIA DCGM exporter did not start", checkGPU},
		{230, "ERR_LOOKUP_ENABLE_MANAGED_GPU_EXPERIENCE_TAG", "the machine's tags could not be read", ""},
		{231, "ERR_ORAS_PULL_SYSEXT_FAIL", "a system extension could not be pulled from the registry", checkRegistry},
		{232, "ERR_SYSEXT_VERSION_ID_NOT_FOUND", "the image does not say its version", ""},
		{233, "ERR_PULL_POD_INFRA_CONTAINER_IMAGE", "the pause image could not be pulled", checkOutbound},
		{234, "ERR_IMDS_FETCH_FAILED", "the instance metadata service did not answer", ""},
		{235, "ERR_NVIDIA_DCGM_INSTALL", "packages of the managed GPU experience could not be installed", checkGPU},
		{240, "ERR_AKS_NODE_CONTROLLER_ERROR", "the node's program refused its configuration", checkConfig},
		{241, "ERR_AZNFS_RPM_DOWNLOAD_TIMEOUT", "the package of aznfs could not be downloaded", checkOutbound},
		{242, "ERR_AZNFS_INSTALL_FAIL", "the package of aznfs could not be installed", ""},
		{243, "ERR_SECONDARY_NIC_CONFIG_FAIL", "a second network interface could not be configured", ""},
	}
}
