package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oldWords are private words that once stood for what the glossary names, each with
// the word to use. They are singular; a plural counts, too.
func oldWords() map[string]string {
	return map[string]string{
		"aisle": "list sorted by cost", "bargain": "Pareto-efficient option", "brim": "minValues", "cloudport": "cloudprovider", "dice": "rng",
		"founding": "seed pod", "guest": "reserved class", "homeless": "without a place", "lodging": "node", "mended": "improved",
		"mender": "large neighbourhood search", "oracle": "verifier", "parcel": "part of a command", "rehearsal": "dry run", "rewind": "undo",
		"shelf": "option partition", "shelves": "option partitions", "thrift": "scarcity-weighted cost", "toll": "eviction cost",
		"topo": "topology", "ware": "option", "whim": "perturbation", "witness": "audit log",
	}
}

// allowedWords are places where an old word may stand: "package.Identifier" or a page,
// with the word, and why.
func allowedWords() map[string]string {
	const agent = "the guest of a virtual machine, as Azure calls the system in it"
	return map[string]string{
		"internal/armsim/kubelet/bootdata.GuestAgentStartTime: guest": agent,
	}
}

var glossaryRow = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)

func TestGlossaryIsSortedAndNamesEachTermOnce(t *testing.T) {
	text, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	var terms []string
	for _, row := range glossaryRow.FindAllStringSubmatch(string(text), -1)[1:] {
		terms = append(terms, strings.ToLower(row[1]))
	}
	if len(terms) < 50 {
		t.Errorf("docs/glossary.md has %d terms; is the table still a table?", len(terms))
	}
	for i := 1; i < len(terms); i++ {
		switch {
		case terms[i] == terms[i-1]:
			t.Errorf("docs/glossary.md: %q stands twice", terms[i])
		case terms[i] < terms[i-1]:
			t.Errorf("docs/glossary.md: %q comes after %q; sort the rows", terms[i], terms[i-1])
		}
	}
}

// words splits an identifier or a text into lower-case words.
var words = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

func TestOldWordsStayOut(t *testing.T) {
	allowed := allowedWords()
	check := func(where, text string) {
		seen := map[string]bool{}
		for _, w := range words.FindAllString(text, -1) {
			w = strings.ToLower(w)
			instead := oldWords()[w]
			if instead == "" {
				instead = oldWords()[strings.TrimSuffix(w, "s")]
			}
			if instead == "" || seen[w] {
				continue
			}
			seen[w] = true
			if key := where + ": " + w; allowed[key] != "" {
				delete(allowed, key)
				continue
			}
			t.Errorf("%s says %q; the glossary's word is %s", where, w, instead)
		}
	}
	for name, places := range exported(t) {
		check(places, name)
	}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		check(strings.TrimPrefix(page, "../../"), string(text))
	}
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		t.Errorf("%s is allowed (%s) but does not occur", key, allowed[key])
	}
}

// exported maps the names of packages and exported identifiers of the module to where
// they are declared.
func exported(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "testdata" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		where := strings.TrimPrefix(filepath.Dir(path), "../../")
		out[file.Name.Name] = where
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				out[n.Name.Name] = where + "." + n.Name.Name
				return false
			case *ast.TypeSpec:
				out[n.Name.Name] = where + "." + n.Name.Name
			case *ast.ValueSpec:
				for _, name := range n.Names {
					out[name.Name] = where + "." + name.Name
				}
			case *ast.Field:
				for _, name := range n.Names {
					out[name.Name] = where + "." + name.Name
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range out {
		if !ast.IsExported(name) && !strings.HasSuffix(out[name], "/"+name) {
			delete(out, name)
		}
	}
	return out
}
