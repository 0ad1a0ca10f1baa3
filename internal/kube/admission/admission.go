// Package admission says what an API server would refuse of an object, by the
// definition of its kind: unknown fields, values that its schema does not allow, and
// the rules that it states in CEL. It serves commands that read objects which no API
// server has seen.
package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/nodeautoprovision/nap/internal/model"
)

// The costs of CEL rules that an API server allows: of one rule, and of all of an object.
const (
	costOfRule   = 1_000_000
	costOfObject = 10_000_000
)

// Rules are what an API server checks objects of one version of a kind by. Compile makes
// them; they may check any number of objects, one after the other.
type Rules struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// UnknownField is a field that the kind does not have. Meant is the field beside it which is
// written almost the same, empty where none is.
type UnknownField struct{ Path, Meant string }

// Error names the field, and the one that was meant.
func (f UnknownField) Error() string {
	if f.Meant != "" {
		return f.Path + ": there is no such field, use: " + f.Meant
	}
	return f.Path + ": there is no such field"
}

// Check is what an API server that has the definition would refuse of an object, in
// JSON; nil where it would take it. The error names every field with its value and what
// is wanted; one of the definition itself comes alone.
func Check(definition *apiextensionsv1.CustomResourceDefinition, version string, text []byte) error {
	rules, err := Compile(definition, version)
	if err != nil {
		return err
	}
	return errors.Join(rules.Check(text)...)
}

// Compile reads the rules of a version from the definition of its kind. The error says
// what is wrong with the definition.
func Compile(definition *apiextensionsv1.CustomResourceDefinition, version string) (*Rules, error) {
	schemas, err := schemaOf(definition, version)
	if err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(schemas)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", definition.Name, err)
	}
	validator, _, err := validation.NewSchemaValidator(schemas)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", definition.Name, err)
	}
	return &Rules{structural, validator, cel.NewValidator(structural, true, costOfRule)}, nil
}

// Check is what an API server would refuse of an object, in JSON: an UnknownField or a
// [k8s.io/apimachinery/pkg/util/validation/field.Error] for each field, with its value
// and what is wanted; none where it would take it.
func (r *Rules) Check(text []byte) []error {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return []error{fmt.Errorf("is no JSON object: %w", err)}
	}
	var errs []error
	unknown := pruning.PruneWithOptions(object, r.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(unknown)
	for _, path := range unknown {
		errs = append(errs, UnknownField{path, r.meant(path)})
	}
	defaulting.Default(object, r.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, r.structural)
	found := validation.ValidateCustomResource(nil, object, r.schema)
	if len(found) == 0 { // rules read fields by their types
		found, _ = r.rules.Validate(context.Background(), nil, r.structural, object, nil, costOfObject)
	}
	for _, e := range found {
		errs = append(errs, e)
	}
	return errs
}

// meant is the field which one that there is not is a misspelling of.
func (r *Rules) meant(path string) string {
	at := r.structural
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		name, _, _ := strings.Cut(step, "[")
		child, known := at.Properties[name]
		for n := strings.Count(step, "["); known && n > 0 && child.Items != nil; n-- {
			child = *child.Items
		}
		if !known {
			return ""
		}
		at = &child
	}
	return model.Alike(steps[len(steps)-1], slices.Sorted(maps.Keys(at.Properties)))
}

// schemaOf is the schema of a version, in the form that the rest of the library reads.
func schemaOf(definition *apiextensionsv1.CustomResourceDefinition, version string) (*apiextensions.JSONSchemaProps, error) {
	for i := range definition.Spec.Versions {
		v := &definition.Spec.Versions[i]
		if v.Name != version || v.Schema == nil {
			continue
		}
		var out apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &out, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", definition.Name, err)
		}
		return &out, nil
	}
	return nil, fmt.Errorf("%s has no version %s", definition.Name, version)
}
