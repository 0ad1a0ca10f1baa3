package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// TestPageOfTrapsNamesExistingTests keeps docs/azure-traps.md true.
func TestPageOfTrapsNamesExistingTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/azure-traps.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("^\\| .+ \\| `(Test\\w+)(?:/([^`]+))?` in (\\S+) \\|$")
	// What begins with three digits is a status code and no number of an answer.
	number := regexp.MustCompile(`^\| (\d{1,2}) `)
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
		if sub := strings.TrimPrefix(m[2], "async "); sub != "" &&
			!strings.Contains(string(file), `"`+sub+`"`) && !strings.Contains(string(file), `"`+m[2]+`"`) {
			t.Errorf("%s has no row %q", m[3], m[2])
		}
	}
	checkNumbers(t, said)
	checkAnswers(t, string(page))
	if rows == 0 {
		t.Error("the page has no row that names a test")
	}
}

// checkNumbers sees to it that the answers and the traps are numbered without a gap,
// and that every trap which a test is named after has a row. The keys of said are
// section and number.
func checkNumbers(t *testing.T, said map[string]bool) {
	t.Helper()
	traps := 0
	name := regexp.MustCompile(`func TestTrap(\d+)`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			n, _ := strconv.Atoi(m[1])
			traps = max(traps, n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{"How Azure says no", "Traps"} {
		last := 0
		for key := range said {
			if n, ok := strings.CutPrefix(key, section+" "); ok {
				number, _ := strconv.Atoi(strings.TrimSpace(n))
				last = max(last, number)
			}
		}
		if section == "Traps" {
			last = max(last, traps)
		}
		for n := 1; n <= last; n++ {
			if !said[fmt.Sprint(section, " ", n)] {
				t.Errorf("number %d of %q has no row", n, section)
			}
		}
	}
}

// checkAnswers sees to it that the page has a row for every code that the table of
// refusals reacts to.
func checkAnswers(t *testing.T, page string) {
	t.Helper()
	for _, r := range unavailable.Refusals() {
		for _, a := range r.Answers {
			named := slices.ContainsFunc(a.Codes, func(code string) bool { return strings.Contains(page, "`"+code+"`") })
			if len(a.Codes) > 0 && !named {
				t.Errorf("no row names an answer %v, kind %s", a.Codes, r.Kind)
			}
		}
	}
}
