package arch

import (
	"fmt"
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
	number := regexp.MustCompile(`^\| (\d+) `)
	rows, section, said := 0, "", map[string]bool{}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = name + " "
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") || strings.HasSuffix(line, "| test |") {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("a row names no test: %s", line)
			continue
		}
		rows++
		if n := number.FindStringSubmatch(line); n != nil {
			said[section+n[1]] = true
		}
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
	for section, last := range map[string]int{"How Azure says no": 9, "Traps": 27} {
		for n := 1; n <= last; n++ {
			if !said[fmt.Sprint(section, " ", n)] {
				t.Errorf("number %d of %q has no row", n, section)
			}
		}
	}
	if rows < 75 {
		t.Errorf("the page has %d rows that name a test; it lists every answer of Azure and every trap", rows)
	}
}
