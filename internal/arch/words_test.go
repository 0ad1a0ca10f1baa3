package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// person are words that make persons of pods, nodes and requests, and one word that plain
// English does not use. "Whose" is not among them: kubernetes.io says it of things, too.
var person = regexp.MustCompile(`(?i)\b(nobody|anybody|somebody|everybody|whoever|whom|anew)\b`)

// TestTextsAreAboutThings reads the comments of all Go files, and the pages of docs.
func TestTextsAreAboutThings(t *testing.T) {
	check := func(where, text string) {
		if word := person.FindString(text); word != "" {
			t.Errorf("%s: %q; say which pod, node, request or program it is (for \"anew\": again)", where, word)
		}
	}
	read := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "testdata" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if at := fset.Position(c.Pos()); strings.HasPrefix(c.Text, "//go:") || filepath.Base(at.Filename) == "words_test.go" {
					continue
				}
				check(strings.TrimPrefix(fset.Position(c.Pos()).String(), "../../"), c.Text)
				read++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		check(strings.TrimPrefix(page, "../../"), string(text))
	}
	if read < 5000 {
		t.Errorf("only %d lines of comments were read", read)
	}
}
