package admission

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/crds"
)

func TestCheckRefusesWhatAPIServersRefuse(t *testing.T) {
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	const class = `"nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "d"}`
	const ref = `"requirements": [], ` + class
	for spec, want := range map[string]string{
		`{}`:                        "",
		`{"imageFamily": "Ubuntu"}`: "",
		`{"imageFamly": "Ubuntu"}`:  "spec.imageFamly: there is no such field",
		`{"imageFamily": "Debian"}`: `spec.imageFamily: Unsupported value: "Debian"`,
		`{"osDiskSizeGB": 4}`:       "spec.osDiskSizeGB",
		`{"osDiskSizeGB": "big"}`:   "spec.osDiskSizeGB: Invalid value",
		`{"linuxOSConfig": {"sysctls": {"netIPv4IPLocalPortRange": "60999 32768"}}}`: "the first port of netIPv4IPLocalPortRange must be at most the last",
	} {
		text := `{"apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass", "metadata": {"name": "c"}, "spec": ` + spec + `}`
		err := checked(definitions[0], "v1beta1", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{`{"spec": {"limits": {"nodes": 1.5}, "weight": 101, "disruption": {"consolidateAfter": "soon"}, "template": {"spec": {` + ref + `}}}}`,
			`spec.disruption.consolidateAfter: Invalid value: "soon": spec.disruption.consolidateAfter in body should match ` +
				`'^(([0-9]+(s|m|h))+|Never)$', such as 720h, 1h30m or Never` + "\n" +
				"spec.limits.nodes: Invalid value: 1.5: spec.limits.nodes in body must be of type integer,string\n" +
				"spec.weight: Invalid value: 101: spec.weight in body should be less than or equal to 100"},
		{`{"metadata": {"name": "A"}, "spec": {"weight": 0, "template": {"spec": {"requirements": [{"key": "a", "operator": "In", "values": []}], ` + class + `}}}}`,
			`metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, ` +
				`'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
				`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')` + "\n" +
				"spec.template.spec.requirements: Invalid value: requirements with operator 'In' must have a value defined\n" +
				"spec.weight: Invalid value: 0: spec.weight in body should be greater than or equal to 1"},
		{`{"spec": {"disruption": {"budgets": [{"nodes": "5", "reasons": ["Empty", "Empty"]}]}, "template": {"spec": {` + ref + `}}}}`,
			`spec.disruption.budgets[0].reasons[1]: Duplicate value: "Empty"`},
		{`{"spec": {"template": {"spec": {` + ref + `}}}, "status": {"nodes": "many"}}`, "<nil>"}, // who creates it cannot give it one
		{`{"spec": {"template": {"spec": {` + ref + `}}}, "status": {"nods": 1}}`, "status.nods: there is no such field, use: nodes"},
		{`{"spec": {"limits": {"nvidia.com/gpu": true}, "template": {"spec": {` + ref + `}}}}`,
			"spec.limits.nvidia.com/gpu: Invalid value: true: spec.limits.nvidia.com/gpu in body must be of type integer,string"},
	} {
		err := checked(definitionOf(t, "NodePool"), "v1", []byte(c.text))
		if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
	for version, text := range map[string]string{"v9": "{}", "v1beta1": "[]"} {
		if err := checked(definitions[0], version, []byte(text)); err == nil {
			t.Errorf("version %s of %s passes", version, text)
		}
	}
}

func definitionOf(t *testing.T, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		if d.Spec.Names.Kind == kind {
			return d
		}
	}
	t.Fatalf("there is no definition of %s", kind)
	return nil
}

// TestVersionsThatThereAreNot names those that there are.
func TestVersionsThatThereAreNot(t *testing.T) {
	err := checked(definitionOf(t, "AKSNodeClass"), "v1", []byte("{}"))
	const want = `apiVersion: got "karpenter.azure.com/v1", allowed: karpenter.azure.com/v1alpha2, karpenter.azure.com/v1beta1`
	if fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestExamplesMatchTheirPatterns holds each pattern against Karpenter's definitions, and its
// examples against it.
func TestExamplesMatchTheirPatterns(t *testing.T) {
	var all strings.Builder
	for _, kind := range []string{"NodePool", "NodeClaim", "NodeOverlay"} {
		text, err := yaml.Marshal(definitionOf(t, kind))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for pattern, text := range examples() {
		if !strings.Contains(all.String(), "pattern: "+pattern+"\n") {
			t.Errorf("no definition has the pattern %s", pattern)
		}
		for _, example := range regexp.MustCompile(", | or ").Split(text, -1) {
			if !regexp.MustCompile(pattern).MatchString(example) {
				t.Errorf("%q does not match %s", example, pattern)
			}
		}
	}
}

// Some fields never change: rules of these compare an object with the one before.
func TestUpdateIsCheckedAgainstTheObjectBefore(t *testing.T) {
	object := func(replicas, kind string) []byte {
		return fmt.Appendf(nil, `{"spec": {%s "template": {"spec": {"requirements": [],
			"nodeClassRef": {"group": "karpenter.azure.com", "kind": %q, "name": "d"}}}}}`, replicas, kind)
	}
	rules, err := Compile(definitionOf(t, "NodePool"), "v1")
	if err != nil {
		t.Fatal(err)
	}
	dynamic, static := object("", "AKSNodeClass"), object(`"replicas": 2,`, "AKSNodeClass")
	for _, c := range []struct {
		text, before []byte
		want         string
	}{
		{dynamic, dynamic, "[]"},
		{object(`"replicas": 5,`, "AKSNodeClass"), static, "[]"},
		{static, dynamic, "between static (replicas set) and dynamic"},
		{dynamic, static, "between static (replicas set) and dynamic"},
		{object("", "Other"), dynamic, "nodeClassRef.kind is immutable"},
		{dynamic, []byte("[]"), "the object before is no JSON object"},
	} {
		if got := fmt.Sprint(rules.CheckUpdate(c.text, c.before)); !strings.Contains(got, c.want) {
			t.Errorf("%s over %s: %s, want %q", c.text, c.before, got, c.want)
		}
	}
}

// checked is what the rules of a definition find of an object in JSON.
func checked(definition *apiextensionsv1.CustomResourceDefinition, version string, text []byte) error {
	rules, err := Compile(definition, version)
	if err != nil {
		return err
	}
	return errors.Join(rules.Check(text)...)
}
