package karpenterengine

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// onNode is the field by which Karpenter asks for the pods of a node.
const onNode = "spec.nodeName"

// Mirror answers reads as the cache does from which Karpenter's manager reads: by
// index, with copies, in memory. It takes writes at once. Nothing else of a client
// is there: a call of it panics.
//
// A fake API server would write all objects of a kind as JSON and read them again
// for every answer, and time spent with that is not Karpenter's.
type Mirror struct {
	client.Client
	kinds map[schema.GroupVersionKind]cache.Indexer
}

// NewMirror holds the objects whose kinds the scheme knows.
func NewMirror(objects []client.Object) (*Mirror, error) {
	m := &Mirror{kinds: map[schema.GroupVersionKind]cache.Indexer{}}
	for _, o := range objects {
		if _, _, err := scheme.Scheme.ObjectKinds(o); err != nil {
			continue
		}
		if err := m.Create(context.Background(), o.DeepCopyObject().(client.Object)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// kindOf is the kind of an object or of a list.
func kindOf(o runtime.Object) (schema.GroupVersionKind, error) {
	kind, err := apiutil.GVKForObject(o, scheme.Scheme)
	if err != nil {
		return kind, fmt.Errorf("find the kind of %T: %w", o, err)
	}
	return kind, nil
}

// Create implements client.Writer.
func (m *Mirror) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	kind, err := kindOf(o)
	if err != nil {
		return err
	}
	if m.kinds[kind] == nil {
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		if _, ok := o.(*corev1.Pod); ok {
			indexers[onNode] = func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Spec.NodeName}, nil }
		}
		m.kinds[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	}
	return m.kinds[kind].Add(o.DeepCopyObject())
}

// Update implements client.Writer.
func (m *Mirror) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	return m.Create(ctx, o)
}

// Delete implements client.Writer.
func (m *Mirror) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	kind, err := kindOf(o)
	if store := m.kinds[kind]; err == nil && store != nil {
		err = store.Delete(o)
	}
	return err
}

// Get implements client.Reader.
func (m *Mirror) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	kind, err := kindOf(out)
	if err != nil {
		return err
	}
	var found any
	ok := false
	if store := m.kinds[kind]; store != nil {
		found, ok, err = store.GetByKey(cache.NewObjectName(key.Namespace, key.Name).String())
		if err == nil && !ok { // as the cache of a manager, which ignores the namespace for kinds of the cluster
			found, ok, err = store.GetByKey(key.Name)
		}
		if err != nil {
			return fmt.Errorf("look up %s %s: %w", kind.Kind, key, err)
		}
	}
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	value := found.(runtime.Object).DeepCopyObject()
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(value).Elem())
	return nil
}

// List implements client.Reader.
func (m *Mirror) List(_ context.Context, out client.ObjectList, opts ...client.ListOption) error {
	kind, err := kindOf(out)
	if err != nil {
		return err
	}
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	var asked client.ListOptions
	asked.ApplyOptions(opts)
	var items []runtime.Object
	if store := m.kinds[kind]; store != nil {
		found, err := choose(store, &asked)
		if err != nil {
			return fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		// The order is the same for every call, so that runs can be compared.
		slices.SortFunc(found, func(a, b any) int {
			x, y := a.(client.Object), b.(client.Object)
			return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
		})
		for _, f := range found {
			o := f.(client.Object)
			if asked.Namespace != "" && o.GetNamespace() != asked.Namespace ||
				asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(o.GetLabels())) {
				continue
			}
			if asked.UnsafeDisableDeepCopy != nil && *asked.UnsafeDisableDeepCopy {
				items = append(items, o)
			} else {
				items = append(items, o.DeepCopyObject())
			}
		}
	}
	return meta.SetList(out, items)
}

// choose takes what the fields of a list ask for, which must have an index.
func choose(store cache.Indexer, asked *client.ListOptions) ([]any, error) {
	switch {
	case asked.FieldSelector != nil && !asked.FieldSelector.Empty():
		by := asked.FieldSelector.Requirements()
		value, exact := asked.FieldSelector.RequiresExactMatch(by[0].Field)
		if len(by) > 1 || !exact {
			return nil, fmt.Errorf("fields %s: only one value of one field can be asked for", asked.FieldSelector)
		}
		return store.ByIndex(by[0].Field, value)
	case asked.Namespace != "":
		return store.ByIndex(cache.NamespaceIndex, asked.Namespace)
	}
	return store.List(), nil
}
