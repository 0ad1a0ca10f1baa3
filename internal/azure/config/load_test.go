package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
)

// kubeletClient is the client id of the kubelets' identity.
const kubeletClient = "00000000-0000-0000-0000-000000000009"

func good() map[string]string {
	return map[string]string{
		"CLUSTER_NAME": "c", "CLUSTER_ENDPOINT": "https://c.test:443", "KUBELET_BOOTSTRAP_TOKEN": "abcdef.0123456789abcdef",
		"SSH_PUBLIC_KEY": "ssh-rsa AAAA", "AZURE_SUBSCRIPTION_ID": "s", "LOCATION": "EastUS", "AZURE_NODE_RESOURCE_GROUP": "MC_c",
		"VNET_SUBNET_ID":             "/subscriptions/s/resourceGroups/MC_c/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet",
		"NODE_IDENTITIES":            "/subscriptions/s/resourceGroups/MC_c/providers/Microsoft.ManagedIdentity/userAssignedIdentities/c-agentpool",
		"KUBELET_IDENTITY_CLIENT_ID": kubeletClient,
	}
}

// load reads variables of a cluster that cannot be asked.
func load(vars map[string]string, files map[string]string) (Config, error) {
	c, err := read(vars, files)
	if err != nil {
		return c, err
	}
	return c.Learn(nil, "")
}

func read(vars map[string]string, files map[string]string) (Config, error) {
	return Load(func(name string) (string, bool) { v, set := vars[name]; return v, set }, func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("no such file")
	})
}

