package bench

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteBetweenMarksKeepsTheRest(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteBetweenMarks(page, "x", "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if want := "a\n<!-- x: begin -->\nnew\n<!-- x: end -->\nb\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if err := WriteBetweenMarks(page, "y", "new\n"); err == nil {
		t.Error("a page without marks is no error")
	}
}
