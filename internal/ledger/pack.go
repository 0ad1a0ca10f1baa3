package ledger

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/gzjson"
)

// Bounds of what is written.
const (
	// MostData is the size of a page's data, in bytes.
	MostData = 768 << 10
	// mostUnpacked bounds what a reader unpacks, in bytes.
	mostUnpacked = 256 << 20
)

// Pack writes the book as compressed JSON of at most MostData bytes. Where it has too much,
// the oldest machines and moves that ended are folded into sums by NodePool.
func (b *Book) Pack() ([]byte, error) {
	for {
		data, err := gzjson.Pack(b)
		if err != nil {
			return nil, fmt.Errorf("the ledger: %w", err)
		}
		if len(data) <= MostData {
			b.changed = false
			return data, nil
		}
		if !b.fold() {
			return nil, fmt.Errorf("the %d machines that are there take %d bytes in the ledger, allowed are %d", len(b.Open), len(data), MostData)
		}
	}
}

// fold folds the older half of what ended; false where nothing has.
func (b *Book) fold() bool {
	machines, moves := (len(b.Ended)+1)/2, (len(b.Moved)+1)/2
	if machines+moves == 0 {
		return false
	}
	for i := range b.Ended[:machines] {
		m := &b.Ended[i]
		f := b.folded(m.NodePool)
		f.Machines++
		f.Cost = f.Cost.plus(m.Cost)
	}
	for i := range b.Moved[:moves] {
		m := &b.Moved[i]
		pool := ""
		if len(m.NodePools) > 0 {
			pool = m.NodePools[0]
		}
		f := b.folded(pool)
		f.Moves++
		f.Evictions += m.Evictions
		f.Spent, f.Saved = f.Spent+m.Spent, f.Saved+m.Saved
		if m.Paid() {
			f.Paid++
		}
	}
	b.Ended, b.Moved = slices.Clone(b.Ended[machines:]), slices.Clone(b.Moved[moves:])
	return true
}

func (b *Book) folded(pool string) *Folded {
	at := slices.IndexFunc(b.Folded, func(f Folded) bool { return f.NodePool == pool })
	if at < 0 {
		b.Folded = append(b.Folded, Folded{NodePool: pool})
		at = len(b.Folded) - 1
	}
	return &b.Folded[at]
}

// Unpack reads what Pack has written.
func Unpack(data []byte) (*Book, error) {
	b := &Book{}
	if err := gzjson.Unpack(data, b, mostUnpacked); err != nil {
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	if b.Form != Form {
		return nil, fmt.Errorf("the ledger is of form %d, and this version of nap reads form %d: use the controller's version", b.Form, Form)
	}
	return b, nil
}
