package model

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/reasons.md anew")

// reasonsPage is where users look reasons up.
const reasonsPage = "../../docs/reasons.md"

func TestPageOfReasonsIsComplete(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Reasons

Whatever nap refuses, it refuses for one of these reasons. Their names are stable:
they appear in events, in the JSON of ` + "`nap plan`" + ` and in ` + "`nap explain`" + `.

## Why a pod or an offering is refused
`)
	table := func(infos []ReasonInfo) {
		b.WriteString("\n| reason | what it means | what helps |\n|---|---|---|\n")
		for _, r := range infos {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Reason, r.Meaning, r.Fix)
		}
	}
	all := Reasons()
	for i := range all {
		if all[i].Reason == ReasonBeingDisrupted {
			table(all[:i])
			b.WriteString("\n## Why a node stays\n")
			table(all[i:])
		}
	}
	if *rewrite {
		if err := os.WriteFile(reasonsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(reasonsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != b.String() {
		t.Errorf("%s does not list the reasons as they are; run this test with -rewrite", reasonsPage)
	}
}
