package cloudprovider

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/events"
)

// warnings publishes events of type Warning. It is safe for concurrent use.
type warnings struct {
	mu sync.Mutex
	// recorder is nil until publishTo is called; warnings before that are dropped.
	recorder events.Recorder
}

func (w *warnings) publishTo(r events.Recorder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recorder = r
}

// tell publishes a warning about a class or a claim.
func (w *warnings) tell(about client.Object, reason, message string) {
	w.publish(about, corev1.EventTypeWarning, reason, message)
}

// note publishes what is as it should be.
func (w *warnings) note(about client.Object, reason, message string) {
	w.publish(about, corev1.EventTypeNormal, reason, message)
}

func (w *warnings) publish(about client.Object, kind, reason, message string) {
	w.mu.Lock()
	recorder := w.recorder
	w.mu.Unlock()
	if recorder != nil {
		recorder.Publish(events.Event{
			InvolvedObject: about, Type: kind, Reason: reason,
			Message: message, DedupeValues: []string{string(about.GetUID()), message},
		})
	}
}
