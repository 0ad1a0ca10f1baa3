package lab

import (
	"context"
	"fmt"
	"syscall"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Apply applies the objects of YAML manifests to a cluster, server side: custom
// resource definitions first, and the rest once those are served.
func Apply(ctx context.Context, cfg *rest.Config, manifests ...[]byte) error {
	objects, err := parseManifests(manifests)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	a := &applier{dynamic: dyn, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}
	return a.apply(ctx, objects)
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
