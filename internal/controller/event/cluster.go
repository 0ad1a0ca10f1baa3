package event

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/mask"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// The reasons of events on the NodeAutoProvisioning.
const (
	ReasonSwitchedOn         = "SwitchedOn"
	ReasonSwitchedOff        = "SwitchedOff"
	ReasonPrerequisiteNotMet = "PrerequisiteNotMet"
	ReasonPrerequisiteMet    = "PrerequisiteMet"
)

// Switched says that the mode is another one.
func Switched(object *v1alpha1.NodeAutoProvisioning) events.Event {
	if object.Spec.Mode == v1alpha1.ModeManual {
		return normal(object, ReasonSwitchedOff, "Nothing is bought, and nothing is removed voluntarily", version(object))
	}
	return normal(object, ReasonSwitchedOn, "Nodes are provisioned", version(object))
}

// PrerequisiteMet says that a prerequisite is met again. at tells it from the last time.
func PrerequisiteMet(object *v1alpha1.NodeAutoProvisioning, r *prerequisites.Result, at string) events.Event {
	return normal(object, ReasonPrerequisiteMet, fmt.Sprintf("Prerequisite %d %s is met", r.Number, r.Name), r.Name, at)
}

// PrerequisiteNotMet says that a prerequisite is not met any more.
func PrerequisiteNotMet(object *v1alpha1.NodeAutoProvisioning, r *prerequisites.Result, at string) events.Event {
	return warning(object, ReasonPrerequisiteNotMet, notMet(r), r.Name, at)
}

// mostFix is how much of an event what to do may take.
const mostFix = 80

// notMet says what is not met, and what to do: the fix where it is short, or the command that says
// it. What is too long of what was found ends after a word.
func notMet(r *prerequisites.Result) string {
	verdict := fmt.Sprintf("Prerequisite %d %s is not met (%s): ", r.Number, r.Name, r.Verdict)
	next := "; mend it: " + r.Fix
	if r.Fix == "" || utf8.RuneCountInString(next) > mostFix || strings.Contains(r.Fix, "\n") {
		next = "; nap doctor says how to mend it"
	}
	room := Most - utf8.RuneCountInString(verdict) - utf8.RuneCountInString(next)
	return verdict + model.Sentence(strings.TrimSuffix(mask.Text(r.Finding), "."), room) + next
}
