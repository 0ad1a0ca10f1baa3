package crds

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestAzureLabelDomainsAreRestrictedLikeKarpenters(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, crd := range all {
		for _, v := range crd.Spec.Versions {
			countRules(v.Schema.OpenAPIV3Schema, crd.Spec.Names.Kind, got)
		}
	}
	want := map[string]int{"NodePool": 4, "NodeClaim": 2, "NodeOverlay": 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules about Azure's label domains by kind (-want +got):\n%s", diff)
	}
}

func countRules(s *apiextensionsv1.JSONSchemaProps, kind string, counts map[string]int) {
	if s == nil {
		return
	}
	for _, rule := range s.XValidations {
		if strings.Contains(rule.Rule, `.endsWith("karpenter.azure.com")`) || strings.Contains(rule.Rule, `.endsWith("kubernetes.azure.com")`) {
			counts[kind]++
		}
	}
	for _, p := range s.Properties {
		countRules(&p, kind, counts)
	}
	if s.Items != nil {
		countRules(s.Items.Schema, kind, counts)
	}
}

// The generator lives in a module of its own and is built by the test, unless
// NAP_CONTROLLER_GEN names one.
func TestGeneratedFilesAreUpToDate(t *testing.T) {
	generator := os.Getenv("NAP_CONTROLLER_GEN")
	if generator == "" {
		generator = buildGenerator(t)
	}
	out := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(generator, args...)
		cmd.Dir = "../.."
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("controller-gen %v: %v\n%s", args, err, text)
		}
	}
	compare := func(generated, committed string) {
		t.Helper()
		want, err := os.ReadFile(generated)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../..", committed))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not what the markers give; run `make generate` (-want +got):\n%s", committed, diff)
		}
	}
	run("crd", "paths=./api/v1beta1/...", "paths=./api/v1alpha2/...", "output:crd:artifacts:config="+out)
	compare(filepath.Join(out, "karpenter.azure.com_aksnodeclasses.yaml"), "api/crds/karpenter.azure.com_aksnodeclasses.yaml")
	for _, version := range []string{"v1beta1", "v1alpha2"} {
		dir := filepath.Join(out, version)
		run("object", "paths=./api/"+version+"/...", "output:object:dir="+dir)
		compare(filepath.Join(dir, "zz_generated.deepcopy.go"), "api/"+version+"/zz_generated.deepcopy.go")
	}
}

func buildGenerator(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "controller-gen")
	cmd := exec.Command("go", "build", "-o", bin, "sigs.k8s.io/controller-tools/cmd/controller-gen")
	cmd.Dir = "../../tools/controller-gen"
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build controller-gen: %v\n%s", err, text)
	}
	return bin
}

// What users of Karpenter 1.15 leave out or write is understood by the definitions.
func TestNodePoolDefinitionIsKarpenters(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if crd.Name != "nodepools.karpenter.sh" {
			continue
		}
		disruption := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["disruption"]
		after := disruption.Properties["consolidateAfter"]
		if after.Default == nil || string(after.Default.Raw) != `"0s"` || len(disruption.Required) != 0 {
			t.Errorf("consolidateAfter has default %s, and %v must be given; want 0s and nothing", after.Default, disruption.Required)
		}
		var reasons []string
		for _, value := range disruption.Properties["budgets"].Items.Schema.Properties["reasons"].Items.Schema.Enum {
			reasons = append(reasons, string(value.Raw))
		}
		if want := []string{`"Underutilized"`, `"Empty"`, `"Drifted"`, `"Unhealthy"`}; !cmp.Equal(reasons, want) {
			t.Errorf("budgets know the reasons %v, want %v", reasons, want)
		}
		return
	}
	t.Error("there is no definition of NodePools")
}

// TestEveryKindIsOfCategoryNap: kubectl get nap lists all of them.
func TestEveryKindIsOfCategoryNap(t *testing.T) {
	definitions, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range definitions {
		if !slices.Contains(crd.Spec.Names.Categories, "nap") {
			t.Errorf("%s is of the categories %v", crd.Name, crd.Spec.Names.Categories)
		}
	}
}
