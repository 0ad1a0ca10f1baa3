package race

import (
	"slices"

	"github.com/nodeautoprovision/nap/bench"
)

// Record is the turns from which the table of the page is made. Turns of one course and
// engine were all played in one run.
type Record []*Result

// ReadRecord reads a record. A file that does not exist is an empty record.
func ReadRecord(path string) (r Record, err error) {
	err = bench.ReadRecord(path, &r)
	return r, err
}

// With has the turns of a run in the place of those which it has of the same courses and
// engines.
func (r Record) With(run []*Result) Record {
	played := func(old *Result) bool {
		return slices.ContainsFunc(run, func(n *Result) bool { return n.Course == old.Course && n.Engine == old.Engine })
	}
	return append(slices.DeleteFunc(slices.Clone(r), played), run...)
}

// Write writes the record in the order of the table.
func (r Record) Write(path string) error { return bench.WriteRecord(path, inOrder(r)) }

// inOrder sorts turns by course and engine, and leaves the order of turns.
func inOrder(turns []*Result) []*Result {
	engines := []string{Floor, "nap", "karpenter"}
	out := slices.Clone(turns)
	slices.SortStableFunc(out, func(a, b *Result) int {
		if a.Course != b.Course {
			return slices.Index(names(), a.Course) - slices.Index(names(), b.Course)
		}
		return slices.Index(engines, a.Engine) - slices.Index(engines, b.Engine)
	})
	return out
}
