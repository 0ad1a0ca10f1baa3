package event

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// However much was found, the event of a row has at most 200 characters, begins with the verdict and
// ends with what to do.
func TestEventOfRowNotMetSaysWhatToDo(t *testing.T) {
	long := strings.Repeat("subnet 10.0.0.0/24 ", 60)
	for _, row := range prerequisites.Table() {
		for fix, want := range map[string]string{
			"az aks update -g g -n n --network-policy cilium": "; mend it: az aks update -g g -n n --network-policy cilium",
			long:              "nap doctor says how to mend it",
			"":                "nap doctor says how to mend it",
			"first\nand then": "nap doctor says how to mend it",
		} {
			for _, finding := range []string{"short.", long} {
				got := notMet(&prerequisites.Result{Number: row.Number, Name: row.Name, Verdict: prerequisites.Failed, Finding: finding, Fix: fix})
				if utf8.RuneCountInString(got) > Most || !strings.HasSuffix(got, want) || !strings.Contains(got, row.Name+" is not met (failed): s") {
					t.Errorf("%d characters: %q, want the end %q", utf8.RuneCountInString(got), got, want)
				}
			}
		}
	}
}
