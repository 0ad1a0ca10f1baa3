package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// nap explain reason knows every code that nap lint finds and every reason of drift, found in their
// sources and on the page.
func TestReasonsOfOtherCommandsAreExplained(t *testing.T) {
	for path, code := range map[string]*regexp.Regexp{
		"../poollint/lint.go":                  regexp.MustCompile(`(?m)^\t\w+\s+Code = "(\w+)"$`),
		"../controller/cloudprovider/drift.go": regexp.MustCompile(`(?m)^\tDrift\w+\s+karpcloud.DriftReason = "(\w+)"$`),
		"diff.go":                              regexp.MustCompile(`(?m)^\tdrifted\w+\s+= "(\w+)"$`),
		"../kube/machine.go":                   regexp.MustCompile(`(?m)^const drift\w+ = "(\w+)"$`),
		"../../docs/azure.md":                  regexp.MustCompile("(?m)^\\| `(\\w+(?:Drift|Drifted|NotFound))` \\|"),
		"../../docs/convert.md":                regexp.MustCompile("(?m)^\\| `([A-Z]\\w+)` \\|"),
		"../../docs/events.md":                 regexp.MustCompile("(?m)^\\| `([A-Z]\\w+)` \\|"),
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := code.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s has no codes", path)
		}
		for _, m := range found {
			out, errs, exit := nap.Run(t, "explain", "reason", m[1])
			if exit != 0 || !strings.Contains(out, ": ") {
				t.Errorf("%s of %s: exit code %d\n%s%s", m[1], path, exit, out, errs)
			}
		}
	}
}
