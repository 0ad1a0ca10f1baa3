package arch

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// densityRow is a row of docs/planner.md: a room of the planner, and how many percent of
// its lines are comments.
var densityRow = regexp.MustCompile("(?m)^\\| `(internal/planner[a-z/]*)` \\| ([0-9]+) \\|")

// TestPlannerPageStatesCommentDensity: the page lists every room of the planner with the
// share of comments among its lines that are not blank, tests not counted, give or take
// two points. With -v it prints the rows.
func TestPlannerPageStatesCommentDensity(t *testing.T) {
	page, err := os.ReadFile("../../docs/planner.md")
	if err != nil {
		t.Fatal(err)
	}
	stated := map[string]int{}
	for _, row := range densityRow.FindAllStringSubmatch(string(page), -1) {
		if stated[row[1]], err = strconv.Atoi(row[2]); err != nil {
			t.Fatal(err)
		}
	}
	comments, lines := map[string]int{}, map[string]int{}
	err = filepath.WalkDir("../planner", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		room := "internal/" + filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../"))
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" {
				lines[room]++
			}
			if strings.HasPrefix(line, "//") {
				comments[room]++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for room, n := range lines {
		percent := 100 * float64(comments[room]) / float64(n)
		t.Logf("| `%s` | %.0f |", room, percent)
		want, ok := stated[room]
		if !ok || math.Abs(percent-float64(want)) > 2 {
			t.Errorf("docs/planner.md states %d percent for %s (listed: %t), it has %.1f", want, room, ok, percent)
		}
		delete(stated, room)
	}
	for room := range stated {
		t.Errorf("docs/planner.md lists %s, which is no room of the planner", room)
	}
}
