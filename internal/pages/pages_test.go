package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestEveryCommandOnPagesIsRun: a test runs it, or a reason says why none does.
func TestEveryCommandOnPagesIsRun(t *testing.T) {
	all, err := commands(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 150 {
		t.Errorf("only %d commands were found", len(all))
	}
	for _, c := range all {
		tests, reasons := count(runs(), &c), count(exceptions(), &c)
		switch {
		case tests == 0 && reasons == 0:
			t.Errorf("%s: no test runs this command: let one run it, and add it to the table of this package", &c)
		case tests > 0 && reasons > 0:
			t.Errorf("%s: a test runs this command, and a row says that none does", &c)
		}
	}
}

func count(rows []row, c *Command) int {
	n := 0
	for i := range rows {
		if rows[i].has(c) {
			n++
		}
	}
	return n
}

// TestEveryRowOfTheTableIsUsed: it has a command, and its test is there and asks for its
// commands.
func TestEveryRowOfTheTableIsUsed(t *testing.T) {
	all, err := commands(root)
	if err != nil {
		t.Fatal(err)
	}
	asking := testsThatAsk(t)
	for _, r := range append(runs(), exceptions()...) {
		used := false
		for _, c := range all {
			used = used || r.has(&c)
		}
		if !used {
			t.Errorf("no page has a command of row %+v", r)
		}
		if (r.test == "") == (r.why == "") {
			t.Errorf("row %+v has a test and a reason, or neither", r)
		}
		if r.test != "" && !asking[r.test] {
			t.Errorf("there is no test %s that asks pages.Of for its commands", r.test)
		}
	}
}

// testsThatAsk are the tests which ask for the commands that they run.
func testsThatAsk(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	test := regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{\n(.*?)^\}`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range test.FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = out[m[1]] || strings.Contains(m[2], "pages.Of(t") ||
				strings.Contains(string(text), `"`+m[1]+`")`) && strings.Contains(string(text), "pages.By(t")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCommandsAreFoundWhereTheyBegin: also behind variables, in pipes and in subshells, and
// no words of answers.
func TestCommandsAreFoundWhereTheyBegin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	text := strings.Join([]string{"# Title", "", "    nap status   # a comment", "    A=b C=d nap lab up", "    x | kubectl apply -f -", "",
		"## Part", "    (set -a; . env; nap enable)", "    export X=$(az show)", "    bin/nap plan", "nap plan", "    prod (eastus)  nap ok",
		"    what nap bought", "    helm"}, "\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := inPage(file, "docs/page.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range found {
		got = append(got, c.Section+" "+c.String())
	}
	want := []string{"Title docs/page.md:3: nap status", "Title docs/page.md:4: A=b C=d nap lab up", "Title docs/page.md:5: x | kubectl apply -f -",
		"Part docs/page.md:8: (set -a; . env; nap enable)", "Part docs/page.md:9: export X=$(az show)", "Part docs/page.md:10: bin/nap plan",
		"Part docs/page.md:14: helm"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
