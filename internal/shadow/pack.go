package shadow

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/gzjson"
)

// Bounds of what is written.
const (
	// MostData is the size of a packed record, in bytes.
	MostData = 512 << 10
	// mostUnpacked bounds what a reader unpacks, in bytes.
	mostUnpacked = 64 << 20
)

// Pack writes the record as compressed JSON of at most MostData bytes. Where it has too much,
// the oldest purchases are dropped.
func (r *Record) Pack() ([]byte, error) {
	for {
		data, err := gzjson.Pack(r)
		if err != nil {
			return nil, fmt.Errorf("the record of the shadow: %w", err)
		}
		if len(data) <= MostData {
			return data, nil
		}
		over := (len(r.Purchases) + 1) / 2
		if over == 0 {
			return nil, fmt.Errorf("the record of the shadow takes %d bytes, allowed are %d", len(data), MostData)
		}
		r.Purchases, r.Dropped = slices.Clone(r.Purchases[over:]), r.Dropped+over
	}
}

// Unpack reads what Pack has written.
func Unpack(data []byte) (*Record, error) {
	r := &Record{}
	if err := gzjson.Unpack(data, r, mostUnpacked); err != nil {
		return nil, fmt.Errorf("the record of the shadow: %w", err)
	}
	if r.Form != Form {
		return nil, fmt.Errorf("the record of the shadow is of form %d, and this version of nap reads form %d: use the controller's version",
			r.Form, Form)
	}
	return r, nil
}
