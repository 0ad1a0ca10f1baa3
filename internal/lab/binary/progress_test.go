package binary

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestProgressForetellsTheRest(t *testing.T) {
	for _, c := range []struct {
		compiled, planned int
		elapsed           time.Duration
		want              string
	}{
		{10, 0, 20 * time.Second, "  10 packages compiled, 20s elapsed"},
		{10, 2000, 20 * time.Second, "  10 of 2000 packages compiled, 20s elapsed"},
		{500, 2000, 100 * time.Second, "  500 of 2000 packages compiled, 1m40s elapsed, about 5m0s to go"},
		{1999, 2000, 400 * time.Second, "  1999 of 2000 packages compiled, 6m40s elapsed, about 10s to go"},
		{2000, 2000, 400 * time.Second, "  2000 packages compiled, 6m40s elapsed, linking"},
		{2001, 2000, 400 * time.Second, "  2001 packages compiled, 6m40s elapsed"},
	} {
		if got := progressLine(c.compiled, c.planned, c.elapsed); got != c.want {
			t.Errorf("progress of %d of %d = %q, want %q", c.compiled, c.planned, got, c.want)
		}
	}
}

// What is in no cache is counted, with what it imports.
func TestRemainingCountsWhatMustBeCompiled(t *testing.T) {
	source := t.TempDir()
	writeFile(t, filepath.Join(source, "go.mod"), "module example.com/x\n\ngo 1.26\n")
	writeFile(t, filepath.Join(source, "main.go"), "package main\n\nimport \"example.com/x/y\"\n\nfunc main() { y.Do() }\n")
	writeFile(t, filepath.Join(source, "y", "y.go"), "package y\n\n// Do is of "+source+".\nfunc Do() {}\n")
	environ := append(os.Environ(), "GOWORK=off", "GOCACHE="+t.TempDir())
	if got := uncompiled(t.Context(), source, environ); got < 2 {
		t.Errorf("%d packages must be compiled, want 2 and those of the standard library", got)
	}
	if got := uncompiled(t.Context(), t.TempDir(), environ); got != 0 {
		t.Errorf("%d packages must be compiled where there is no module, want 0", got)
	}
}
