package poollint

import (
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Span is what requirements leave of a catalogue.
type Span struct {
	// Offerings counts them; Lowest and Highest are the prices of the cheapest and the
	// dearest an hour, zero where there is none.
	Offerings       int
	Lowest, Highest model.Money
	// Size is the cheapest one's.
	Size string
}

// SpanOf is what requirements leave of a catalogue. Keys that no size has restrict nothing.
func SpanOf(rs model.Requirements, c *fleet.Catalog) Span {
	var s Span
	for _, x := range choices(&fleet.Pool{Requirements: rs}, c) {
		price := x.offering.Price
		if s.Offerings++; s.Offerings == 1 || price < s.Lowest {
			s.Lowest, s.Size = price, x.size.Name
		}
		s.Highest = max(s.Highest, price)
	}
	return s
}

// CheapestFor is the size and the price an hour at which requirements give that many vCPUs and
// that much memory, from machines of one size which have at most so many milli-vCPUs together;
// false where no size is left.
func CheapestFor(
	rs model.Requirements, c *fleet.Catalog, least model.Resources, mostMilliCPU int64,
) (size string, machines int64, price model.Money, ok bool) {
	for _, x := range choices(&fleet.Pool{Requirements: rs}, c) {
		cpu, mem := x.size.Capacity.Get(model.CPU), x.size.Capacity.Get(model.Memory)
		if cpu <= 0 || mem <= 0 {
			continue
		}
		n := max((least.Get(model.CPU)+cpu-1)/cpu, (least.Get(model.Memory)+mem-1)/mem)
		if n*cpu > mostMilliCPU {
			continue
		}
		if total := x.offering.Price * model.Money(n); !ok || total < price {
			size, machines, price, ok = x.size.Name, n, total, true
		}
	}
	return size, machines, price, ok
}
