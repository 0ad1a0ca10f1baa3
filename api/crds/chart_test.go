package crds

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "write the templates of chart nap-crd instead of comparing with them")

// keep is what the templates have beside the definitions: without it an uninstalled
// release would delete every NodePool, and with those the machines.
const keep = "    {{- if .Values.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n"

// notForShadow leaves out what the shadow does not need: on a cluster that another autoscaler
// rules, Karpenter's definitions are that one's.
const (
	shadowKind   = "ShadowReport"
	notForShadow = "{{- if not .Values.shadowOnly }}\n"
)

func TestChartHasEveryDefinition(t *testing.T) {
	const dir = "../../charts/nap-crd/templates"
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, crd := range all {
		text, err := yaml.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		const head = "metadata:\n  annotations:\n"
		if n := strings.Count(string(text), head); n != 1 || strings.Contains(string(text), "{{") {
			t.Fatalf("%s cannot be a template as it is: %d places for annotations", crd.Name, n)
		}
		template := strings.Replace(string(text), head, head+keep, 1)
		if crd.Spec.Names.Kind != shadowKind {
			template = notForShadow + template + "{{- end }}\n"
		}
		path := filepath.Join(dir, crd.Name+".yaml")
		want[path] = true
		if *rewrite {
			if err := os.WriteFile(path, []byte(template), 0o644); err != nil { //nolint:gosec // a file of the project
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(template, string(got)); diff != "" {
			t.Errorf("%s is not what crds.All gives; run go test ./api/crds -run TestChart -rewrite (-want +got):\n%s", path, diff)
		}
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f] {
			t.Errorf("%s is none of nap's definitions", f)
		}
	}
}
