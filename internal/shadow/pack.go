package shadow

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
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
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		if err := json.NewEncoder(zip).Encode(r); err != nil {
			return nil, fmt.Errorf("write the record of the shadow as JSON: %w", err)
		}
		if err := zip.Close(); err != nil {
			return nil, fmt.Errorf("compress the record of the shadow: %w", err)
		}
		if out.Len() <= MostData {
			return out.Bytes(), nil
		}
		over := (len(r.Purchases) + 1) / 2
		if over == 0 {
			return nil, fmt.Errorf("the record of the shadow takes %d bytes, allowed are %d", out.Len(), MostData)
		}
		r.Purchases, r.Dropped = slices.Clone(r.Purchases[over:]), r.Dropped+over
	}
}

// Unpack reads what Pack has written.
func Unpack(data []byte) (*Record, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack the record of the shadow: %w", err)
	}
	r := &Record{}
	if err := json.NewDecoder(io.LimitReader(zip, mostUnpacked)).Decode(r); err != nil {
		return nil, fmt.Errorf("read the record of the shadow: %w", err)
	}
	if r.Form != Form {
		return nil, fmt.Errorf("the record of the shadow is of form %d, and this version of nap reads form %d: use the controller's version",
			r.Form, Form)
	}
	return r, nil
}
