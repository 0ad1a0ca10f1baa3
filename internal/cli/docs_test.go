package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// documented finds the commands that pages show and that need neither a cluster nor a
// lab.
var documented = regexp.MustCompile(`(?m)^    (?:bin/)?nap ((?:plan|savings|catalog|explain|machine|get|what-if|diff|convert|lint) [^\n#]*)`)

func TestDocumentedCommandsRun(t *testing.T) {
	t.Chdir("../..")
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran, dir := 0, t.TempDir()
	for _, page := range append(pages, "README.md", "docs/examples/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range documented.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(found[1], "--context") {
				continue
			}
			ran++
			var out, errs bytes.Buffer
			args, into := intoFile(strings.Fields(strings.ReplaceAll(found[1], "'", "")), dir)
			if code := Main(t.Context(), args, "test",
				command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code == 1 || out.Len() == 0 {
				t.Errorf("%s: nap %s: exit code %d\n%s%s", page, found[1], code, out.String(), errs.String())
			}
			if !slices.Contains(args, "-o") && args[0] != "machine" {
				fitsColumns(t, page+": nap "+found[1], errs.String())
				if args[0] != "convert" && args[0] != "diff" { // their answers are objects
					fitsColumns(t, page+": nap "+found[1], out.String())
				}
			}
			if into != "" {
				if err := os.WriteFile(into, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if ran < 10 {
		t.Errorf("only %d commands were found", ran)
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
