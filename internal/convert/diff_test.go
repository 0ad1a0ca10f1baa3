package convert

import (
	"fmt"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"the same", "a\nb\n", "a\nb\n", ""},
		{"a line is changed", "a\nb\nc\nd\ne\nf\n", "a\nb\nc\nx\ne\nf\n", "  b\n  c\n- d\n+ x\n  e\n  f\n"},
		{"lines come at the end", "a\n", "a\nb\nc\n", "  a\n+ b\n+ c\n"},
		{"lines go from the beginning", "a\nb\nc\n", "c\n", "- a\n- b\n  c\n"},
		{"two runs", "a\n1\n2\n3\n4\n5\nb\n", "x\n1\n2\n3\n4\n5\ny\n", "- a\n+ x\n  1\n  2\n  ...\n  4\n  5\n- b\n+ y\n"},
		{"a line is twice", "a\na\n", "a\n", "  a\n- a\n"},
	} {
		if got := Diff(c.before, c.after); strings.TrimRight(got, "\n") != strings.TrimRight(c.want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// Texts of a hundred thousand lines are compared, too: a table of all pairs would take gigabytes.
func TestDiffOfLongTexts(t *testing.T) {
	var lines []string
	for i := range 100_000 {
		lines = append(lines, fmt.Sprint("- v", i))
	}
	before := strings.Join(lines, "\n")
	lines[50_000] = "- other"
	if got := Diff(before, strings.Join(lines, "\n")); strings.Count(got, "\n") > 8 || !strings.Contains(got, "+ - other") {
		t.Errorf("one line of many differs, got %.200s", got)
	}
	lines[10], lines[99_990] = "- first", "- last"
	if got := Diff(before, strings.Join(lines, "\n")); !strings.Contains(got, "+ - first") || !strings.Contains(got, "- - v99990") {
		t.Errorf("lines far apart differ, got %.200s", got)
	}
}
