package objects

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Record is what the table of the page is made of.
type Record []*Figures

// ReadRecord reads a record. A file that does not exist is an empty record.
func ReadRecord(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of figures: %w", err)
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the record of figures %s: %w", path, err)
	}
	return r, nil
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
func (r Record) Write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("write the record of figures: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
