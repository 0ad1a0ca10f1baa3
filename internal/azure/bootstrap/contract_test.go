package bootstrap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
)

// contract is the published definition of AKSNodeConfig, which testdata carries with its
// source: the types of fields by message, and the values of enums.
type contract struct {
	messages map[string]map[string]string
	enums    map[string][]string
}

func readContract(t testing.TB) contract {
	t.Helper()
	c := contract{messages: map[string]map[string]string{}, enums: map[string][]string{}}
	for line := range strings.Lines(string(readFile(t, "testdata/aksnodeconfig-v1.txt"))) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case words[0] == "enum":
			c.enums[words[1]] = append(c.enums[words[1]], words[2])
		default:
			if c.messages[words[1]] == nil {
				c.messages[words[1]] = map[string]string{}
			}
			c.messages[words[1]][words[2]] = strings.Join(words[3:], " ")
		}
	}
	if len(c.messages) < 20 || len(c.enums) < 5 {
		t.Fatalf("%d messages and %d enums were read", len(c.messages), len(c.enums))
	}
	return c
}

// check says how a decoded value is not of a type of the contract.
func (c contract) check(path, kind string, value any) []string {
	wrong := func() []string { return []string{fmt.Sprintf("%s: %v is no %s", path, value, kind)} }
	if element, ok := strings.CutPrefix(kind, "repeated "); ok {
		list, ok := value.([]any)
		if !ok {
			return wrong()
		}
		var out []string
		for i, v := range list {
			out = append(out, c.check(fmt.Sprintf("%s[%d]", path, i), element, v)...)
		}
		return out
	}
	kind = strings.TrimPrefix(kind, "optional ")
	if element, ok := strings.CutPrefix(kind, "map<string,"); ok {
		return c.object(path, value, func(string) string { return strings.TrimSuffix(element, ">") })
	}
	switch kind {
	case "string":
		if _, ok := value.(string); !ok {
			return wrong()
		}
	case "bool":
		if _, ok := value.(bool); !ok {
			return wrong()
		}
	case "int32":
		if n, ok := value.(json.Number); !ok || strings.ContainsAny(n.String(), ".eE") {
			return wrong()
		}
	default:
		if values := c.enums[kind]; values != nil {
			if name, ok := value.(string); !ok || !slices.Contains(values, name) || strings.HasSuffix(name, "_UNSPECIFIED") {
				return wrong()
			}
			return nil
		}
		fields := c.messages[kind]
		if fields == nil {
			return []string{path + ": unknown type " + kind}
		}
		return c.object(path, value, func(name string) string { return fields[name] })
	}
	return nil
}

func (c contract) object(path string, value any, kindOf func(string) string) []string {
	object, ok := value.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s: %v is no object", path, value)}
	}
	var out []string
	for name, v := range object {
		if kind := kindOf(name); kind == "" {
			out = append(out, path+"."+name+": the contract has no such field")
		} else {
			out = append(out, c.check(path+"."+name, kind, v)...)
		}
	}
	return out
}

