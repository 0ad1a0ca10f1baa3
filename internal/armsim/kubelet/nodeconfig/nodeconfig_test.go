package nodeconfig

import (
	"strings"
	"testing"
)

const good = `{"version":"v1","kubernetes_version":"1.35.1","api_server_config":{"api_server_name":"c.example"},
 "auth_config":{"subscription_id":"s"},"cluster_config":{"resource_group":"g","location":"eastus","vm_type":"VM_TYPE_STANDARD",
 "cluster_network_config":{"vnet_name":"v","route_table":"r"}},
 "kubelet_config":{"kubelet_flags":{"--max-pods":"30"},"kubelet_config_file_config":{"clusterDNS":["10.0.0.10"],"max_pods":7}}}`

func TestConfigurationIsReadAsTheNodeReadsIt(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		bad      string // what the decoder says; empty when it is content
		invalid  string // what Validate says
	}{
		"good":               {},
		"JSON names":         {old: `"api_server_config":{"api_server_name"`, new: `"apiServerConfig":{"apiServerName"`},
		"unknown field":      {old: `"version"`, new: `"of_a_later_version":{"a":[1]},"version"`},
		"unknown enum value": {old: `VM_TYPE_STANDARD`, new: `VM_TYPE_LATER`},
		"number of an enum":  {old: `"VM_TYPE_STANDARD"`, new: `1`},
		"wrong type":         {old: `"1.35.1"`, new: `1.35`, bad: "invalid value for string", invalid: "required field auth_config.subscription_id"},
		"field twice":        {old: `"version":"v1"`, new: `"version":"v1","version":"v1"`, bad: "duplicate field", invalid: "required field"},
		"no JSON":            {old: good, new: "version: v1", bad: "syntax error", invalid: "unsupported version: "},
		"version v0":         {old: `"v1"`, new: `"v0"`, invalid: "unsupported version: v0"},
		"no subscription":    {old: `"subscription_id":"s"`, new: ``, invalid: "required field auth_config.subscription_id is missing"},
		"no resource group":  {old: `"g"`, new: `""`, invalid: "required field cluster_config.resource_group is missing"},
		"no location":        {old: `"eastus"`, new: `""`, invalid: "required field cluster_config.location is missing"},
		"no network": {old: `"vnet_name":"v",`, new: ``,
			invalid: "required field cluster_config.cluster_network_config.vnet_name is missing"},
		"no route table": {old: `"r"`, new: `""`,
			invalid: "required field cluster_config.cluster_network_config.route_table is missing"},
		"no API server": {old: `"c.example"`, new: `""`, invalid: "required field api_server_config.api_server_name is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := Parse([]byte(strings.Replace(good, c.old, c.new, 1)))
			if (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
				t.Errorf("read with %v, want %q", err, c.bad)
			}
			err = config.Validate()
			if (err == nil) != (c.invalid == "") || err != nil && !strings.Contains(err.Error(), c.invalid) {
				t.Errorf("checked with %v, want %q", err, c.invalid)
			}
			if c.bad+c.invalid != "" {
				return
			}
			k := config.KubeletConfig
			if config.KubernetesVersion != "1.35.1" || k.KubeletFlags["--max-pods"] != "30" ||
				*k.KubeletConfigFileConfig.MaxPods != 7 || k.KubeletConfigFileConfig.ClusterDNS[0] != "10.0.0.10" {
				t.Errorf("read %+v", config)
			}
		})
	}
}

func TestBrokenContractTableIsRefused(t *testing.T) {
	for _, table := range []string{"message A\n  x b string", "message A\n  1 b string sometimes", "message A\n  1 b Missing"} {
		if _, err := compile(table); err == nil {
			t.Errorf("%q is accepted", table)
		}
	}
}
