package lab

import (
	"context"
	"fmt"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/internal/kube/manifest"
)

// Apply applies the objects of YAML manifests to a cluster, server side: custom
// resource definitions first, and the rest once those are served.
func Apply(ctx context.Context, cfg *rest.Config, manifests ...[]byte) error {
	a, objects, err := open(cfg, manifests)
	if err != nil {
		return err
	}
	return a.Apply(ctx, objects)
}

// open reads manifests, and makes what reaches their objects.
func open(cfg *rest.Config, manifests [][]byte) (*manifest.Applier, []*unstructured.Unstructured, error) {
	objects, err := manifest.Parse(manifests...)
	if err != nil {
		return nil, nil, err
	}
	a, err := manifest.NewApplier(cfg, fieldManager)
	return a, objects, err
}

// Existing names the objects of manifests that the cluster has, as "Kind name".
func Existing(ctx context.Context, cfg *rest.Config, manifests ...[]byte) ([]string, error) {
	a, objects, err := open(cfg, manifests)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, o := range objects {
		found, err := a.Get(ctx, o)
		if err != nil {
			return nil, err
		}
		if found != nil {
			there = append(there, o.GetKind()+" "+o.GetName())
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
	return a.Remove(ctx, objects)
}

// RemoveOthers deletes the objects of the manifest before which the manifest now does not
// have, the last one first.
func RemoveOthers(ctx context.Context, cfg *rest.Config, before, now []byte) error {
	a, objects, err := open(cfg, [][]byte{before})
	if err != nil {
		return err
	}
	kept, err := manifest.Parse(now)
	if err != nil {
		return err
	}
	return a.Remove(ctx, manifest.Others(objects, kept))
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
