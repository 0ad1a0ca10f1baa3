package model

import (
	"maps"
	"slices"
	"strings"
)

// Advance is what is paid in advance for on-demand machines: reservations and savings plans,
// whole, whatever machines there are. It is not changed. A nil one is nothing.
type Advance struct {
	// Lines are used in their order: what the first has no room for is covered by the next.
	Lines []AdvanceLine
}

// Covers reports whether something may be paid in advance for machines of a size, in any case.
func (a *Advance) Covers(size string) bool {
	if a == nil {
		return false
	}
	return slices.ContainsFunc(a.Lines, func(l AdvanceLine) bool {
		return slices.ContainsFunc(l.Sizes, func(s AdvanceSize) bool { return strings.EqualFold(s.Size, size) })
	})
}

// AdvanceLine is one reservation or savings plan.
type AdvanceLine struct {
	// Quota names it and says how much it is, in machines or in micro-dollars an hour.
	Quota Quota
	// Sizes are what it covers, in the order in which they get it.
	Sizes []AdvanceSize
}

// AdvanceSize is what a line charges for machines of a size.
type AdvanceSize struct {
	// Size is in lower case.
	Size string
	// Price is that of the machine per hour, Amount what it takes from the line.
	Price  Money
	Amount int64
}

// Cover is what a machine costs that a line pays for, and what it takes from the line. The
// price is per hour and of the machine alone.
type Cover struct {
	Price Money
	Use   QuotaUse
}

// AdvanceAccount says which machines are paid in advance, and what is left for others. It
// depends on how many machines of each size there are, and on nothing else of them. The zero
// value, and nil, cover nothing.
type AdvanceAccount struct {
	lines []AdvanceLine
	left  []int64
	// covers are what machines of a size have, first ones first.
	covers map[string][]Cover
}

// Account lets machines use up what is paid in advance: how many there are, by size in any case.
func (a *Advance) Account(machines map[string]int) *AdvanceAccount {
	out := &AdvanceAccount{covers: map[string][]Cover{}}
	if a == nil {
		return out
	}
	out.lines, out.left = a.Lines, make([]int64, len(a.Lines))
	bare := make(map[string]int, len(machines))
	for _, size := range slices.Sorted(maps.Keys(machines)) {
		bare[strings.ToLower(size)] += machines[size]
	}
	for i := range a.Lines {
		line := &a.Lines[i]
		out.left[i] = line.Quota.Left
		for j := range line.Sizes {
			for s := &line.Sizes[j]; bare[s.Size] > 0 && out.left[i] >= s.Amount; bare[s.Size]-- {
				out.take(i, s)
			}
		}
	}
	return out
}

func (c *AdvanceAccount) take(line int, s *AdvanceSize) Cover {
	cover := Cover{s.Price, QuotaUse{c.lines[line].Quota.Name, s.Amount}}
	c.left[line] -= s.Amount
	c.covers[s.Size] = append(c.covers[s.Size], cover)
	return cover
}

// Of are the covers of the machines of a size that are paid in advance, as many as they are.
func (c *AdvanceAccount) Of(size string) []Cover {
	if c == nil {
		return nil
	}
	return c.covers[strings.ToLower(size)]
}

// Next are the covers that one more machine of a size may have, each of another line: the first
// is the one that it gets. There is none where nothing covers it.
func (c *AdvanceAccount) Next(size string) []Cover {
	var out []Cover
	c.each(size, func(line int, s *AdvanceSize) bool {
		out = append(out, Cover{s.Price, QuotaUse{c.lines[line].Quota.Name, s.Amount}})
		return true
	})
	return out
}

// Take covers one more machine of a size; false where nothing is left for it.
func (c *AdvanceAccount) Take(size string) (cover Cover, covered bool) {
	c.each(size, func(line int, s *AdvanceSize) bool {
		cover, covered = c.take(line, s), true
		return false
	})
	return cover, covered
}

// each calls f with every line that has room for one more machine of a size, until it returns false.
func (c *AdvanceAccount) each(size string, f func(line int, s *AdvanceSize) bool) {
	if c == nil {
		return
	}
	size = strings.ToLower(size)
	for i := range c.lines {
		for j := range c.lines[i].Sizes {
			if s := &c.lines[i].Sizes[j]; s.Size == size && c.left[i] >= s.Amount && !f(i, s) {
				return
			}
		}
	}
}

// Left are the lines with what is left of them.
func (c *AdvanceAccount) Left() []Quota {
	if c == nil {
		return nil
	}
	out := make([]Quota, len(c.lines))
	for i := range c.lines {
		out[i] = Quota{Name: c.lines[i].Quota.Name, Left: c.left[i]}
	}
	return out
}

// Cover is what pays for machines of the offering in advance; false where nothing does.
func (o *Offering) Cover() (Cover, bool) {
	if o.Uncovered == 0 {
		return Cover{}, false
	}
	return Cover{o.MachinePrice(), o.Quotas[len(o.Quotas)-1]}, true
}

// WithoutCover is the offering for machines that are not paid in advance.
func (o *Offering) WithoutCover() Offering {
	out := *o
	if o.Uncovered != 0 {
		out.Price, out.Uncovered, out.Quotas = o.Uncovered, 0, o.Quotas[:len(o.Quotas)-1:len(o.Quotas)-1]
	}
	return out
}

// WithCover is an offering without one for machines that are paid in advance; false where that
// is no cheaper.
func (o *Offering) WithCover(c Cover) (Offering, bool) {
	out := *o
	out.Price = c.Price + o.DiskPrice + o.NodePrice
	if o.CapacityType != OnDemand || out.Price >= o.Price {
		return *o, false
	}
	out.Uncovered, out.Quotas = o.Price, append(slices.Clone(o.Quotas), c.Use)
	return out, true
}

// Beyond are the offerings of a size for machines that exist by no line yet: where one more is
// paid in advance, the same offering by each line that has room for it, and by none. One plan may
// buy machines of all of these. It returns offerings itself where nothing is paid in advance.
func (c *AdvanceAccount) Beyond(size string, offerings []Offering) []Offering {
	covers := c.Next(size)
	if len(covers) == 0 {
		return offerings
	}
	out := make([]Offering, 0, len(offerings)+len(covers))
	for i := range offerings {
		for _, cover := range covers {
			if o, cheaper := offerings[i].WithCover(cover); cheaper {
				out = append(out, o)
			}
		}
		out = append(out, offerings[i])
	}
	return out
}
