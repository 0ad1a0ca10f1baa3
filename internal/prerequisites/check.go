package prerequisites

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/mask"
)

// Verdict is how a check ended.
type Verdict string

// The verdicts, from best to worst.
const (
	OK      Verdict = "ok"
	Unknown Verdict = "unknown" // a source could not be read
	Warning Verdict = "warning" // works, and will not for ever or not for all
	Failed  Verdict = "failed"  // machines cannot be bought, or will not work
)

// Row is one prerequisite.
type Row struct {
	// Number and Name are those of docs/prerequisites.md. A number is never used again.
	Number int
	Name   string
	// Wants is what must be so, Why what happens where it is not.
	Wants, Why string
	// Worst is the verdict where it is not so.
	Worst Verdict
	// Blocks says that nap buys nothing while it is not so.
	Blocks bool

	needs []Source
	check func(*Facts) answer
}

// answer is what a check found.
type answer struct {
	// read is what the check looked at, in words.
	read string
	// fault is what is wrong, empty where nothing is; fix is the command that mends it.
	fault, fix string
}

// Result is what became of one row.
type Result struct {
	Number  int     `json:"number"`
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Read is what was looked at.
	Read string `json:"read"`
	// Finding is what is wrong, or why it is not known; empty where all is well.
	Finding string `json:"finding,omitempty"`
	// Why says why it matters, Fix is the command that mends it; both empty where all is well.
	Why string `json:"why,omitempty"`
	Fix string `json:"fix,omitempty"`
	// Blocks says that nap buys nothing because of it.
	Blocks bool `json:"blocks,omitempty"`
}

// Check looks at every row, in the order of their numbers.
func Check(f *Facts) []Result {
	var out []Result
	for _, row := range Table() {
		out = append(out, row.result(f))
	}
	return out
}

// CheckWatched looks at the rows that the controller looks at, in the order of their numbers.
func CheckWatched(f *Facts) []Result {
	var out []Result
	for _, row := range Table() {
		if row.Watched() {
			out = append(out, row.result(f))
		}
	}
	return out
}

// Watched reports whether the controller looks at the row while it runs: it asks all the
// sources that the row needs.
func (r *Row) Watched() bool {
	left := LeftToDoctor()
	return !slices.ContainsFunc(r.needs, func(s Source) bool { return slices.Contains(left, s) })
}

// result looks at a row. What it says goes into reports, conditions and events, and has no
// secrets that errors and properties of the cluster may hold.
func (r *Row) result(f *Facts) Result {
	out := r.look(f)
	out.Read, out.Finding = mask.Text(out.Read), mask.Text(out.Finding)
	return out
}

func (r *Row) look(f *Facts) Result {
	out := Result{Number: r.Number, Name: r.Name, Verdict: OK}
	for _, source := range r.needs {
		if why, unread := f.Unread[source]; unread {
			out.Verdict, out.Read, out.Finding = Unknown, string(source), why
			return out
		}
	}
	a := r.check(f)
	out.Read = a.read
	if a.fault != "" {
		out.Verdict, out.Finding, out.Why, out.Fix, out.Blocks = r.Worst, a.fault, r.Why, a.fix, r.Blocks
	}
	return out
}

// Worst is the worst verdict of all results.
func Worst(results []Result) Verdict {
	rank := map[Verdict]int{OK: 0, Unknown: 1, Warning: 2, Failed: 3}
	worst := OK
	for _, r := range results {
		if rank[r.Verdict] > rank[worst] {
			worst = r.Verdict
		}
	}
	return worst
}
