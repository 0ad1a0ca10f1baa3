package objects

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/bench"
)

// Record is what the table of the page is made of.
type Record []*Figures

// ReadRecord reads a record. A file that does not exist is an empty record.
func ReadRecord(path string) (r Record, err error) {
	err = bench.ReadRecord(path, &r)
	return r, err
}

// With has the figures in the place of those which it has of the same size and engine, in
// the order of the table.
func (r Record) With(f *Figures) Record {
	same := func(old *Figures) bool { return old.Nodes == f.Nodes && old.Engine == f.Engine }
	out := append(slices.DeleteFunc(slices.Clone(r), same), f)
	slices.SortFunc(out, func(a, b *Figures) int {
		return cmp.Or(cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Engine, b.Engine))
	})
	return out
}

// Write writes the record.
func (r Record) Write(path string) error { return bench.WriteRecord(path, r) }
