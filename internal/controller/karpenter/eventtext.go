package karpenter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nodeautoprovision/nap/internal/controller/event"
)

// recorderOf records the events of all controllers, those of Karpenter's among them.
func recorderOf(mgr manager.Manager) record.EventRecorder {
	//nolint:staticcheck // Karpenter's recorder and controllers are built on the events API that this returns.
	return shortEvents{mgr.GetEventRecorderFor(eventSource)}
}

// shortEvents records events as [event.Line] has them, those of Karpenter's controllers, too.
type shortEvents struct{ record.EventRecorder }

func (s shortEvents) Event(object runtime.Object, kind, reason, message string) {
	s.EventRecorder.Event(object, kind, reason, event.Line(message))
}

func (s shortEvents) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	s.EventRecorder.Event(object, kind, reason, event.Line(fmt.Sprintf(format, args...)))
}

func (s shortEvents) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	s.EventRecorder.AnnotatedEventf(object, annotations, kind, reason, "%s", event.Line(fmt.Sprintf(format, args...)))
}
