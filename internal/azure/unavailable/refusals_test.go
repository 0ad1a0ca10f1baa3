package unavailable

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write docs/azure-refusals.md again")

// refusalsPage is where users look up what nap does about a refusal.
const refusalsPage = "../../../docs/azure-refusals.md"

// kinds reads the constants of type Kind from the source.
func kinds(t *testing.T) []Kind {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "refusals.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []Kind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != "Kind" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Kind(value))
		return true
	})
	return out
}

func TestEveryKindOfRefusalHasOneRowAndAReaction(t *testing.T) {
	all := kinds(t)
	if len(all) == 0 {
		t.Fatal("refusals.go has no constants of type Kind")
	}
	for _, k := range all {
		var rows []Refusal
		for _, r := range Refusals() {
			if r.Kind == k {
				rows = append(rows, r)
			}
		}
		if len(rows) != 1 {
			t.Errorf("kind %s has %d rows in Refusals, want 1", k, len(rows))
		}
	}
}

func TestRowsOfRefusalsAreConsistent(t *testing.T) {
	all, rows := kinds(t), Refusals()
	for i, r := range rows {
		marks := r.Sizes != NoSize
		switch {
		case !slices.Contains(all, r.Kind):
			t.Errorf("row %d: %q is no constant of type Kind", i, r.Kind)
		case len(r.Answers) == 0 || r.Reason == "":
			t.Errorf("%s: it needs answers and a reason", r.Kind)
		case !slices.Contains([]Sizes{NoSize, ThisSize, FamilyFrom, EverySize, PolicySizes}, r.Sizes):
			t.Errorf("%s: Sizes is %q", r.Kind, r.Sizes)
		case !slices.Contains([]Reaction{TryNext, TryOtherQuota, TryAgain, GiveUp}, r.Reaction):
			t.Errorf("%s: Reaction is %q", r.Kind, r.Reaction)
		case marks != (r.TTL.Usual > 0) || marks != (r.Place != Nowhere && r.Place != "") ||
			marks != (r.CapacityTypes != NoType && r.CapacityTypes != ""):
			t.Errorf("%s: sizes, place, capacity types and time must be given together, or none of them", r.Kind)
		case marks != (r.Reaction == TryNext || r.Reaction == TryAgain):
			t.Errorf("%s: a launch goes on when the refused offerings are marked, and only then", r.Kind)
		case (r.Quota != "") != (r.Reaction == TryOtherQuota):
			t.Errorf("%s: a quota must be named for the reaction %q, and only for it", r.Kind, TryOtherQuota)
		case max(r.TTL.Usual, r.TTL.Spot, r.TTL.ZeroLimit) > longestTTL:
			t.Errorf("%s: Unmarshal believes no entry for longer than %s", r.Kind, longestTTL)
		}
		for _, a := range r.Answers {
			if last := i == len(rows)-1; last != (len(a.Codes) == 0) {
				t.Errorf("%s: the last row, and no other, must match every answer", r.Kind)
			}
			for _, code := range a.Codes {
				if got := NewFailure(code, "so "+a.Contains+" it is", nil).Kind; got != r.Kind {
					t.Errorf("%s with %q is read as %s, want %s", code, a.Contains, got, r.Kind)
				}
			}
		}
	}
}

