package purchasebackoff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Store writes down what breakers know and reads it again, so that a new controller
// does not repeat purchases that led to nothing. It is a source of the published snapshot.
type Store struct {
	// Breakers are written down under their names.
	Breakers map[string]*Breaker
}

const (
	// mostStored is how many records of a breaker are written down, the latest ones.
	mostStored = 200
	// longestStored is how many bytes of a reason are written down: the snapshot's shards
	// are bounded.
	longestStored = 300
)

// Marshal writes down all records.
func (s *Store) Marshal() ([]byte, error) {
	out := map[string][]Record{}
	for name, b := range s.Breakers {
		records := b.Records()
		slices.SortStableFunc(records, func(x, y Record) int { return y.Since.Compare(x.Since) })
		records = records[:min(len(records), mostStored)]
		for i := range records {
			for j := range records[i].Last {
				why := &records[i].Last[j].Why
				*why = strings.ToValidUTF8((*why)[:min(len(*why), longestStored)], "") // no half character at the end
			}
		}
		out[name] = records
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing down purchases that led to nothing: %w", err)
	}
	return text, nil
}

// Unmarshal adds what an earlier process wrote down. An error changes nothing.
func (s *Store) Unmarshal(text []byte) error {
	var in map[string][]Record
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("reading purchases that led to nothing: %w", err)
	}
	for name, b := range s.Breakers {
		b.restore(in[name])
	}
	return nil
}

// Records are copies of all records, by key. Those that are out of date are dropped.
func (b *Breaker) Records() []Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Record, 0, len(b.records))
	for key := range b.records {
		if r := b.current(key); r != nil {
			out = append(out, r.copy())
		}
	}
	slices.SortFunc(out, func(x, y Record) int { return cmp.Compare(x.Key, y.Key) })
	return out
}

// restore takes over the records of an earlier process, but for keys that this one
// knows already.
func (b *Breaker) restore(records []Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range records {
		r := records[i].copy()
		if b.records[r.Key] == nil && r.Count > 0 && b.clock.Since(r.Since) <= forgetAfter {
			b.records[r.Key] = &r
		}
	}
}

// paused reports whether so many purchases have failed in a row that single ones
// probe now.
func (b *Breaker) paused(r *Record) bool { return r.Count >= b.policy.Probes }
