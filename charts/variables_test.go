package charts

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// released renders a release of the embedded chart nap with variables of the controller.
func released(t *testing.T, profile string, variables ...string) (string, error) {
	t.Helper()
	what, err := json.Marshal(Release{
		Chart: "nap", Name: "nap", Namespace: "nap-system", Profile: profile,
		Variables: append([]string{"CLUSTER_NAME=c", "ARM_RESOURCE_GROUP=g", "AZURE_SUBSCRIPTION_ID=s"}, variables...),
		Values: map[string]any{
			"image": map[string]any{"repository": "nap"}, "workloadIdentity": map[string]any{"clientId": "client"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = Template(bytes.NewReader(what), &out)
	return out.String(), err
}

func TestVariablesBecomeSettings(t *testing.T) {
	want := map[string]string{
		"BATCH_IDLE_DURATION": "3s", "MAX_NODES": "7", "NAP_EXACT_NODE_RESOURCES": "true", "EVICTION_PRICE": "0.01",
		"FEATURE_GATES": "NodeOverlay=true,StaticCapacity=false", "ADDITIONAL_TAGS": "a=b,c=d", "NODE_IDENTITIES": identity + "/x," + identity + "/y",
		"METRICS_SECURE": "false",
	}
	variables := []string{"PATH=/bin", "NAP_LAB_BINARY=/bin/nap-lab", "LOG_LEVEL=", "MAX_NODES=5"}
	for name, value := range want {
		variables = append(variables, name+"="+value)
	}
	text, err := released(t, "", variables...)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range the[*appsv1.Deployment](t, objects(t, text)).Spec.Template.Spec.Containers[0].Env {
		got[e.Name] = e.Value
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	for _, name := range []string{"PATH", "NAP_LAB_BINARY", "LOG_LEVEL"} {
		if value, set := got[name]; set {
			t.Errorf("%s is set to %q", name, value)
		}
	}
	if !strings.Contains(text, "nodeoverlays") {
		t.Error("the gate has not brought its permissions")
	}
}

func TestVariablesNotAllowedAreNamed(t *testing.T) {
	for variable, want := range map[string]string{
		"NAP_EXACT_NODES=true":        "NAP_EXACT_NODES",
		"FEATURE_GATES=Nonsense=true": "nonsense",
		"MAX_NODES=many":              "maxNodes",
		"METRICS_SECURE=perhaps":      "secure",
		"ENGINE=steam":                "engine",
	} {
		if _, err := released(t, "", variable); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that names %s", variable, err, want)
		}
	}
}

func TestProfileComesWithChart(t *testing.T) {
	text, err := released(t, "karpenter")
	if err != nil {
		t.Fatal(err)
	}
	if name := the[*appsv1.Deployment](t, objects(t, text)).Name; name != "karpenter" {
		t.Errorf("the Deployment is %s, want karpenter", name)
	}
	if _, err := released(t, "none"); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("an unknown profile: %v", err)
	}
}
