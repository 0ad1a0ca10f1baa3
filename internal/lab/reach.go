package lab

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Apply applies the objects of YAML manifests to a cluster, server side: custom
// resource definitions first, and the rest once those are served.
func Apply(ctx context.Context, cfg *rest.Config, manifests ...[]byte) error {
	a, objects, err := open(cfg, manifests)
	if err != nil {
		return err
	}
	return a.apply(ctx, objects)
}

// open reads manifests, and makes what reaches their objects.
func open(cfg *rest.Config, manifests [][]byte) (*applier, []*unstructured.Unstructured, error) {
	objects, err := parseManifests(manifests)
	if err != nil {
		return nil, nil, err
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, nil, err
	}
	return &applier{dynamic: dyn, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, objects, nil
}

// Existing names the objects of manifests that the cluster has, as "Kind name".
func Existing(ctx context.Context, cfg *rest.Config, manifests ...[]byte) ([]string, error) {
	a, objects, err := open(cfg, manifests)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, o := range objects {
		resource, err := a.resource(o)
		if err == nil {
			_, err = resource.Get(ctx, o.GetName(), metav1.GetOptions{})
		}
		switch {
		case err == nil:
			there = append(there, o.GetKind()+" "+o.GetName())
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return there, nil
}

// Remove deletes the objects of manifests, the last one first. What the cluster does
// not have is passed over.
func Remove(ctx context.Context, cfg *rest.Config, manifests ...[]byte) error {
	a, objects, err := open(cfg, manifests)
	if err != nil {
		return err
	}
	return a.remove(ctx, objects)
}

// remove deletes objects, the last one first, and passes over what is not there.
func (a *applier) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
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

// RemoveOthers deletes the objects of the manifest before which the manifest now does not
// have, the last one first.
func RemoveOthers(ctx context.Context, cfg *rest.Config, before, now []byte) error {
	a, objects, err := open(cfg, [][]byte{before})
	if err != nil {
		return err
	}
	kept, err := parseManifests([][]byte{now})
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc(kept, func(k *unstructured.Unstructured) bool {
			return k.GroupVersionKind().GroupKind() == o.GroupVersionKind().GroupKind() &&
				k.GetNamespace() == o.GetNamespace() && k.GetName() == o.GetName()
		})
	})
	return a.remove(ctx, objects)
}

// Kill ends a part that is a process of its own with SIGKILL, as a crash would;
// the supervisor starts it again. Where the part is between two lives the error
// is os.ErrProcessDone.
func Kill(dir, part string) error {
	s, err := Inspect(dir)
	if err != nil {
		return err
	}
	p := s.Part(part)
	if p == nil {
		return unknownPart(part, s.PartNames())
	}
	if p.Kind == KindService {
		return fmt.Errorf("%s runs inside the supervisor and cannot be killed alone", part)
	}
	return p.Process.signal(syscall.SIGKILL)
}
