package event

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/events.md anew")

const eventsPage = "../../../docs/events.md"

// The page lists the reasons as they are.
func TestPageOfEventsIsComplete(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, `# Events

What nap tells on objects, by the reason of the event. Each is one sentence of at most %d characters with its verdict first, sent when something has changed. Names stand last: where they are long, what is left out ends in "...", and conditions and `+"`nap explain`"+` have all of it.

    kubectl get events --all-namespaces --field-selector source=karpenter
    nap explain reason PriceDiffers

The component is `+"`karpenter`"+`, as with Karpenter, so that what you watch today goes on working. Karpenter's controllers that run inside nap-controller send [further ones](karpenter-metrics.md#events). Each condition of a NodeClaim, NodePool or node that changes is an event, too, with the type of the condition as its reason, such as `+"`Launched`, `Registered` and `Initialized`"+`. With two replicas, that one of them leads now is the event `+"`LeaderElection`"+` on the lease.

| reason | on | type | what it says | what to do |
|---|---|---|---|---|
`, Most)
	for _, r := range Reasons() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Name, strings.Join(r.On, ", "), r.Type, r.Says, cell(r.Do))
	}
	if *rewrite {
		if err := os.WriteFile(eventsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(eventsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != b.String() {
		t.Errorf("%s does not list the reasons as they are; run this test with -rewrite", eventsPage)
	}
}

// cell is a text that a table cannot take for its own marks.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
