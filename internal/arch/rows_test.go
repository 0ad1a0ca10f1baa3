package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryTestThatThePageOfTrapsNamesExists keeps docs/azure-traps.md true.
func TestEveryTestThatThePageOfTrapsNamesExists(t *testing.T) {
	page, err := os.ReadFile("../../docs/azure-traps.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("^\\| .+ \\| `(Test\\w+)(?:/([^`]+))?` in (\\S+) \\|$")
	rows := 0
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") || strings.HasSuffix(line, "| test |") {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("a row names no test: %s", line)
			continue
		}
		rows++
		file, err := os.ReadFile(filepath.Join("../..", m[3]))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(file), "func "+m[1]+"(t *testing.T)") {
			t.Errorf("%s has no %s", m[3], m[1])
		}
		// A subtest's name may be put together: "async " and the code.
		if sub := strings.TrimPrefix(m[2], "async "); sub != "" && !strings.Contains(string(file), `"`+sub+`"`) && !strings.Contains(string(file), `"`+m[2]+`"`) {
			t.Errorf("%s has no row %q", m[3], m[2])
		}
	}
	if rows < 50 {
		t.Errorf("the page has %d rows that name a test; it lists every answer of Azure and every trap", rows)
	}
}
