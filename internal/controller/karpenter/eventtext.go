package karpenter

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nodeautoprovision/nap/internal/mask"
)

// mostEvent is the longest message of an event, in characters: what people and tables of
// kubectl take in at once. Verdicts come first, so that what is cut off is detail, which conditions
// and nap explain have in full.
const mostEvent = 200

// recorderOf records the events of all controllers, those of Karpenter's among them.
func recorderOf(mgr manager.Manager) record.EventRecorder {
	//nolint:staticcheck // Karpenter's recorder and controllers are built on the events API that this returns.
	return shortEvents{mgr.GetEventRecorderFor(eventSource)}
}

// shortEvents records events on one line of at most mostEvent characters, without secrets that
// errors of Azure or of connections may have.
type shortEvents struct{ record.EventRecorder }

func (s shortEvents) Event(object runtime.Object, kind, reason, message string) {
	s.EventRecorder.Event(object, kind, reason, shortMessage(message))
}

func (s shortEvents) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	s.EventRecorder.Event(object, kind, reason, shortMessage(fmt.Sprintf(format, args...)))
}

func (s shortEvents) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	s.EventRecorder.AnnotatedEventf(object, annotations, kind, reason, "%s", shortMessage(fmt.Sprintf(format, args...)))
}

// shortMessage masks secrets in a message, puts it on one line, and ends one that is too long after
// a word with three dots.
func shortMessage(message string) string {
	message = strings.Join(strings.Fields(mask.Text(message)), " ")
	letters := []rune(message)
	if len(letters) <= mostEvent {
		return message
	}
	const dots = "..."
	cut := string(letters[:mostEvent-len(dots)])
	if at := strings.LastIndexByte(cut, ' '); at > mostEvent/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,;:.(") + dots
}