func TestLoadDefaultsMatchAKS(t *testing.T) {
	c, err := load(good(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Location != "eastus" || c.AdminUsername != "azureuser" || c.NetworkPlugin != "azure" || c.NetworkPluginMode != "overlay" ||
		c.NetworkDataplane != "cilium" || c.DNSServiceIP != "" || c.VMMemoryOverhead != 0.075 || c.LaunchSettle != 15*time.Second ||
		c.Cloud.Name != CloudPublic || !c.Cloud.BillsLinux() || !c.Cloud.HasRetailPrices() || c.DefaultMaxPods() != 250 {
		t.Errorf("loaded %+v", c)
	}
	if got := c.Cloud.Azure().Services[cloud.ResourceManager].Endpoint; got != "https://management.azure.com" {
		t.Errorf("endpoint %s", got)
	}
}

func TestLoadErrorNamesVariableAndAllowedValues(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"CLUSTER_NAME", "", "CLUSTER_NAME: must be set"},
		{"CLUSTER_ENDPOINT", "http://c", `"http://c" is not an https URL`},
		{"KUBELET_BOOTSTRAP_TOKEN", "secret", "abcdef.0123456789abcdef"},
		{"LINUX_ADMIN_USERNAME", "0root", "must start with a letter"},
		{"VNET_SUBNET_ID", "subnet", "VNET_SUBNET_ID"},
		{"NETWORK_PLUGIN", "kubenet", `allowed are ["" "azure" "none"]`},
		{"NETWORK_PLUGIN_MODE", "cloud", "NETWORK_PLUGIN_MODE"},
		{"NETWORK_DATAPLANE", "ebpf", "NETWORK_DATAPLANE"},
		{"NETWORK_POLICY", "deny", "NETWORK_POLICY"},
		{"VM_MEMORY_OVERHEAD_PERCENT", "-0.1", "fraction from 0"},
		{"VM_MEMORY_OVERHEAD_PERCENT", "7.5", "fraction from 0"},
		{"NAP_LAUNCH_SETTLE", "1h", "duration from 0s to 4m0s"},
		{"ADDITIONAL_TAGS", "a", `"a" is not of the form key=value`},
		{"ADDITIONAL_TAGS", "a/b=c", "must not contain"},
		{"ADDITIONAL_TAGS", "a=b,A=c", "there twice"},
		{"DNS_SERVICE_IP", "kube-dns", "is not an IP address"},
		{"VNET_GUID", "x", `VNET_GUID: "x" is not a UUID`},
		{"KUBELET_IDENTITY_CLIENT_ID", "00000000-0000-0000-0000-00000000000", "KUBELET_IDENTITY_CLIENT_ID: \"00000000-0000-0000-0000-00000000000\" is not a UUID"},
		{"NODE_IDENTITIES", "me", "userAssignedIdentities"},
		{"NODE_OSDISK_DISKENCRYPTIONSET_ID", "x", "diskEncryptionSets"},
		{"NODE_OSDISK_DISKENCRYPTIONSET_ID",
			"/subscriptions/other/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/keys", "it must be in the cluster's, s"},
		{"ARM_CLOUD", "Mars", "AzurePublicCloud"},
		{"NAP_SECURE_TLS_BOOTSTRAPPING", "on", `allowed are ["true" "false"]`},
		{"NAP_SECURE_TLS_AAD_RESOURCE", "6dae42f8-4368-4678-94ff-3960e28e3630", "NAP_SECURE_TLS_BOOTSTRAPPING is not true"},
		{"NAP_SECURE_TLS_AAD_RESOURCE", "a b", "is not an application id"},
		{"NAP_RESTRICT_IMDS", "None", `allowed are ["true" "false"]`},
		{"NAP_SSH_ACCESS", "false", `allowed are ["LocalUser" "Disabled"]`},
		{"NAP_PRIVATE_EGRESS_PROXY", "10.1.2.3 8443", "is not an address such as 10.1.2.3:8443"},
		{"NAP_BOOTSTRAP_REGISTRY", "https://prod.azurecr.io", "is not a host with the path of its copies"},
		{"NAP_BOOTSTRAP_REGISTRY", "prod", "is not a host with the path of its copies"},
		{"NAP_PACKAGES_URL", "packages.contoso.com", "is not an http or https URL"},
		{"PROVISION_MODE", "bootstrappingclient", `allowed are ["aksscriptless" "aksmachineapi" "aksmachineapiheaderbatch"]`},
		{"NODEBOOTSTRAPPING_SERVER_URL", "https://boot.test", "no PROVISION_MODE of nap asks such a server"},
		{"ENABLE_AZURE_SDK_LOGGING", "on", `allowed are ["true" "false"]`},
		{"PROVIDER_BATCH_MAX_SIZE", "51", "number from 1 to 50"},
		{"PROVIDER_BATCH_IDLE_DURATION", "1m", "duration from 0s to 30s"},
		{"MANAGE_EXISTING_AKS_MACHINES", "yes", `allowed are ["true" "false"]`},
		{"AZURE_ENVIRONMENT_FILEPATH", "/missing", "no such file"},
		{"AZURE_ENVIRONMENT_FILEPATH", "/broken", "not JSON"},
		{"AZURE_ENVIRONMENT_FILEPATH", "/plain", "field resourceManagerEndpoint must be an https URL"},
	}
	files := map[string]string{
		"/broken": "{", "/plain": `{"resourceManagerEndpoint": "http://arm.test", "activeDirectoryEndpoint": "https://login.test"}`,
	}
	for _, tt := range tests {
		vars := good()
		vars[tt.name] = tt.value
		if _, err := load(vars, files); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("%s=%q: %v, want %q", tt.name, tt.value, err, tt.want)
		}
	}
}

func TestLoadReportsAllErrorsAtOnce(t *testing.T) {
	expect := func(err error, names ...string) {
		t.Helper()
		for _, name := range names {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s is not in: %v", name, err)
			}
		}
	}
	_, err := load(map[string]string{}, nil)
	expect(err, "CLUSTER_NAME", "AZURE_SUBSCRIPTION_ID")
	_, err = load(map[string]string{"CLUSTER_NAME": "c", "AZURE_SUBSCRIPTION_ID": "s"}, nil)
	expect(err, "CLUSTER_ENDPOINT", "LOCATION", "VNET_SUBNET_ID", "AZURE_NODE_RESOURCE_GROUP", "SSH_PUBLIC_KEY",
		"KUBELET_IDENTITY_CLIENT_ID", "NODE_IDENTITIES", "ARM_RESOURCE_GROUP")
}

