// Package beside has what both engines stand on when they are measured beside
// each other in one process: what can be bought, as each of them asks for it, and
// how the heap and the time of the cores are read.
package beside

import (
	"context"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"

	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// Catalog gives every NodePool the same catalogue.
type Catalog struct{ catalog *fleet.Catalog }

// NewCatalog converts the instance types once, as nap's controller does.
func NewCatalog(types []*cloudprovider.InstanceType) Catalog { return Catalog{kube.Catalog(types)} }

// Catalog implements fleet.Catalogs.
func (c Catalog) Catalog(context.Context, string) (*fleet.Catalog, error) { return c.catalog, nil }

// Heap is the bytes of objects, garbage not yet collected included.
func Heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Peak samples the heap while work runs and returns the most that it rose above
// where it began.
func Peak(every time.Duration, work func()) uint64 {
	runtime.GC()
	before := Heap()
	most, done := make(chan uint64), make(chan struct{})
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		top := before
		for {
			select {
			case <-ticker.C:
				top = max(top, Heap())
			case <-done:
				most <- max(top, Heap())
				return
			}
		}
	}()
	work()
	close(done)
	return <-most - before
}

// CPU is how much time all cores together have spent on this process, garbage
// collection included. On a machine that is busy with other things it says more
// than the time that passes.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot be: the process asks about itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
