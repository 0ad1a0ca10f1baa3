package nodeconfig

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Version is the only version of the contract.
const Version = "v1"

// Configuration is what of AKSNodeConfig decides whether and as what a machine joins. Its
// fields are those of the contract, under the same names.
type Configuration struct {
	Version             string              `json:"version"`
	KubernetesVersion   string              `json:"kubernetes_version"`
	KubernetesCACert    string              `json:"kubernetes_ca_cert"` // base64 of PEM
	VMSize              string              `json:"vm_size"`
	PreProvisionOnly    bool                `json:"pre_provision_only"`
	APIServerConfig     APIServerConfig     `json:"api_server_config"`
	AuthConfig          AuthConfig          `json:"auth_config"`
	ClusterConfig       ClusterConfig       `json:"cluster_config"`
	BootstrappingConfig BootstrappingConfig `json:"bootstrapping_config"`
	KubeletConfig       KubeletConfig       `json:"kubelet_config"`
	GPUConfig           GPUConfig           `json:"gpu_config"`
	KubeBinaryConfig    KubeBinaryConfig    `json:"kube_binary_config"`
}

// APIServerConfig says where the API server is.
type APIServerConfig struct {
	APIServerName string `json:"api_server_name"` // host name or IP address alone
}

// AuthConfig says who the node is in Azure.
type AuthConfig struct {
	SubscriptionID string `json:"subscription_id"`
}

// ClusterConfig says where the node is in Azure.
type ClusterConfig struct {
	ResourceGroup        string `json:"resource_group"`
	Location             string `json:"location"`
	ClusterNetworkConfig struct {
		VNetName   string `json:"vnet_name"`
		RouteTable string `json:"route_table"`
	} `json:"cluster_network_config"`
}

// BootstrappingConfig says by what the node may ask for its certificate.
type BootstrappingConfig struct {
	BootstrappingAuthMethod string  `json:"bootstrapping_auth_method"`
	ClusterJoinMethod       string  `json:"cluster_join_method"`
	TLSBootstrappingToken   *string `json:"tls_bootstrapping_token"`
}

// KubeletConfig is how the kubelet is started.
type KubeletConfig struct {
	KubeletFlags            map[string]string `json:"kubelet_flags"` // with their dashes
	KubeletNodeLabels       map[string]string `json:"kubelet_node_labels"`
	EnableKubeletConfigFile bool              `json:"enable_kubelet_config_file"`
	KubeletConfigFileConfig *ConfigFile       `json:"kubelet_config_file_config"`
}

// ConfigFile is what of the kubelet's configuration file decides what a node looks like.
type ConfigFile struct {
	ReadOnlyPort   int32    `json:"read_only_port"`
	ClusterDNS     []string `json:"cluster_dns"`
	MaxPods        *int32   `json:"max_pods"`
	Authentication struct {
		X509 struct {
			ClientCAFile string `json:"client_ca_file"`
		} `json:"x509"`
		Webhook struct {
			Enabled bool `json:"enabled"`
		} `json:"webhook"`
		Anonymous struct {
			Enabled bool `json:"enabled"`
		} `json:"anonymous"`
	} `json:"authentication"`
	Authorization struct {
		Mode string `json:"mode"`
	} `json:"authorization"`
	EvictionHard   map[string]string `json:"eviction_hard"`
	SystemReserved map[string]string `json:"system_reserved"`
	KubeReserved   map[string]string `json:"kube_reserved"`
}

// GPUConfig says what the image does for GPUs.
type GPUConfig struct {
	EnableNvidia     *bool `json:"enable_nvidia"`
	ConfigGPUDriver  bool  `json:"config_gpu_driver"`
	EnableManagedGPU bool  `json:"enable_managed_gpu"`
}

// KubeBinaryConfig says which container holds the network of a pod.
type KubeBinaryConfig struct {
	PodInfraContainerImageURL string `json:"pod_infra_container_image_url"`
}

// Parse decodes a configuration. As on the node, what could be read before an error counts:
// the program there logs the error and goes on.
func Parse(data []byte) (Configuration, error) {
	descriptor, err := configuration()
	if err != nil {
		return Configuration{}, err
	}
	message := dynamicpb.NewMessage(descriptor)
	bad := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, message)
	plain, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return Configuration{}, fmt.Errorf("AKSNodeConfig: %w", err)
	}
	var c Configuration
	if err := json.Unmarshal(plain, &c); err != nil {
		return Configuration{}, fmt.Errorf("AKSNodeConfig: %w", err)
	}
	return c, bad
}

// Validate says what keeps the node's program from starting the boot.
func (c *Configuration) Validate() error {
	if c.Version != Version {
		return fmt.Errorf("unsupported version: %s", c.Version)
	}
	for _, required := range []struct{ field, value string }{
		{"auth_config.subscription_id", c.AuthConfig.SubscriptionID},
		{"cluster_config.resource_group", c.ClusterConfig.ResourceGroup},
		{"cluster_config.location", c.ClusterConfig.Location},
		{"cluster_config.cluster_network_config.vnet_name", c.ClusterConfig.ClusterNetworkConfig.VNetName},
		{"cluster_config.cluster_network_config.route_table", c.ClusterConfig.ClusterNetworkConfig.RouteTable},
		{"api_server_config.api_server_name", c.APIServerConfig.APIServerName},
	} {
		if required.value == "" {
			return fmt.Errorf("required field %s is missing", required.field)
		}
	}
	return nil
}