func TestPageOfRefusalsMatchesTable(t *testing.T) {
	page := refusalsText()
	if *rewrite {
		if err := os.WriteFile(refusalsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(refusalsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != page {
		t.Errorf("%s does not list the refusals as they are; run this test with -rewrite", refusalsPage)
	}
}

func refusalsText() string {
	var b strings.Builder
	b.WriteString(`# Refusals of Azure

What nap does when Azure refuses to make a machine. Of several rows that match an
answer the first one counts. The offerings of a row are not bought until its time is
over; ` + "`nap explain offer`" + ` shows which are unavailable at the moment, and until when.
Larger sizes of the family are unavailable in the same place and for the same
capacity types, for a shorter time. The reason is that of the NodeClaim's condition
` + "`Launched`" + `. [azure-traps.md](azure-traps.md) names the test of each answer.

| answer of Azure | reason | unavailable | capacity types | for | larger sizes | the launch then |
|---|---|---|---|---|---|---|
`)
	for _, r := range Refusals() {
		where, types := "nothing", "-"
		if r.Sizes != NoSize {
			where, types = fmt.Sprintf("%s, %s", r.Sizes, r.Place), string(r.CapacityTypes)
		}
		then := string(r.Reaction)
		if r.Quota != "" {
			then += " `" + r.Quota + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s | %s |\n",
			answersText(r.Answers), r.Reason, where, types, ttlText(r.TTL), durationText(r.LargerSizes), then)
	}
	b.WriteString("\nWhat a person can do, which every message about the refusal says:\n\n| reason | advice |\n|---|---|\n")
	for _, r := range Refusals() {
		if r.Advice != "" {
			fmt.Fprintf(&b, "| `%s` | %s |\n", r.Reason, r.Advice)
		}
	}
	fmt.Fprintf(&b, "\nWhere nap gives up, except for throttling and a full subnet, it counts: after %d such refusals in a row of one "+
		"size in one zone, that size is unavailable in that zone, for the capacity type of the attempts, for %s. A machine "+
		"that is made there starts the count again.\n", Repeats, durationText(RestTTL))
	fmt.Fprintf(&b, "\nAfter `%s` every AKSNodeClass that asks for encryption at host is not ready for %s: its condition "+
		"`ValidationSucceeded` says so, with the command. Then one purchase asks Azure again.\n", HostEncryptionOff, durationText(RestTTL))
	b.WriteString("\nA machine that Azure does not delete, as with a lock (`ScopeLocked`), is asked to be deleted again after pauses that " +
		"grow to a minute. The event `" + string(Locked) + "` of its NodeClaim says what to do.\n")
	b.WriteString("\nWhen Azure interrupts a spot machine, its size is unavailable as spot in that zone for " +
		durationText(lowQuotaTTL) + ".\n")
	fmt.Fprintf(&b, "\nWhere Azure refuses %d spot machines of one kind in a row for want of room, no spot machine of that kind is asked "+
		"for there for %s, so that another capacity type, another kind or a NodePool of lower weight buys. After that %d more are enough. "+
		"At least %d of the refusals, afterwards %d, have to be of other numbers of vCPUs than the one that is refused most. While there are "+
		"fewer, only the sizes with that number of vCPUs are asked for no more; the others are, until so many of them are refused. "+
		"Refusals that are about one zone count there, a size once. For the region, where machines in zones and without one are asked for "+
		"no more, a size counts once when all zones or each of them have refused it, and once when it is refused without a zone. Sizes are "+
		"of one kind when they have the same architecture, all of them GPUs or none, and all or none are confidential. A spot machine of "+
		"the kind that is made there, or `nap retry`, ends it; only where one number of vCPUs alone is not asked for, a machine "+
		"with another number does not end its %s.\n",
		ScarceSizes, durationText(ScarceTTL), ScarceAgain, ScarceOthers, ScarceOthersAgain, durationText(ScarceTTL))
	return b.String()
}

func answersText(answers []Answer) string {
	var out []string
	for _, a := range answers {
		codes := "`" + strings.Join(a.Codes, "` or `") + "`"
		switch {
		case len(a.Codes) == 0:
			codes = "any other"
		case a.Contains != "":
			codes += " with \"" + a.Contains + "\""
		}
		out = append(out, codes)
	}
	return strings.Join(out, ", ")
}

func ttlText(t TTL) string {
	out := durationText(t.Usual)
	if t.Spot > 0 {
		out += ", spot " + durationText(t.Spot)
	}
	if t.ZeroLimit > 0 {
		out += ", with a limit of 0 (then the whole family) " + durationText(t.ZeroLimit)
	}
	return out
}

func durationText(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return cmp.Or(strings.TrimSuffix(d.String(), "m0s"), "0") + " min"
}
