package controllercli

import (
	"cmp"
	stdflag "flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// Every flag of Karpenter's is one of nap's with the same default, or stands in
// docs/differences.md as one that does not exist.
func TestFlagsOfKarpenterKeepNamesAndDefaults(t *testing.T) {
	var o options.Options
	theirs := options.FlagSet{FlagSet: stdflag.NewFlagSet("karpenter", stdflag.ContinueOnError)}
	o.AddFlags(&theirs)
	defaults := map[string]string{ // of flags whose set has no text of them
		"enable-profiling":                    strconv.FormatBool(o.EnableProfiling),
		"disable-controller-warmup":           strconv.FormatBool(o.DisableControllerWarmup),
		"disable-leader-election":             strconv.FormatBool(o.DisableLeaderElection),
		"disable-cluster-state-observability": strconv.FormatBool(o.DisableClusterStateObservability),
		"ignore-dra-requests":                 strconv.FormatBool(o.IgnoreDRARequests),
		"legacy-node-repair":                  strconv.FormatBool(o.LegacyNodeRepair),
		"feature-gates":                       "", // TestEveryGateOfKarpenterIsKnown
	}
	text, err := os.ReadFile("../../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	_, refused, found := strings.Cut(string(text), "**Refused settings.**")
	if !found {
		t.Fatal("docs/differences.md has no paragraph about refused settings")
	}
	refused, _, _ = strings.Cut(refused, "\n\n")
	ours, n := newController(command.Streams{}).Flags(), 0
	theirs.VisitAll(func(f *stdflag.Flag) {
		n++
		mine, told := ours.Lookup(f.Name), strings.Contains(refused, "`--"+f.Name+"`")
		want, known := defaults[f.Name]
		if !known {
			want = f.DefValue
		}
		switch {
		case mine == nil && !told:
			t.Errorf("--%s of Karpenter's does not exist, and docs/differences.md does not say so", f.Name)
		case mine != nil && told:
			t.Errorf("docs/differences.md says that --%s does not exist", f.Name)
		case mine != nil && mine.DefValue != want:
			t.Errorf("--%s is %q by default, with Karpenter %q", f.Name, cmp.Or(mine.DefValue, "empty"), cmp.Or(want, "empty"))
		}
	})
	if n < 20 {
		t.Errorf("Karpenter has %d flags: its set was not read", n)
	}
}
