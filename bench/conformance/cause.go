package conformance

import (
	"strings"
)

// cause explains why specs do not pass, in better words than those of the suite.
type cause struct {
	// suite is the suite's name, prefix what the names of the specs begin with, and engine the engine, empty for both.
	suite, prefix, engine string
	// why is a sentence for the page.
	why string
}

// causes are looked through in order; the first that fits counts.
func causes() []cause {
	return []cause{
		{"regression", "DefaultTopologySpreadConstraints should default only the pods", EngineKarpenter,
			"Played three times, once passed: otherwise the scheduler had put two of its pods on one node before all four machines were there."},
		{"regression", "Integration Utilization", EngineNap,
			"The case did what it asserts; then its check for crashes found restarts: on two cores with a load of 30 the API server " +
				"did not answer, and the controller lost its lease and started again, as it should."},
		{"disruption", "Repair Kubelet conditions", "", "The spec asks for KWOK's own class of nodes."},
		{"performance", "", "", "Not played yet: a case takes 5 to 50 minutes."},
	}
}

func causeOf(suite, engine, spec string) string {
	for _, c := range causes() {
		if c.suite == suite && strings.HasPrefix(spec, c.prefix) && (c.engine == "" || c.engine == engine) {
			return c.why
		}
	}
	return ""
}
