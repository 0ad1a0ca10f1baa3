package crds

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const classPage = "../../docs/aksnodeclass.md"

// classMarker is the line above the reference: what is below it is generated.
const classMarker = "| field | type | allowed | default | meaning |\n|---|---|---|---|---|\n"

// TestPageOfAKSNodeClassMatchesDefinition: the page lists every field of the spec as the
// definition has it.
func TestPageOfAKSNodeClassMatchesDefinition(t *testing.T) {
	text, err := os.ReadFile(classPage)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := bytes.Cut(text, []byte(classMarker))
	if !found {
		t.Fatalf("%s has no table", classPage)
	}
	spec := classSpec(t)
	want := string(head) + classMarker
	for _, name := range slices.Sorted(maps.Keys(spec.Properties)) {
		want += strings.Join(fieldRows(name, spec.Properties[name]), "")
	}
	if *rewrite {
		if err := os.WriteFile(classPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s differs, see -rewrite (-want +got):\n%s", classPage, diff)
	}
}

// classSpec is the schema of an AKSNodeClass's spec in the version that is stored.
func classSpec(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		for _, version := range crd.Spec.Versions {
			if crd.Spec.Names.Kind == "AKSNodeClass" && version.Storage {
				return version.Schema.OpenAPIV3Schema.Properties["spec"]
			}
		}
	}
	t.Fatal("there is no definition of AKSNodeClass")
	return apiextensionsv1.JSONSchemaProps{}
}

// fieldRows are the rows of a field and of the fields in it, by their paths.
func fieldRows(path string, field apiextensionsv1.JSONSchemaProps) []string {
	inner, kind := field, field.Type
	switch {
	case field.Items != nil:
		inner = *field.Items.Schema
		kind = "list of " + inner.Type + "s"
		if len(inner.Properties) > 0 {
			path += "[]"
		}
	case field.AdditionalProperties != nil:
		kind = "map of " + field.AdditionalProperties.Schema.Type + "s"
	}
	rows := []string{fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", path, kind, allowed(field), defaultOf(field), meaning(field))}
	for _, name := range slices.Sorted(maps.Keys(inner.Properties)) {
		rows = append(rows, fieldRows(path+"."+name, inner.Properties[name])...)
	}
	return rows
}

// allowed says which values the definition takes, rules aside.
func allowed(field apiextensionsv1.JSONSchemaProps) string {
	var out []string
	for _, value := range field.Enum {
		out = append(out, "`"+strings.Trim(string(value.Raw), `"`)+"`")
	}
	switch {
	case field.Minimum != nil && field.Maximum != nil:
		out = append(out, fmt.Sprintf("%.0f to %.0f", *field.Minimum, *field.Maximum))
	case field.Minimum != nil:
		out = append(out, fmt.Sprintf("from %.0f", *field.Minimum))
	case field.Maximum != nil:
		out = append(out, fmt.Sprintf("up to %.0f", *field.Maximum))
	}
	if pattern := cmp.Or(field.Pattern, itemPattern(field)); pattern != "" {
		out = append(out, "`"+strings.ReplaceAll(pattern, "|", `\|`)+"`")
	}
	return strings.Join(out, ", ")
}

func itemPattern(field apiextensionsv1.JSONSchemaProps) string {
	if field.Items == nil {
		return ""
	}
	return field.Items.Schema.Pattern
}

func defaultOf(field apiextensionsv1.JSONSchemaProps) string {
	if field.Default == nil {
		return ""
	}
	var value any
	if err := json.Unmarshal(field.Default.Raw, &value); err != nil {
		return string(field.Default.Raw)
	}
	return fmt.Sprintf("`%v`", value)
}

// meaning is the description on one line.
func meaning(field apiextensionsv1.JSONSchemaProps) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(field.Description), " "), "|", `\|`)
}