func TestGoldenConfigurationsAreInContract(t *testing.T) {
	c := readContract(t)
	files, err := filepath.Glob("testdata/*/aks-node-config.json")
	if err != nil || len(files) < 24 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		decoder := json.NewDecoder(bytes.NewReader(readFile(t, file)))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		for _, problem := range c.check("", "Configuration", value) {
			t.Errorf("%s: %s", file, problem)
		}
		strict := json.NewDecoder(bytes.NewReader(readFile(t, file)))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&Config{}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// leftToNode are the fields of the contract that nap does not write, each with the
// reason; the node then has its own default.
func leftToNode() map[string]string {
	return map[string]string{
		"ApiServerConfig.api_server_public_key":                                    "not for nodes",
		"AuthConfig.service_principal_secret":                                      "nodes sign in with managed identities",
		"ClusterConfig.cloud_provider_config":                                      "the node's defaults are AKS's",
		"ClusterConfig.primary_availability_set":                                   "machines are in none",
		"ClusterConfig.primary_scale_set":                                          "machines are in none",
		"LoadBalancerConfig.disable_outbound_snat":                                 "machines reach the internet as the cluster's others do",
		"KubeletConfig.enable_kubelet_config_file":                                 "flags say it all",
		"KubeletConfig.kubelet_config_file_config":                                 "flags say it all",
		"KubeletConfig.kubelet_client_key":                                         "kubelets get certificates by their token",
		"KubeletConfig.kubelet_client_cert_content":                                "kubelets get certificates by their token",
		"KubeletConfig.container_data_dir":                                         "no class has one",
		"GpuConfig.gpu_instance_profile":                                           "no class has one",
		"GpuConfig.mig_strategy":                                                   "no class has one",
		"GpuConfig.mig_profile_layout":                                             "no class has one",
		"GpuConfig.enable_amd_gpu":                                                 "AKS installs no driver of AMD's",
		"GpuConfig.managed_gpu_experience_afec_enabled":                            "a preview of AKS's own pools",
		"GpuConfig.enable_managed_gpu_dra":                                         "a preview of AKS's own pools",
		"NetworkConfig.cni_plugins_url":                                            "images carry them",
		"NetworkConfig.standard_secondary_nic_count":                               "machines have one interface",
		"KubeBinaryConfig.custom_kube_binary_url":                                  "no class has one",
		"KubeBinaryConfig.private_kube_binary_url":                                 "no class has one",
		"ImdsRestrictionConfig.insert_imds_restriction_rule_to_mangle_table":       "the node's default",
		"CustomLinuxOsConfig.ulimit_config":                                        "no class has one",
		"LocalDnsProfile.cpu_limit_in_milli_cores":                                 "the node's default",
		"LocalDnsProfile.memory_limit_in_mb":                                       "the node's default",
		"LocalDnsProfile.enable_hosts_plugin":                                      "a preview of AKS's own pools",
		"LocalDnsProfile.critical_fqdns":                                           "a preview of AKS's own pools",
		"LocalDnsProfile.hosts_plugin_refresh_interval_in_seconds":                 "a preview of AKS's own pools",
		"LocalDnsOverrides.failfast_all_unhealthy_upstreams":                       "no class has one",
		"LocalDnsOverrides.health_check":                                           "no class has one",
		"BootstrappingConfig.secure_tls_bootstrapping_custom_client_download_url":  "the node's default",
		"BootstrappingConfig.secure_tls_bootstrapping_validate_kubeconfig_timeout": "the node's default",
		"BootstrappingConfig.secure_tls_bootstrapping_get_access_token_timeout":    "the node's default",
		"BootstrappingConfig.secure_tls_bootstrapping_get_instance_data_timeout":   "the node's default",
		"BootstrappingConfig.secure_tls_bootstrapping_get_nonce_timeout":           "the node's default",
		"BootstrappingConfig.secure_tls_bootstrapping_get_attested_data_timeout":   "the node's default",
		"BootstrappingConfig.secure_tls_bootstrapping_get_credential_timeout":      "the node's default",
		"Configuration.runc_config":                                                "images carry it",
		"Configuration.containerd_config":                                          "images carry it",
		"Configuration.custom_search_domain_config":                                "clusters do not tell of one",
		"Configuration.kube_proxy_url":                                             "kube-proxy runs as pods",
		"Configuration.disable_pubkey_auth":                                        "the machine's own settings decide",
		"Configuration.message_of_the_day":                                         "no class has one",
		"Configuration.enable_hosts_config_agent":                                  "machines resolve names as the cluster's others do",
		"Configuration.provision_output":                                           "the node's default",
		"Configuration.workload_runtime":                                           "the node's default",
		"Configuration.azure_private_registry_server":                              "the kubelet's identity pulls from registries",
		"Configuration.is_kata":                                                    "no class has it",
		"Configuration.disable_custom_data":                                        "the node needs it",
		"Configuration.pre_provision_only":                                         "machines become nodes",
		"Configuration.service_account_image_pull_profile":                         "the kubelet's identity pulls from registries",
		"Configuration.cse_timeout":                                                "the node's default",
		"Configuration.enabled_features":                                           "none is needed",
	}
}

// TestConfigHasTheContractsFields compares the package's types with the contract's, both
// ways: no field of nap's invention or of another type, and none that is neither
// written nor left to the node on purpose.
func TestConfigHasTheContractsFields(t *testing.T) {
	c, left := readContract(t), leftToNode()
	seen := map[string]bool{}
	var compare func(message string, of reflect.Type)
	compare = func(message string, of reflect.Type) {
		if seen[message] {
			return
		}
		seen[message] = true
		rest := maps.Clone(c.messages[message])
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			kind, known := rest[name]
			if !known {
				t.Errorf("%s.%s: the contract has no such field", message, name)
				continue
			}
			delete(rest, name)
			if below, inner := fits(c, kind, of.Field(i).Type); inner == "wrong" {
				t.Errorf("%s.%s: %s is no %s", message, name, of.Field(i).Type, kind)
			} else if below != nil {
				compare(inner, below)
			}
		}
		for name := range rest {
			field := message + "." + name
			if left[field] == "" {
				t.Errorf("%s is in the contract and nothing writes it", field)
			}
			delete(left, field)
		}
	}
	compare("Configuration", reflect.TypeFor[Config]())
	for field := range left {
		t.Errorf("%s is left to the node, but written or not in the contract", field)
	}
}

// fits compares a type of the contract with one of Go. It gives the struct and the
// message to compare next, if there are such; the message "wrong" when they differ.
func fits(c contract, kind string, of reflect.Type) (reflect.Type, string) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == reflect.TypeFor[jointoken.Token]() { // a text on the machine
		of = reflect.TypeFor[string]()
	}
	element, repeated := strings.CutPrefix(strings.TrimPrefix(kind, "optional "), "repeated ")
	if repeated {
		if of.Kind() != reflect.Slice {
			return nil, "wrong"
		}
		of = of.Elem()
	}
	if inner, ok := strings.CutPrefix(element, "map<string,"); ok {
		if of.Kind() != reflect.Map {
			return nil, "wrong"
		}
		element, of = strings.TrimSuffix(inner, ">"), of.Elem()
	}
	want := map[string]reflect.Kind{"string": reflect.String, "bool": reflect.Bool, "int32": reflect.Int32}[element]
	switch {
	case c.enums[element] != nil:
		want = reflect.String
	case c.messages[element] != nil:
		if of.Kind() == reflect.Struct {
			return of, element
		}
	}
	if want != of.Kind() {
		return nil, "wrong"
	}
	return nil, ""
}
