package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/pages"
)

// TestDocumentedCommandsRun runs the commands of the pages that need neither a cluster nor a
// lab.
func TestDocumentedCommandsRun(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	for _, c := range pages.Of(t, ".") {
		var out, errs bytes.Buffer
		args, into := intoFile(strings.Fields(strings.ReplaceAll(c.Text, "'", ""))[1:], dir)
		if code := Main(t.Context(), args, "test",
			command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code == 1 || out.Len() == 0 {
			t.Errorf("%s: exit code %d\n%s%s", &c, code, out.String(), errs.String())
		}
		if !slices.Contains(args, "-o") && args[0] != "machine" {
			fitsColumns(t, c.String(), errs.String())
			if args[0] != "convert" && args[0] != "diff" { // their answers are objects
				fitsColumns(t, c.String(), out.String())
			}
		}
		if into != "" {
			if err := os.WriteFile(into, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// intoFile takes "> FILE" off a command, and lets FILE and files of that name that the
// command reads lie in a directory.
func intoFile(args []string, dir string) (rest []string, into string) {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == ">" && i+1 < len(args):
			into = filepath.Join(dir, args[i+1])
			i++
		case args[i] == "--replay" && i+1 < len(args):
			rest = append(rest, args[i], filepath.Join(dir, args[i+1]))
			i++
		default:
			rest = append(rest, args[i])
		}
	}
	return rest, into
}
