package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inCode     = regexp.MustCompile("`([^`]+)`")
	identifier = regexp.MustCompile(`^[A-Z]\w+$`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z]+):`)
)

// Every room has its words in the map: its folder's name is there. Of rooms of one name, such as
// nodeclass, one that is there is enough.
func TestMapNamesEveryRoom(t *testing.T) {
	page, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range inCode.FindAllStringSubmatch(string(page), -1) {
		for word := range strings.SplitSeq(m[1], "/") {
			named[word] = true
		}
	}
	rooms := 0
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return filepath.SkipDir
		case filepath.Base(path) == "doc.go" || !strings.HasSuffix(path, ".go"):
			return nil
		}
		rooms++
		if room := filepath.Base(filepath.Dir(path)); room != ".." && !named[room] {
			named[room] = true // once is enough
			t.Errorf("docs/ARCHITECTURE.md does not say what is in internal/%s", filepath.ToSlash(filepath.Dir(path)[len("../"):]))
		}
		return nil
	})
	if err != nil || rooms < 500 {
		t.Errorf("%d files were looked at, %v", rooms, err)
	}
}

// TestMapNamesExistingPlaces holds the table "When you add X, touch Y" of the map
// together with the code: every file, folder, target, test and exported name in it
// exists. Whether a row names every place is for the tests of its third column to say.
func TestMapNamesExistingPlaces(t *testing.T) {
	page, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "## When you add X, touch Y")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md has no table of what to touch when something is added")
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, "make "+m[1])
	}
	names, tests := exported(t), testNames(t)
	checked := 0
	for row := range strings.Lines(table) {
		folder := "../.."
		for _, m := range inCode.FindAllStringSubmatch(row, -1) {
			checked++
			switch name := m[1]; {
			case strings.HasPrefix(name, "make "):
				if !slices.Contains(targets, name) {
					t.Errorf("docs/ARCHITECTURE.md: the Makefile has no target for %q", name)
				}
			case strings.Contains(name, " "), strings.HasPrefix(name, "-"): // a command or a flag
			case strings.HasPrefix(name, "Test"):
				if !tests[name] {
					t.Errorf("docs/ARCHITECTURE.md: there is no test %s", name)
				}
			case identifier.MatchString(name):
				if names[name] == "" {
					t.Errorf("docs/ARCHITECTURE.md: nothing exported is called %s", name)
				}
			default:
				at := place(folder, name)
				if at == "" {
					t.Errorf("docs/ARCHITECTURE.md: %s is neither below the root nor below internal", name)
				}
				if strings.Contains(name, "/") {
					folder = strings.TrimSuffix(at, filepath.Base(at))
					if filepath.Ext(at) == "" {
						folder = at
					}
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d names were found in the table", checked)
	}
}

// place finds a file or folder as the map names it: below internal, the root, or the
// folder that the row named last.
func place(folder, name string) string {
	for _, root := range []string{"../../internal", "../..", folder} {
		if at := filepath.Join(root, name); exists(at) {
			return at
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testNames are the tests of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
