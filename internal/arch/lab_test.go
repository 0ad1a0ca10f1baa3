package arch

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMakefileListsPackagesThatStartLabs keeps the Makefile's list of packages
// whose tests start a control plane complete: beside other tests they are slow, and
// what waits for them gives up.
func TestMakefileListsPackagesThatStartLabs(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ON_LAB\s*:= (\S+)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile has no line ON_LAB := PACKAGE|PACKAGE")
	}
	labtest := module + "internal/lab/labtest"
	var want []string
	for _, p := range packages(t) {
		if uses := slices.Concat(p.TestImports, p.XTestImports); slices.Contains(uses, labtest) || p.ImportPath == labtest {
			want = append(want, strings.TrimPrefix(p.ImportPath, module))
		}
	}
	slices.Sort(want)
	if got := string(m[1]); got != strings.Join(want, "|") {
		t.Errorf("ON_LAB is %s, want %s", got, strings.Join(want, "|"))
	}
}
