package prerequisites

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the page instead of comparing with it")

const page = "../../docs/prerequisites.md"

// marker is the line above the table: what is below it is generated.
const marker = "| # | check | wanted | without it | verdict | looked at by |\n|--:|---|---|---|---|---|\n"

func TestPageOfPrerequisitesMatchesTable(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := bytes.Cut(text, []byte(marker))
	if !found {
		t.Fatalf("%s has no table", page)
	}
	want := string(head) + marker
	for _, r := range Table() {
		verdict := string(r.Worst)
		if r.Blocks {
			verdict += ", nap buys nothing"
		}
		by := "nap doctor"
		if r.Watched() {
			by += ", controller"
		}
		want += fmt.Sprintf("| %d | `%s` | %s | %s | %s | %s |\n", r.Number, r.Name, r.Wants, r.Why, verdict, by)
	}
	if *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s differs, see -rewrite (-want +got):\n%s", page, diff)
	}
}

func TestTableIsNumberedAndWhole(t *testing.T) {
	names := map[string]bool{}
	for i, r := range Table() {
		if r.Number != i+1 || r.Name == "" || names[r.Name] || r.Wants == "" || r.Why == "" || len(r.needs) == 0 ||
			r.Worst != Warning && r.Worst != Failed || r.Blocks && r.Worst != Failed || r.Blocks && !r.Watched() {
			t.Errorf("row %d: %+v", i+1, r)
		}
		names[r.Name] = true
	}
}
