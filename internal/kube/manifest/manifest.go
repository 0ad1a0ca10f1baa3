// Package manifest applies and removes the objects of YAML manifests, whatever their kind.
package manifest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// Parse splits YAML documents into objects, custom resource definitions first. An object
// that could not be applied by name is an error.
func Parse(manifests ...[]byte) ([]*unstructured.Unstructured, error) {
	var definitions, others []*unstructured.Unstructured
	for i, manifest := range manifests {
		docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
		for {
			doc, err := docs.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("manifest %d: %w", i, err)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, &object.Object); err != nil {
				return nil, fmt.Errorf("manifest %d: %w", i, err)
			}
			if len(object.Object) == 0 {
				continue // nothing but comments
			}
			if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
				return nil, fmt.Errorf("manifest %d: an object needs apiVersion, kind and metadata.name, and has %q, %q and %q",
					i, object.GetAPIVersion(), object.GetKind(), object.GetName())
			}
			if isDefinition(object) {
				definitions = append(definitions, object)
			} else {
				others = append(others, object)
			}
		}
	}
	return append(definitions, others...), nil
}

func isDefinition(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// Others are the objects that are not among those kept.
func Others(objects, kept []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc(kept, func(k *unstructured.Unstructured) bool {
			return k.GroupVersionKind().GroupKind() == o.GroupVersionKind().GroupKind() &&
				k.GetNamespace() == o.GetNamespace() && k.GetName() == o.GetName()
		})
	})
}

// Applier reaches the objects of a cluster.
type Applier struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	manager string
}

// NewApplier makes an applier; manager is the owner of the fields that it applies.
func NewApplier(cfg *rest.Config, manager string) (*Applier, error) {
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	return &Applier{dynamic: dyn, mapper: mapper, manager: manager}, nil
}

// Apply applies the objects in order, server side. Kinds that are defined by an earlier
// object are waited for, each for at most half a minute.
func (a *Applier) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if _, err := a.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// Restore applies an object as Apply does, and reports whether the cluster had it otherwise, or
// did not have it. Fields that others have set beside it stay.
func (a *Applier) Restore(ctx context.Context, o *unstructured.Unstructured) (changed bool, err error) {
	before, err := a.Get(ctx, o)
	if err != nil {
		return false, err
	}
	after, err := a.apply(ctx, o)
	if err != nil {
		return false, err
	}
	return before == nil || !equality.Semantic.DeepEqual(content(before), content(after)), nil
}

// content is an object without what the API server and controllers write of it.
func content(o *unstructured.Unstructured) map[string]any {
	c := o.DeepCopy()
	c.SetManagedFields(nil)
	c.SetResourceVersion("")
	c.SetGeneration(0)
	delete(c.Object, "status")
	return c.Object
}

// apply applies one object, and returns it as the cluster has it then.
func (a *Applier) apply(ctx context.Context, o *unstructured.Unstructured) (applied *unstructured.Unstructured, err error) {
	err = retry(ctx, func() (bool, error) {
		resource, err := a.resource(o)
		if err == nil {
			applied, err = resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: a.manager, Force: true})
		}
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			// The kind is not served yet, or was not when discovery was
			// cached; or the namespace is not there yet.
			a.mapper.Reset()
			return true, err
		}
		return apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err), err
	})
	if err != nil {
		return nil, fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return applied, nil
}

// Remove deletes objects, the last one first, and passes over what is not there.
func (a *Applier) Remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	background := metav1.DeletePropagationBackground
	for _, o := range slices.Backward(objects) {
		resource, err := a.resource(o)
		if err == nil {
			err = resource.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		}
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return fmt.Errorf("delete %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// Get reads an object as the cluster has it; nil where it does not have it.
func (a *Applier) Get(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := a.resource(o)
	if err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, err
	}
	found, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return found, nil
}

// resource is the client for an object.
func (a *Applier) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return a.dynamic.Resource(mapping.Resource), nil
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return a.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// patience bounds each thing that is waited for, pause is the time between two looks.
const (
	patience = 30 * time.Second
	pause    = 50 * time.Millisecond
)

// retry calls try until it succeeds or fails for good, and at most for patience. It
// returns the last error.
func retry(ctx context.Context, try func() (again bool, err error)) error {
	deadline := time.Now().Add(patience)
	for {
		again, err := try()
		if err == nil || !again || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
