package crds

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kubectl explain says of each field of nap's own kinds what it means. Karpenter's kinds are described
// as upstream describes them.
func TestEveryFieldIsDescribed(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, crd := range all {
		if !strings.HasSuffix(crd.Spec.Group, "azure.com") {
			continue
		}
		for _, version := range crd.Spec.Versions {
			kind := crd.Spec.Names.Kind + " " + version.Name
			schema := version.Schema.OpenAPIV3Schema
			if schema.Description == "" {
				t.Errorf("%s has no description", kind)
			}
			for path, field := range fieldsOf("", schema) {
				if fields++; field.Description == "" && path != ".metadata" {
					t.Errorf("%s: %s has no description; give its field of the Go type a comment of its own, and run make generate", kind, path)
				}
			}
		}
	}
	if fields < 300 {
		t.Errorf("only %d fields were looked at", fields)
	}
}

// fieldsOf are the fields of a schema and of those below it, by their paths.
func fieldsOf(path string, schema *apiextensionsv1.JSONSchemaProps) map[string]*apiextensionsv1.JSONSchemaProps {
	out := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		out[path+"."+name] = &field
		maps.Copy(out, fieldsOf(path+"."+name, &field))
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		maps.Copy(out, fieldsOf(path+"[]", schema.Items.Schema))
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		maps.Copy(out, fieldsOf(path+"[]", schema.AdditionalProperties.Schema))
	}
	return out
}
