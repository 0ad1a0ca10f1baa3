package unavailable

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// mostRemembered bounds what Marshal writes, at about 200 bytes an entry, far
// below the megabyte that a ConfigMap may have.
const mostRemembered = 1000

// longestTTL is the longest end that Unmarshal believes. No entry lasts longer; a
// clock that was wrong when it was written must not keep a size out for years.
const longestTTL = soldOutTTL

// line is an entry as it is written down.
type line struct {
	Size         string    `json:"size,omitempty"`
	Family       string    `json:"family,omitempty"`
	Kind         string    `json:"kind,omitempty"`
	Place        string    `json:"place"`
	CapacityType string    `json:"capacityType"`
	MinVCPUs     int64     `json:"minVCPUs,omitempty"`
	Until        time.Time `json:"until"`
	Why          string    `json:"why"`
	Quota        bool      `json:"quota,omitempty"`
	// Policy is that of an entry which is about the sizes that a policy denies.
	Policy *SizePolicy `json:"policy,omitempty"`
}

// Marshal writes down all entries, as JSON with one entry a line. Beyond 1,000 it
// keeps those that end last: forgetting the others costs a refusal each.
func (o *Offerings) Marshal() ([]byte, error) {
	entries := o.Entries()
	if len(entries) > mostRemembered {
		slices.SortStableFunc(entries, func(x, y Entry) int { return y.Until.Compare(x.Until) })
		entries = entries[:mostRemembered]
	}
	var out bytes.Buffer
	out.WriteString("[")
	for i, x := range entries {
		text, err := json.Marshal(line{x.Size, x.Family, x.Kind, x.Place, string(x.CapacityType), x.MinVCPUs,
			x.Until.UTC().Truncate(time.Second), x.Why, x.Quota, x.Policy})
		if err != nil {
			return nil, fmt.Errorf("write block %d of %d: %w", i+1, len(entries), err)
		}
		if i > 0 {
			out.WriteString(",")
		}
		out.WriteString("\n ")
		out.Write(text)
	}
	out.WriteString("\n]\n")
	return out.Bytes(), nil
}

// Unmarshal adds the entries that Marshal wrote down and that have not ended. Of
// two entries of one subject the wider and longer holds. Text that is not Marshal's
// changes nothing.
func (o *Offerings) Unmarshal(text []byte) error {
	var lines []line
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&lines); err != nil {
		return fmt.Errorf("read what Azure has refused: %w", err)
	}
	for i, l := range lines {
		known := l.CapacityType == string(model.OnDemand) || l.CapacityType == string(model.Spot)
		several := l.Size != "" && l.Family != "" || l.Kind != "" && l.Size+l.Family != "" ||
			l.Policy != nil && (l.Size+l.Family+l.Kind != "" || l.Policy.Name == "")
		if l.Place == "" || !known || l.MinVCPUs < 0 || several || l.Kind != "" && l.CapacityType != string(model.Spot) {
			return fmt.Errorf("read what Azure has refused: entry %d is no block: %+v", i+1, l)
		}
	}
	now := o.now()
	for _, l := range lines {
		if ttl := min(l.Until.Sub(now), longestTTL); ttl > 0 {
			s := subject{size: l.Size, family: l.Family, kind: l.Kind, policy: l.Policy.String(), place: l.Place,
				capacityType: model.CapacityType(l.CapacityType)}
			o.put(s, l.MinVCPUs, ttl, cause{why: cmp.Or(l.Why, "a refusal"), quota: l.Quota, policy: l.Policy})
		}
	}
	return nil
}
