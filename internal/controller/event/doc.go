// Package event makes every event that nap sends: one function for each sentence, and one list of
// what each reason means and what to do about it ([Reasons]), which is docs/events.md. Loops
// publish what they get here, so that no event is sent that the list lacks.
//
// A message is one sentence of at most [Most] characters with its verdict first ([Line]). What
// Azure or an API server says comes after the verdict, and names last, so that what is cut off is
// detail: conditions and nap explain have it in full.
package event

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/mask"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Most is the longest message of an event, in characters: what people and tables of kubectl take
// in at once.
const Most = 200

// Line makes the message of an event of a text: one sentence of at most Most characters, without
// the secrets that errors of Azure or of connections may have.
func Line(text string) string { return model.Sentence(mask.Text(text), Most) }

// normal is an event about what is as it should be. It is sent again when one of the values that
// tell it from others has changed.
func normal(object client.Object, reason, message string, values ...string) events.Event {
	return made(object, corev1.EventTypeNormal, reason, message, values)
}

// warning is an event about what may need a change of a pod, NodePool or subscription.
func warning(object client.Object, reason, message string, values ...string) events.Event {
	return made(object, corev1.EventTypeWarning, reason, message, values)
}

func made(object client.Object, kind, reason, message string, values []string) events.Event {
	message = Line(message)
	if len(values) == 0 {
		values = []string{message}
	}
	return events.Event{
		InvolvedObject: object, Type: kind, Reason: reason, Message: message,
		DedupeValues: append([]string{string(object.GetUID())}, values...),
	}
}

// lines makes lines of the messages of events that Karpenter's functions make.
func lines(es ...events.Event) []events.Event {
	for i := range es {
		es[i].Message = Line(es[i].Message)
	}
	return es
}
