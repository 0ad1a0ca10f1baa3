package ledger

import (
	"cmp"
	"slices"
	"time"
)

// Form is the version of [Book].
const Form = 1

// mostGivenBack is how long a NodeClaim may outlive its machine, for which nothing is paid.
const mostGivenBack = 5 * time.Minute

// dayFormat is a day as pages name it.
const dayFormat = "2006-01-02"

// Book is a page of the ledger: one day in UTC. One goroutine uses it.
type Book struct {
	Form int    `json:"form"`
	Day  string `json:"day"`
	// Began is when the ledger began: what machines cost before is not in it.
	Began time.Time `json:"began"`
	// Until is up to when everything is counted; zero for a new book.
	Until time.Time `json:"until"`
	// Open are the machines that are there, Moving the moves that are under way or still
	// earn; a page of a day that is over has neither.
	Open   []Machine `json:"open,omitempty"`
	Moving []Move    `json:"moving,omitempty"`
	// Ended and Moved are those that ended on the day.
	Ended []Machine `json:"ended,omitempty"`
	Moved []Move    `json:"moved,omitempty"`
	// Folded are those of which only sums are kept.
	Folded []Folded `json:"folded,omitempty"`
	// Namespaces and Labels are what was paid on the day, and for which pods. Each of them sums
	// to the same, for Labels by each key.
	Namespaces []Share `json:"namespaces,omitempty"`
	Labels     []Share `json:"labels,omitempty"`
	// LabelKeys are the labels by which it is told apart.
	LabelKeys []string `json:"labelKeys,omitempty"`

	// changed says that something began or ended since the book was packed.
	changed bool
}

// NewBook begins a ledger.
func NewBook(labels []string) *Book { return &Book{Form: Form, LabelKeys: labels} }

// Changed reports whether something began or ended since the book was packed.
func (b *Book) Changed() bool { return b.changed }

// Cost is what was paid on the day.
func (b *Book) Cost() Cost {
	var sum Cost
	for i := range b.Namespaces {
		sum = sum.plus(b.Namespaces[i].Cost)
	}
	return sum
}

// Observe counts up to a look. Where the day of the book is over, it returns the page of
// that day, and the book goes on with the new one.
func (b *Book) Observe(look *Look) (over *Book) {
	if b.Began.IsZero() {
		b.Began, b.Until, b.changed = look.At.UTC(), look.At.UTC(), true
	}
	over = b.turn(look.At)
	if look.At.Before(b.Until) {
		return over // the clock was set back: what is counted stays counted
	}
	sums := newSums(b)
	known := map[machineKey]*Seen{}
	for i := range look.Machines {
		m := &look.Machines[i]
		known[machineKey{m.NodeClaim, m.Launched.UnixMilli()}] = m
	}
	spent := map[string]float64{}
	var open []Machine
	for i := range b.Open {
		m := b.Open[i]
		seen := known[m.key()]
		if seen == nil {
			spent[m.NodeClaim] += b.end(&m, look, sums)
			continue
		}
		delete(known, m.key())
		spent[m.NodeClaim] += b.count(&m, seen, b.Until, look.At, sums)
		open = append(open, m)
	}
	for i := range look.Machines {
		seen := &look.Machines[i]
		if known[machineKey{seen.NodeClaim, seen.Launched.UnixMilli()}] == nil {
			continue
		}
		m := Machine{
			NodeClaim: seen.NodeClaim, NodePool: seen.NodePool, Size: seen.Size, Zone: seen.Zone, CapacityType: seen.CapacityType,
			Launched: seen.Launched, Planned: seen.Planned, Move: seen.Move, Paid: seen.Paid,
		}
		// What it cost before it was seen ran no pod yet.
		starting := *seen
		starting.Starting, starting.Shares = true, nil
		from := m.Launched
		if from.Before(b.Began) {
			from = b.Began
		}
		spent[m.NodeClaim] += b.count(&m, &starting, from, look.At, sums)
		open, b.changed = append(open, m), true
	}
	b.Open = open
	sums.write(b)
	b.move(look, spent)
	b.Until = look.At.UTC()
	return over
}

// count adds what a machine has cost in an interval, at the price of its end, and returns
// the sum in dollars.
func (b *Book) count(m *Machine, seen *Seen, from, to time.Time, sums *sums) float64 {
	if seen.Paid.Total() > 0 {
		m.Paid = seen.Paid
	}
	m.End = seen.End
	if !to.After(from) {
		return 0
	}
	cost := m.Paid.times(to.Sub(from).Hours())
	m.Cost = m.Cost.plus(cost)
	sums.add(m.NodePool, seen, cost)
	return cost.Total()
}

// end closes a machine that is not there any more.
func (b *Book) end(m *Machine, look *Look, sums *sums) float64 {
	at, known := look.Gone[m.NodeClaim]
	if !known || at.Before(b.Until.Add(-mostGivenBack)) || at.After(look.At) {
		// It went while no controller looked; that it was still there is not known.
		at = b.Until
	}
	if at.Before(m.Launched) {
		at = m.Launched
	}
	// What was counted of a machine that was gone already is given back.
	cost := m.Paid.times(at.Sub(b.Until).Hours())
	m.Cost = m.Cost.plus(cost)
	sums.add(m.NodePool, &Seen{}, cost)
	ended := at.UTC()
	m.Ended, m.End = &ended, cmp.Or(m.End, EndDeleted)
	b.Ended, b.changed = append(b.Ended, *m), true
	return cost.Total()
}

// turn closes the page when its day is over.
func (b *Book) turn(at time.Time) *Book {
	day := at.UTC().Format(dayFormat)
	if b.Day == day || b.Day != "" && at.Before(b.Until) {
		return nil
	}
	if b.Day == "" {
		b.Day = day
		return nil
	}
	over := *b
	over.Open, over.Moving, over.changed = nil, nil, false
	b.Day, b.changed = day, true
	b.Ended, b.Moved, b.Folded, b.Namespaces, b.Labels = nil, nil, nil, nil, nil
	return &over
}

// openMachine is a machine that is there, by its NodeClaim, or nil.
func (b *Book) openMachine(claim string) *Machine {
	at := slices.IndexFunc(b.Open, func(m Machine) bool { return m.NodeClaim == claim })
	if at < 0 {
		return nil
	}
	return &b.Open[at]
}
