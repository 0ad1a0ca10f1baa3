package cloudprovider

import (
	"sync"

	"sigs.k8s.io/karpenter/pkg/events"
)

// laterRecorder publishes events once it knows where to; those before that are dropped. It is safe
// for concurrent use.
type laterRecorder struct {
	mu sync.Mutex
	// to is nil until publishTo is called.
	to events.Recorder
}

func (r *laterRecorder) publishTo(to events.Recorder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

// Publish publishes events.
func (r *laterRecorder) Publish(es ...events.Event) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	if to != nil {
		to.Publish(es...)
	}
}
