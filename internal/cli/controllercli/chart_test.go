package controllercli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller"
)

const chart = "../../../charts/nap/"

// variables are all environment variables that the controller reads: those of its flags,
// and those that describe the cluster and Azure, which looking them up tells.
func variables(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	newController(command.Streams{}).Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains([]string{"kubeconfig", "context", "help", "version"}, f.Name) {
			out[strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))] = true
		}
	})
	for _, set := range []map[string]string{{}, {"USE_SIG": "true", "PROVISION_MODE": config.ModeAKSMachinesBatched}} {
		lookup := func(name string) (string, bool) {
			out[name] = true
			value, ok := set[name]
			return value, ok
		}
		// The error is about what is not set.
		_, _ = config.Load(lookup, func(string) ([]byte, error) { return nil, os.ErrNotExist })
	}
	return out
}

// elsewhere are variables that the chart sets from other values than settings.
func elsewhere() map[string]string {
	return map[string]string{
		"METRICS_SECURE":          "metrics.secure",
		"SHADOW":                  "shadow.enabled",
		"METRICS_CERT_DIR":        "metrics.certificateSecret",
		"KUBELET_BOOTSTRAP_TOKEN": "bootstrapTokenSecret: a value would be in the release and in the pod's description",
		"ARM_SUBSCRIPTION_ID":     "settings.azureSubscriptionId: an older name of the same",
		"ARM_TENANT_ID":           "settings.azureTenantId: an older name of the same",
		// The controller does not start with it.
		"NODEBOOTSTRAPPING_SERVER_URL": "no setting: nap writes boot data itself",
	}
}

// variableOf is the variable that the chart makes of a setting.
func variableOf(setting string) string {
	return strings.ToUpper(regexp.MustCompile(`[A-Z]`).ReplaceAllString(setting, "_$0"))
}

// schemaOf are the settings that the chart's schema allows.
func schemaOf(t *testing.T) map[string]struct {
	Enum       []any
	Properties map[string]any
} {
	t.Helper()
	text, err := os.ReadFile(chart + "values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Settings struct {
				AdditionalProperties *bool
				Properties           map[string]struct {
					Enum       []any
					Properties map[string]any
				}
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	if open := schema.Properties.Settings.AdditionalProperties; open == nil || *open {
		t.Error("the schema lets through settings that do not exist")
	}
	return schema.Properties.Settings.Properties
}

func TestChartCoversEverySetting(t *testing.T) {
	text, err := os.ReadFile(chart + "values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct{ Settings map[string]any }
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	schema, known := schemaOf(t), variables(t)
	made := map[string]bool{}
	for setting := range values.Settings {
		made[variableOf(setting)] = true
		if _, ok := schema[setting]; !ok {
			t.Errorf("settings.%s is in values.yaml, and not in values.schema.json", setting)
		}
		if !known[variableOf(setting)] {
			t.Errorf("settings.%s becomes %s, which the controller does not read", setting, variableOf(setting))
		}
	}
	for setting := range schema {
		if _, ok := values.Settings[setting]; !ok {
			t.Errorf("settings.%s is in values.schema.json, and not in values.yaml", setting)
		}
	}
	other := elsewhere()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !made[name] && other[name] == "" {
			t.Errorf("the controller reads %s, and no value of charts/nap sets it: add it to values.yaml and values.schema.json", name)
		}
		if made[name] && other[name] != "" {
			t.Errorf("settings and %s both set %s", other[name], name)
		}
	}
	for name := range other {
		if !known[name] {
			t.Errorf("the controller does not read %s", name)
		}
	}
}

// What the schema lets through, the controller takes, and the other way round, as far as
// there is a list.
func TestChartAllowsWhatControllerAllows(t *testing.T) {
	schema := schemaOf(t)
	gates := map[string]bool{}
	for gate := range schema["featureGates"].Properties {
		gates[strings.ToUpper(gate[:1])+gate[1:]] = true
	}
	if want := controller.Gates(); !maps.Equal(keys(want), gates) {
		t.Errorf("the chart has the gates %v, the controller %v", slices.Sorted(maps.Keys(gates)), slices.Sorted(maps.Keys(want)))
	}
	values, err := os.ReadFile(chart + "values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for gate := range schema["featureGates"].Properties {
		if !strings.Contains(string(values), gate) {
			t.Errorf("values.yaml does not name the gate %s", gate)
		}
	}
	lists := 0
	for setting, property := range schema {
		for _, value := range property.Enum {
			if value == nil {
				continue
			}
			lists++
			name, text := variableOf(setting), fmt.Sprint(value)
			if err := takes(name, text); err != nil {
				t.Errorf("the schema allows settings.%s %q: %v", setting, text, err)
			}
			if text != "" && takes(name, text+"x") == nil {
				t.Errorf("the controller takes any value of %s: the schema should not list %v", name, property.Enum)
			}
		}
	}
	if lists < 20 {
		t.Errorf("only %d values were tried", lists)
	}
}

// rendered is what the chart finds wrong with variables of the controller, metrics being plain
// as they are without a flag.
func rendered(t *testing.T, vars map[string]string) error {
	t.Helper()
	release := charts.Release{Chart: "nap", Name: "nap", Namespace: "nap-system", Values: map[string]any{
		"image": map[string]any{"repository": "nap"}, "workloadIdentity": map[string]any{"clientId": "client"},
	}}
	all := map[string]string{"CLUSTER_NAME": "c", "ARM_RESOURCE_GROUP": "g", "AZURE_SUBSCRIPTION_ID": "s", "METRICS_SECURE": "false"}
	maps.Copy(all, vars)
	for name, value := range all {
		if name == "SHADOW" {
			release.Values["shadow"] = map[string]any{"enabled": true}
			continue
		}
		release.Variables = append(release.Variables, name+"="+value)
	}
	_, err := release.Render()
	return err
}

// inVariables are the flags of a command line as variables; those that are none are left out.
func inVariables(r refusal) map[string]string {
	out := maps.Clone(r.env)
	if out == nil {
		out = map[string]string{}
	}
	for _, arg := range strings.Fields(r.args) {
		flag, value, set := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !set {
			value = "true"
		}
		out[strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))] = value
	}
	return out
}

