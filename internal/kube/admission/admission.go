// Package admission says what an API server would refuse of an object, by the
// definition of its kind: unknown fields, values that its schema does not allow, and
// the rules that it states in CEL. It serves commands that read objects which no API
// server has seen.
package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/nodeautoprovision/nap/internal/model"
)

// The costs of CEL rules that an API server allows: of one rule, and of all of an object.
const (
	costOfRule   = 1_000_000
	costOfObject = 10_000_000
)

// Rules are what an API server checks objects of one version of a kind by. Compile makes
// them. They may check any number of objects, as in an API server several at the same time.
type Rules struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
	// noStatus says that who creates an object cannot give it a status: that is left out.
	noStatus bool
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
	return &Rules{structural, validator, cel.NewValidator(structural, true, costOfRule), hasStatus(definition, version)}, nil
}

// Check is what an API server would refuse of an object, in JSON: an UnknownField or a
// [k8s.io/apimachinery/pkg/util/validation/field.Error] for each field, with its value
// and what is wanted, in the order of the fields; none where it would take it. All is told at
// once, but for the rules in CEL where, as in an API server, something is wrong that keeps
// them from being evaluated.
func (r *Rules) Check(text []byte) []error { return r.check(text, nil) }

// CheckUpdate is Check for an object that takes the place of another one, in JSON, too: the rules
// of how it may change are evaluated as well.
func (r *Rules) CheckUpdate(text, before []byte) []error {
	var old map[string]any
	if err := json.Unmarshal(before, &old); err != nil {
		return []error{fmt.Errorf("the object before is no JSON object: %w", err)}
	}
	r.complete(old)
	return r.check(text, old)
}

// check is Check, beside the object that was there before, or nil.
func (r *Rules) check(text []byte, before any) []error {
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
	r.complete(object)
	found := metadataFaults(object)
	found = append(found, validation.ValidateCustomResource(nil, object, r.schema)...)
	found = append(found, listtype.ValidateListSetsAndMaps(nil, r.structural, object)...)
	if !slices.ContainsFunc(found, keepsRules) {
		broken, _ := r.rules.Validate(context.Background(), nil, r.structural, object, before, costOfObject)
		found = append(found, broken...)
	}
	for _, e := range told(object, found) {
		errs = append(errs, e)
	}
	return errs
}

// complete gives an object the defaults of its kind, and leaves out what is not for its writer to
// say.
func (r *Rules) complete(object map[string]any) {
	if r.noStatus {
		delete(object, "status")
	}
	defaulting.Default(object, r.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, r.structural)
}

// keepsRules reports whether an API server does not evaluate the rules of an object with such a
// fault: they read fields by their types (k8s.io/apiextensions-apiserver/pkg/registry/customresource).
func keepsRules(e *field.Error) bool {
	return slices.Contains([]field.ErrorType{
		field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
	}, e.Type)
}

// metadataFaults is what is wrong with the name, the labels and the annotations of an object.
func metadataFaults(object map[string]any) field.ErrorList {
	u, at := &unstructured.Unstructured{Object: object}, field.NewPath("metadata")
	var out field.ErrorList
	if name := u.GetName(); name != "" {
		for _, why := range apivalidation.NameIsDNSSubdomain(name, false) {
			out = append(out, field.Invalid(at.Child("name"), name, why))
		}
	}
	out = append(out, metav1validation.ValidateLabels(u.GetLabels(), at.Child("labels"))...)
	return append(out, apivalidation.ValidateAnnotations(u.GetAnnotations(), at.Child("annotations"))...)
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

// hasStatus reports whether the status of a kind is written apart from the rest.
func hasStatus(definition *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Subresources != nil && v.Subresources.Status != nil
	})
}

// schemaOf is the schema of a version, in the form that the rest of the library reads.
func schemaOf(definition *apiextensionsv1.CustomResourceDefinition, version string) (*apiextensions.JSONSchemaProps, error) {
	var served []string
	for i := range definition.Spec.Versions {
		v := &definition.Spec.Versions[i]
		if v.Served {
			served = append(served, definition.Spec.Group+"/"+v.Name)
		}
		if v.Name != version || v.Schema == nil {
			continue
		}
		var out apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &out, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", definition.Name, err)
		}
		return &out, nil
	}
	return nil, fmt.Errorf("apiVersion: got %q, allowed: %s", definition.Spec.Group+"/"+version, strings.Join(served, ", "))
}