func TestLoadRefusesContradictions(t *testing.T) {
	for _, change := range []map[string]string{
		{"NETWORK_PLUGIN": "none", "NETWORK_PLUGIN_MODE": "overlay"},
		{"PROVISION_MODE": "aksmachineapi", "ARM_RESOURCE_GROUP": "rg"},
		{"PROVISION_MODE": "aksmachineapi", "AKS_MACHINES_POOL_NAME": "machines"},
		{"PROVISION_MODE": "aksmachineapi", "ARM_RESOURCE_GROUP": "rg", "AKS_MACHINES_POOL_NAME": "My-Pool"},
		{"USE_SIG": "true"},
		{"SIG_SUBSCRIPTION_ID": "s"},
		{"SIG_ACCESS_TOKEN_SERVER_URL": "https://tokens.test"},
		{"USE_SIG": "true", "SIG_SUBSCRIPTION_ID": "s", "SIG_ACCESS_TOKEN_SERVER_URL": "tokens.test"},
		{"USE_SIG": "true", "SIG_SUBSCRIPTION_ID": "s", "SIG_ACCESS_TOKEN_SERVER_URL": "http://tokens.test"},
		{"ARM_CLOUD": "AzurePublicCloud", "AZURE_ENVIRONMENT_FILEPATH": "/env"},
	} {
		vars := good()
		for k, v := range change {
			vars[k] = v
		}
		if _, err := load(vars, map[string]string{"/env": "{}"}); err == nil {
			t.Errorf("%v was accepted", change)
		}
	}
}

func TestLoadCustomCloudEndpoints(t *testing.T) {
	vars := good()
	vars["AZURE_ENVIRONMENT_FILEPATH"] = "/env"
	vars["NAP_RETAIL_PRICES"] = "https://127.0.0.1:8443/api/retail/prices"
	c, err := load(vars, map[string]string{"/env": `{"name": "lab", "resourceManagerEndpoint": "https://127.0.0.1:8443",
		"activeDirectoryEndpoint": "https://127.0.0.1:8443", "tokenAudience": "https://management.azure.com", "managementPortalURL": "x"}`})
	if err != nil {
		t.Fatal(err)
	}
	if want := `"managementPortalURL":"x"}`; !strings.HasSuffix(string(c.Cloud.Environment.Document), want) {
		t.Errorf("machines are told %s, which does not end with %s", c.Cloud.Environment.Document, want)
	}
	az := c.Cloud.Azure()
	if az.ActiveDirectoryAuthorityHost != "https://127.0.0.1:8443" ||
		az.Services[cloud.ResourceManager].Audience != "https://management.azure.com" {
		t.Errorf("cloud %+v", az)
	}
	if c.Cloud.BillsLinux() || !c.Cloud.HasRetailPrices() {
		t.Error("a cloud of its own has no billing extension, and the prices that were named")
	}
}

func TestLoadNationalCloudsHaveNoRetailPrices(t *testing.T) {
	for name, endpoint := range map[string]string{
		"AzureChinaCloud": "https://management.chinacloudapi.cn", "AzureUSGovernment": "https://management.usgovcloudapi.net",
	} {
		vars := good()
		vars["ARM_CLOUD"] = name
		c, err := load(vars, nil)
		if err != nil || c.Cloud.HasRetailPrices() || !c.Cloud.BillsLinux() ||
			c.Cloud.Azure().Services[cloud.ResourceManager].Endpoint != endpoint {
			t.Errorf("%s: %v %+v", name, err, c.Cloud.Azure())
		}
	}
}

func TestLoadMaxPodsByNetwork(t *testing.T) {
	for _, tt := range []struct {
		plugin, mode string
		pods         int
		fromSubnet   bool
	}{{"azure", "overlay", 250, false}, {"none", "", 250, false}, {"azure", "", 30, true}} {
		c := Config{NetworkPlugin: tt.plugin, NetworkPluginMode: tt.mode}
		if c.DefaultMaxPods() != tt.pods || c.PodsTakeNodeSubnet() != tt.fromSubnet {
			t.Errorf("%s %q: %d pods, from the subnet %v", tt.plugin, tt.mode, c.DefaultMaxPods(), c.PodsTakeNodeSubnet())
		}
	}
}

func TestLoadAKSMachinesByUpstreamVariables(t *testing.T) {
	vars := good()
	vars["PROVISION_MODE"], vars["AKS_MACHINES_POOL_NAME"], vars["ARM_RESOURCE_GROUP"] = "aksmachineapiheaderbatch", "machines", "rg"
	vars["USE_SIG"], vars["SIG_SUBSCRIPTION_ID"] = "true", "images"
	c, err := load(vars, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !c.StartsAKSMachines() || !c.HasAKSMachines() || c.SIGSubscriptionID != "images" ||
		c.Batching != (Batching{time.Second, 5 * time.Second, 50}) ||
		c.PoolID() != "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/c/agentPools/machines" {
		t.Errorf("loaded %+v", c)
	}
}
