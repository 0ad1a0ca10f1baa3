package provisioning

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

// incompatibleEvery is how often NodePools that match nothing are looked for, as often as
// Karpenter's event comes again.
const incompatibleEvery = time.Minute

// incompatible tells NodePools whose requirements leave nothing of what their node class
// offers. One goroutine uses it.
type incompatible struct {
	kube     client.Reader
	recorder events.Recorder
	clock    clock.Clock
	// looked is when NodePools were looked at, zero before that.
	looked time.Time
}

func (r *incompatible) report(ctx context.Context, in *planInputs) {
	if !r.looked.IsZero() && r.clock.Since(r.looked) < incompatibleEvery {
		return
	}
	r.looked = r.clock.Now()
	p, records := in.input.Problem, map[string]*fleet.Pool{}
	for _, record := range in.snapshot.Pools() {
		records[record.Name] = record
	}
	for i := range p.Pools {
		record := records[p.Pools[i].Name]
		if record == nil {
			continue
		}
		catalog := &fleet.Catalog{InstanceTypes: p.Catalogs[p.Pools[i].Catalog].InstanceTypes}
		why := poollint.Nothing(record, catalog, poollint.Advice(catalog, func(string) string { return "" }))
		if why == "" {
			continue
		}
		pool := &karpv1.NodePool{}
		if r.kube.Get(ctx, client.ObjectKey{Name: record.Name}, pool) != nil {
			continue // it has just gone
		}
		event := scheduling.NoCompatibleInstanceTypes(pool, false)
		event.Message += ": " + why
		r.recorder.Publish(event)
	}
}
