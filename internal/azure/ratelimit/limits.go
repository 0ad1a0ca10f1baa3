package ratelimit

import (
	"math"
	"net/http"
	"strings"
)

// Limit is a token bucket: Burst requests at once, PerSecond in the long run.
type Limit struct {
	// Class is Azure's own name for what is counted, as in its headers.
	Class string
	// PerResource counts every resource by itself instead of the subscription.
	PerResource bool
	Burst       float64
	PerSecond   float64
}

// Published are the limits that Azure documents for a subscription and region:
// Resource Manager's own (reads, writes, deletes), those of the compute and the
// network provider, and Resource Graph's.
func Published() []Limit {
	const minute = 60
	return []Limit{
		{Class: "reads", Burst: 250, PerSecond: 25},
		{Class: "writes", Burst: 200, PerSecond: 10},
		{Class: "deletes", Burst: 200, PerSecond: 10},
		{Class: "PutVM", Burst: 1500, PerSecond: 500. / minute},
		{Class: "PutVM", PerResource: true, Burst: 12, PerSecond: 4. / minute},
		{Class: "UpdateVM", Burst: 1500, PerSecond: 500. / minute},
		{Class: "UpdateVM", PerResource: true, Burst: 12, PerSecond: 4. / minute},
		{Class: "DeleteVM", Burst: 1500, PerSecond: 500. / minute},
		{Class: "DeleteVM", PerResource: true, Burst: 12, PerSecond: 4. / minute},
		{Class: "LowCostGetVM", Burst: 24_000, PerSecond: 8000. / minute},
		{Class: "LowCostGetVM", PerResource: true, Burst: 36, PerSecond: 12. / minute},
		{Class: "HighCostGetVM", Burst: 90, PerSecond: 30. / minute},
		{Class: "GetOperation", Burst: 15_000, PerSecond: 5000. / minute},
		{Class: "GetOperation", PerResource: true, Burst: 45, PerSecond: 15. / minute},
		{Class: "NetworkWrite", Burst: 1000, PerSecond: 200. / minute},
		{Class: "NetworkRead", Burst: 10_000, PerSecond: 2000. / minute},
		{Class: "ResourceGraph", Burst: 15, PerSecond: 180. / minute},
	}
}

// managerClasses are those of Resource Manager itself.
func managerClasses() []string { return []string{"reads", "writes", "deletes"} }

// classes are Resource Manager's class of a request and its provider's, which is
// empty where none is published.
func classes(method, path string) (manager, provider string) {
	switch method {
	case http.MethodGet, http.MethodHead:
		manager = "reads"
	case http.MethodDelete:
		manager = "deletes"
	default:
		manager = "writes"
	}
	return manager, providerClass(method, strings.ToLower(path))
}

func providerClass(method, path string) string {
	_, rest, found := strings.Cut(path, "/providers/")
	if !found {
		return ""
	}
	reads := method == http.MethodGet || method == http.MethodHead
	switch {
	case strings.HasPrefix(rest, "microsoft.network/"):
		if reads {
			return "NetworkRead"
		}
		return "NetworkWrite"
	case strings.HasPrefix(rest, "microsoft.resourcegraph/"):
		return "ResourceGraph"
	case strings.HasPrefix(rest, "microsoft.compute/locations/") && strings.Contains(rest, "/operations/"):
		return "GetOperation"
	case strings.HasPrefix(rest, "microsoft.compute/virtualmachines"):
		return machineClass(method, strings.Split(strings.Trim(rest, "/"), "/"))
	}
	return ""
}

// unlimited is the limit of a provider that has published none: nothing is known of it but
// what a refusal says.
func unlimited(kind string) Limit {
	return Limit{Class: kind, PerResource: true, Burst: math.MaxInt32, PerSecond: math.MaxInt32}
}

// unpublishedKind names what a provider that has published no limits counts, as far as can
// be told: what is done, and with which type of resource. It is empty for requests to
// Resource Manager itself.
func unpublishedKind(manager, path string) string {
	const marker = "/providers/"
	path = strings.ToLower(path)
	at := strings.LastIndex(path, marker)
	if at < 0 {
		return ""
	}
	segments := strings.Split(strings.Trim(path[at+len(marker):], "/"), "/")
	kind := manager + " " + segments[0]
	for i := 1; i < len(segments); i += 2 { // a name follows each type
		kind += "/" + segments[i]
	}
	return kind
}

// machineClass is the class of a request about virtual machines; the segments
// begin with the provider.
func machineClass(method string, segments []string) string {
	const listOfMachines, oneMachine = 2, 3
	switch method {
	case http.MethodGet, http.MethodHead:
		if len(segments) == listOfMachines {
			return "HighCostGetVM"
		}
		return "LowCostGetVM"
	case http.MethodPut:
		if len(segments) == oneMachine {
			return "PutVM"
		}
		return "UpdateVM"
	case http.MethodDelete:
		if len(segments) == oneMachine {
			return "DeleteVM"
		}
	case http.MethodPost:
		return "DeleteVM"
	}
	return "UpdateVM"
}

// rankOf puts requests in order where they wait for one budget: a machine whose
// interface exists goes before interfaces of machines that have not been asked
// for, and what a running machine still needs comes last. So half a burst of
// launches is through in half the time.
func rankOf(method, path string) int {
	const first, usual, last = 0, 1, 2
	switch providerClass(method, strings.ToLower(path)) {
	case "PutVM":
		return first
	case "UpdateVM":
		return last
	}
	return usual
}
