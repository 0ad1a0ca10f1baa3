package price

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Memory writes down the retail prices that a book has read, and gives them to the book of a
// controller that starts while the retail API does not answer. It is a source of the published
// snapshot.
type Memory struct{ *Book }

// remembered is what is written down, prices in micro-dollars per hour by size.
type remembered struct {
	Region   string                 `json:"region"`
	Read     time.Time              `json:"read"`
	OnDemand map[string]model.Money `json:"onDemand"`
	Spot     map[string]model.Money `json:"spot"`
}

// Marshal writes down the retail prices that were read last, nothing where none were.
func (m Memory) Marshal() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read.IsZero() {
		return nil, nil
	}
	text, err := json.Marshal(remembered{m.region, m.read, m.retail.OnDemand, m.retail.Spot})
	if err != nil {
		return nil, fmt.Errorf("writing down retail prices: %w", err)
	}
	return text, nil
}

// Unmarshal takes over the retail prices that an earlier process wrote down, unless the book
// has read some itself, or they are of another region. An error changes nothing.
func (m Memory) Unmarshal(text []byte) error {
	var in remembered
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("reading retail prices of an earlier controller: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.read.IsZero() || in.Read.IsZero() || in.Region != m.region {
		return nil
	}
	unpriced := func(_ string, m model.Money) bool { return m <= 0 }
	maps.DeleteFunc(in.OnDemand, unpriced)
	maps.DeleteFunc(in.Spot, unpriced)
	m.adopt(Table{in.OnDemand, in.Spot}, in.Read, ", from the snapshot")
	return nil
}
