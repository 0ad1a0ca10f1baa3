package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const monitoringPage = "../../docs/monitoring.md"

// TestPageOfMonitoringHasEveryMetric: the page lists the metrics that nap registers under
// its own name, and no others.
func TestPageOfMonitoringHasEveryMetric(t *testing.T) {
	registered := regexp.MustCompile(`(?:Name: +|NewDesc\()"(nap_[a-z_]+)"`)
	var want []string
	for _, root := range []string{"../controller", "../azure"} {
		for _, file := range goFiles(t, root) {
			for _, found := range registered.FindAllSubmatch(read(t, file), -1) {
				want = append(want, string(found[1]))
			}
		}
	}
	got := namesOnPage(t, "`(nap_[a-z_]+)`", "| metric | type |", "\n\n")
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
		t.Errorf("metrics on %s (-registered +listed):\n%s", monitoringPage, diff)
	}
}

// TestPageOfMonitoringHasEveryAlert: the page lists the alerts of the chart.
func TestPageOfMonitoringHasEveryAlert(t *testing.T) {
	var want []string
	for _, found := range regexp.MustCompile(`alert: (\w+)`).FindAllSubmatch(read(t, "../../charts/nap/files/rules.yaml"), -1) {
		want = append(want, string(found[1]))
	}
	got := namesOnPage(t, "(?m)^\\| `(Nap[A-Za-z]+)`", "| alert | when |", "\n\n")
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
		t.Errorf("alerts on %s (-chart +listed):\n%s", monitoringPage, diff)
	}
}

// namesOnPage are the names that the page has between two texts, sorted.
func namesOnPage(t *testing.T, pattern, from, to string) []string {
	t.Helper()
	_, table, found := strings.Cut(string(read(t, monitoringPage)), from)
	if !found {
		t.Fatalf("%s has no table %q", monitoringPage, from)
	}
	table, _, _ = strings.Cut(table, to)
	var out []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(table, -1) {
		out = append(out, match[1])
	}
	return slices.Sorted(slices.Values(out))
}

// goFiles are the Go files below a folder, tests left out.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
