package objects

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/bench"
)

// Row is what was measured of one engine in a cluster of one size: Figures or a Standby.
type Row interface {
	of() (nodes int, engine string)
}

func (f *Figures) of() (nodes int, engine string) { return f.Nodes, f.Engine }
func (s *Standby) of() (nodes int, engine string) { return s.Nodes, s.Engine }

// Record is what a table of the page is made of.
type Record[R Row] []R

// ReadRecord reads a record. A file that does not exist is an empty record.
func ReadRecord[R Row](path string) (r Record[R], err error) {
	err = bench.ReadRecord(path, &r)
	return r, err
}

// With has the row in the place of that which it has of the same size and engine, in the
// order of the table.
func (r Record[R]) With(row R) Record[R] {
	out := append(slices.DeleteFunc(slices.Clone(r), func(old R) bool { return inOrder(old, row) == 0 }), row)
	slices.SortFunc(out, func(a, b R) int { return inOrder(a, b) })
	return out
}

// inOrder compares rows by size and then by engine.
func inOrder(a, b Row) int {
	nodesA, engineA := a.of()
	nodesB, engineB := b.of()
	return cmp.Or(cmp.Compare(nodesA, nodesB), cmp.Compare(engineA, engineB))
}

// Write writes the record.
func (r Record[R]) Write(path string) error { return bench.WriteRecord(path, r) }
