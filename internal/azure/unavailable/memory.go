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

// mostRemembered bounds what Marshal writes, at about 200 bytes a block, far
// below the megabyte that a ConfigMap may have.
const mostRemembered = 1000

// longestBlock is the longest end that Restore believes. No block lasts longer;
// a clock that was wrong when it was written must not block a size for years.
const longestBlock = soldOutTTL

// line is a block as it is written down.
type line struct {
	Size         string    `json:"size,omitempty"`
	Family       string    `json:"family,omitempty"`
	Place        string    `json:"place"`
	CapacityType string    `json:"capacityType"`
	MinVCPUs     int64     `json:"minVCPUs,omitempty"`
	Until        time.Time `json:"until"`
	Why          string    `json:"why"`
}

// Marshal writes down all blocks, as JSON with one block a line. Beyond 1,000 it
// keeps those that end last: forgetting the others costs a refusal each.
func (b *Board) Marshal() ([]byte, error) {
	blocks := b.Blocks()
	if len(blocks) > mostRemembered {
		slices.SortStableFunc(blocks, func(x, y Block) int { return y.Until.Compare(x.Until) })
		blocks = blocks[:mostRemembered]
	}
	var out bytes.Buffer
	out.WriteString("[")
	for i, x := range blocks {
		text, err := json.Marshal(line{x.Size, x.Family, x.Place, string(x.CapacityType), x.MinVCPUs, x.Until.UTC().Truncate(time.Second), x.Why})
		if err != nil {
			return nil, fmt.Errorf("write block %d of %d: %w", i+1, len(blocks), err)
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

// Unmarshal adds the blocks that Marshal wrote down and that have not ended. Of
// two blocks of one subject the wider and longer holds. Text that is not Marshal's
// changes nothing.
func (b *Board) Unmarshal(text []byte) error {
	var lines []line
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&lines); err != nil {
		return fmt.Errorf("read what Azure has refused: %w", err)
	}
	for i, l := range lines {
		known := l.CapacityType == string(model.OnDemand) || l.CapacityType == string(model.Spot)
		if l.Place == "" || !known || l.MinVCPUs < 0 || l.Size != "" && l.Family != "" {
			return fmt.Errorf("read what Azure has refused: entry %d is no block: %+v", i+1, l)
		}
	}
	now := b.now()
	for _, l := range lines {
		if ttl := min(l.Until.Sub(now), longestBlock); ttl > 0 {
			s := subject{size: l.Size, family: l.Family, place: l.Place, capacityType: model.CapacityType(l.CapacityType)}
			b.put(s, l.MinVCPUs, ttl, cmp.Or(l.Why, "a refusal"))
		}
	}
	return nil
}
