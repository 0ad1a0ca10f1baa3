package arch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A package with more files than mostFiles or more lines than mostLines, tests not
// counted, is several rooms in one.
const (
	mostFiles = 15
	mostLines = 4000
)

// TestRoomsOfPlannerAndSimulatorAreSmall holds that a reader knows a package of the
// planner, or of the simulated Azure, within a day.
func TestRoomsOfPlannerAndSimulatorAreSmall(t *testing.T) {
	for _, p := range packages(t) {
		room := strings.TrimPrefix(p.ImportPath, module)
		if !within(room, "internal/planner", "internal/armsim") {
			continue
		}
		lines := 0
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join("../..", room, name))
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(text, []byte("\n"))
		}
		if len(p.GoFiles) > mostFiles || lines > mostLines {
			t.Errorf("%s has %d files and %d lines, allowed are %d and %d: split it into packages by what its parts know",
				room, len(p.GoFiles), lines, mostFiles, mostLines)
		}
	}
}
