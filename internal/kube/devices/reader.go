package devices

import (
	"sync"

	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// mostExpressions bounds how many compiled selectors are remembered.
const mostExpressions = 500

// Reader reads objects. It may be used from any goroutine.
type Reader struct {
	compiled *cel.Cache

	mu sync.Mutex
	// gpus are the answers of OfGPU so far.
	gpus map[model.GPU]fleet.Device
}

// NewReader returns a reader.
func NewReader() *Reader {
	return &Reader{
		compiled: cel.NewCache(mostExpressions, cel.Features{EnableConsumableCapacity: true}),
		gpus:     map[model.GPU]fleet.Device{},
	}
}

// Kinds returns one empty object of every kind that the reader reads.
func Kinds() []client.Object {
	return []client.Object{
		&resourcev1.DeviceClass{}, &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimTemplate{}, &resourcev1.ResourceSlice{},
	}
}

// Record converts an object; nil for objects of other kinds.
func (r *Reader) Record(o client.Object) fleet.Record {
	switch o := o.(type) {
	case *resourcev1.DeviceClass:
		return &fleet.DeviceClass{
			Name: o.Name, Selectors: expressions(o.Spec.Selectors), Resource: ptr.Deref(o.Spec.ExtendedResourceName, ""),
		}
	case *resourcev1.ResourceClaimTemplate:
		return &fleet.DeviceClaimTemplate{Namespace: o.Namespace, Name: o.Name, Demand: demand(&o.Spec.Spec.Devices)}
	case *resourcev1.ResourceClaim:
		return claim(o)
	case *resourcev1.ResourceSlice:
		return r.slice(o)
	}
	return nil
}