// TestChartRefusesWhatControllerRefuses: a value that would end the controller at its start
// is refused before anything is changed.
func TestChartRefusesWhatControllerRefuses(t *testing.T) {
	others := map[string]string{
		"--unknown": "no setting", "now": "no flag", "--context=nowhere": "no setting",
		"--leader-election-name=":                                       "empty is the default there",
		"--metrics-cert-dir=/etc/nap/metrics":                           "the chart sets it from metrics.certificateSecret, which it checks",
		"--metrics-secure --metrics-cert-dir=/nonexistent":              "the chart mounts a Secret there",
		"--health-probe-bind-address=127.0.0.1:1 --health-probe-port=2": "the chart gives the address alone, and refuses another port",
		"--scheduler-config={}x":                                        "docs/install.md says so",
		`--scheduler-config={"podTopologySpread":{"defaultConstraints":[{"maxSkew":0,"topologyKey":"zone"}]}}`: "docs/install.md says so",
	}
	all := refusals()
	for _, r := range all {
		if err := rendered(t, inVariables(r)); err == nil && others[r.args] == "" {
			t.Errorf("charts/nap takes %v, which the controller refuses", inVariables(r))
		}
	}
	for _, variable := range []string{
		"VNET_SUBNET_ID=foo", "VNET_GUID=x", "KUBELET_IDENTITY_CLIENT_ID=x", "NODE_IDENTITIES=x", "NODE_OSDISK_DISKENCRYPTIONSET_ID=x",
		"NODE_OSDISK_DISKENCRYPTIONSET_ID=/subscriptions/other/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/d",
		"CLUSTER_ENDPOINT=http://c", "DNS_SERVICE_IP=kube-dns", "LINUX_ADMIN_USERNAME=0root", "ARM_CLOUD=AzureMoon",
		"AKS_MACHINES_POOL_NAME=Upper", "ADDITIONAL_TAGS=a<b=c", "VM_MEMORY_OVERHEAD_PERCENT=1", "NAP_LAUNCH_SETTLE=5m",
		"NAP_UPGRADE_CHECK_INTERVAL=25h", "PROVIDER_BATCH_IDLE_DURATION=31s", "PROVIDER_BATCH_MAX_DURATION=1m", "PROVIDER_BATCH_MAX_SIZE=51",
		"PROVISION_MODE=other", "USE_SIG=true", "SIG_SUBSCRIPTION_ID=s", "SIG_ACCESS_TOKEN_SERVER_URL=https://x", "NAP_SSH_ACCESS=All",
		"NAP_SECURE_TLS_AAD_RESOURCE=x", "NAP_BOOTSTRAP_REGISTRY=x", "NAP_PACKAGES_URL=ftp://x", "NAP_PRIVATE_EGRESS_PROXY=a b",
	} {
		name, value, _ := strings.Cut(variable, "=")
		if name != "USE_SIG" && takes(name, value) == nil { // USE_SIG is refused by the name of what is missing
			t.Errorf("the controller takes %s", variable)
		}
		if rendered(t, map[string]string{name: value}) == nil {
			t.Errorf("charts/nap takes %s, which the controller refuses", variable)
		}
	}
	if err := rendered(t, nil); err != nil {
		t.Errorf("without any of them: %v", err)
	}
	given := map[string]string{
		"BATCH_IDLE_DURATION": "1m30s", "BATCH_MAX_DURATION": "1.5m", "LEDGER_LABELS": "app.kubernetes.io/name, team", "METRICS_PORT": "9090",
		"METRICS_BIND_ADDRESS": "127.0.0.1:9090", "CONSOLIDATION_MINIMUM_SAVING": "0.999", "LEADER_ELECTION_LEASE_DURATION": "1m",
		"LEADER_ELECTION_RENEW_DEADLINE": "59999ms", "LEADER_ELECTION_RETRY_PERIOD": "100ms",
	}
	if err := rendered(t, given); err != nil {
		t.Errorf("%v: %v", given, err)
	}
}

func keys(m map[string]bool) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// takes is what the controller finds wrong with a variable that has this value.
func takes(name, value string) error {
	lookup := func(n string) (string, bool) { return value, n == name }
	c := &controllerCommand{lookupEnv: lookup}
	cmd := c.command()
	if err := applyEnv(cmd.Flags(), lookup); err != nil {
		return err
	}
	if err := c.resolve(cmd.Flags()); err != nil {
		return err
	}
	if _, err := logHandler(os.Stderr, c.logLevel, c.logFormat); err != nil {
		return err
	}
	if _, err := config.Load(lookup, os.ReadFile); err != nil && strings.Contains(err.Error(), name+": ") {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if strings.HasPrefix(line, name+": ") {
				return fmt.Errorf("%s", line)
			}
		}
	}
	return nil
}
