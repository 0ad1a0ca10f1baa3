package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// longestTestName is how many letters the name of a test may have: it says the
// subject and the case, and fits in a line of go test's output.
const longestTestName = 60

// TestTestNamesAreShort reads every module of the repository.
func TestTestNamesAreShort(t *testing.T) {
	test := regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)`)
	files := token.NewFileSet()
	read := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "../.." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		read++
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && test.MatchString(f.Name.Name) && len(f.Name.Name) > longestTestName {
				t.Errorf("%s: %s has %d letters, want at most %d", files.Position(f.Pos()), f.Name.Name, len(f.Name.Name), longestTestName)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read == 0 {
		t.Error("no test file was read")
	}
}
