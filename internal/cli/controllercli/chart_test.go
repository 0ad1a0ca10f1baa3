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
