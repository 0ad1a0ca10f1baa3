package event

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// The reasons of events on AKSNodeClasses. Those about launches are on NodePools, too.
const (
	ReasonPurchasesPaused  = "PurchasesPaused"
	ReasonPurchasesResumed = "PurchasesResumed"
	ReasonLaunchesPaused   = "LaunchesPaused"
	ReasonLaunchesResumed  = "LaunchesResumed"
	ReasonWaitingOnClaims  = "WaitingOnNodeClaimTermination"
	ReasonLocalDNSUnknown  = "LocalDNSUnknown"
	ReasonWindowUnknown    = "MaintenanceWindowUnknown"
)

// PurchasesPaused says on a class that little or nothing is bought with it, and why.
func PurchasesPaused(class *v1beta1.AKSNodeClass, text string) events.Event {
	return warning(class, ReasonPurchasesPaused, text)
}

// PurchasesResumed says on a class that machines are bought with it as before.
func PurchasesResumed(class *v1beta1.AKSNodeClass) events.Event {
	return normal(class, ReasonPurchasesResumed,
		"Machines of this class register as nodes again, or it has another image or version; they are bought as before")
}

// LaunchesPaused says on a class or NodePool why nothing is launched. watch is what was looked at,
// and finding the code of what was found.
func LaunchesPaused(object client.Object, text, watch, finding string) events.Event {
	return warning(object, ReasonLaunchesPaused, text, watch, finding, version(object))
}

// LaunchesResumed says on a class or NodePool that machines are launched again.
func LaunchesResumed(object client.Object, text, watch string) events.Event {
	return normal(object, ReasonLaunchesResumed, text, watch, "", version(object))
}

// mostClaims is how many NodeClaims an event names, where their names are short enough.
const mostClaims = 5

// WaitingOnClaims says on a class that is deleted which NodeClaims keep it. Precondition: there are
// some.
func WaitingOnClaims(class *v1beta1.AKSNodeClass, claims []string) events.Event {
	text := ""
	for n := range min(len(claims), mostClaims) {
		longer := "Waiting on NodeClaim termination for " + strings.Join(claims[:n+1], ", ")
		if more := len(claims) - n - 1; more > 0 {
			longer += fmt.Sprintf(" and %d more", more)
		}
		if n > 0 && utf8.RuneCountInString(longer) > Most {
			break
		}
		text = longer
	}
	return normal(class, ReasonWaitingOnClaims, text, "")
}

// LocalDNSUnknown says on a class that nap may not see what decides on a DNS cache.
func LocalDNSUnknown(class *v1beta1.AKSNodeClass, why error) events.Event {
	return warning(class, ReasonLocalDNSUnknown, "spec.localDNS.mode Preferred counts as disabled: "+why.Error())
}

// WindowUnknown says on a class that machines are not replaced for something, since the maintenance
// window is not known.
func WindowUnknown(class *v1beta1.AKSNodeClass, what string, why error) events.Event {
	return warning(class, ReasonWindowUnknown, "Machines are not replaced for "+what+": "+why.Error())
}
