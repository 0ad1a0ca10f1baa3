// Package admission says what an API server would refuse of an object, by the
// definition of its kind: unknown fields, values that its schema does not allow, and
// the rules that it states in CEL. It serves commands that read objects which no API
// server has seen.
package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
)

// The costs of CEL rules that an API server allows: of one rule, and of all of an object.
const (
	costOfRule   = 1_000_000
	costOfObject = 10_000_000
)

// Check is what an API server that has the definition would refuse of an object, in
// JSON; nil where it would take it. The error names every field with its value and what
// is wanted; one of the definition itself comes alone.
func Check(definition *apiextensionsv1.CustomResourceDefinition, version string, text []byte) error {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("is no JSON object: %w", err)
	}
	schemas, err := schemaOf(definition, version)
	if err != nil {
		return err
	}
	structural, err := schema.NewStructural(schemas)
	if err != nil {
		return fmt.Errorf("%s: %w", definition.Name, err)
	}
	var errs []error
	unknown := pruning.PruneWithOptions(object, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(unknown)
	for _, path := range unknown {
		errs = append(errs, fmt.Errorf("%s: there is no such field", path))
	}
	defaulting.Default(object, structural)
	validator, _, err := validation.NewSchemaValidator(schemas)
	if err != nil {
		return fmt.Errorf("%s: %w", definition.Name, err)
	}
	found := validation.ValidateCustomResource(nil, object, validator)
	if len(found) == 0 { // rules read fields by their types
		found, _ = cel.NewValidator(structural, true, costOfRule).Validate(context.Background(), nil, structural, object, nil, costOfObject)
	}
	for _, e := range found {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
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
