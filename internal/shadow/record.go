package shadow

import (
	"slices"
	"time"
)

// Form is the version of a record; a reader that does not know it must not read it.
const Form = 1

// Bounds of a record.
const (
	// keptHours is for how many hours sums are kept: 35 days.
	keptHours = 35 * 24
	// mostPurchases is how many purchases are kept one by one, the latest ones.
	mostPurchases = 300
	// mostSizes is how many sizes of machines a purchase names.
	mostSizes = 12
	// gapAfter is after how many usual pauses between samples no shadow has watched.
	gapAfter = 3
)

// Price is dollars per hour, or dollars, as the bill has them.
type Price struct {
	// Machine is the virtual machine, Disk its managed disk, Node what the user adds.
	Machine float64 `json:"machine"`
	Disk    float64 `json:"disk,omitempty"`
	Node    float64 `json:"node,omitempty"`
}

// Total is all of it.
func (p Price) Total() float64 { return p.Machine + p.Disk + p.Node }

// Sample is what a cluster cost at a moment, and what nap's plan for the same pods would.
type Sample struct {
	At time.Time `json:"at"`
	// Nodes are those that count, with their Pods; Stay are others: of mode system, or
	// without a price.
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	Stay  int `json:"stay,omitempty"`
	// Paid is what the nodes cost and Planned what those of the plan do, in dollars per hour.
	// Bound is below what any nodes for the pods can cost.
	Paid    Price   `json:"paid"`
	Planned Price   `json:"planned"`
	Bound   float64 `json:"bound"`
	// PlannedNodes is how many nodes the plan has, to which all the pods would have to move,
	// and Pending how many of them it has no place for.
	PlannedNodes int `json:"plannedNodes"`
	Pending      int `json:"pending,omitempty"`
}

// Hour are the sums of an hour.
type Hour struct {
	// Start is when the hour began, in UTC.
	Start time.Time `json:"start"`
	// Seconds is how much of it was watched.
	Seconds float64 `json:"seconds"`
	// Samples is how many samples were taken in it.
	Samples int `json:"samples"`
	// Paid, Planned and Bound are dollars.
	Paid    Price   `json:"paid"`
	Planned Price   `json:"planned"`
	Bound   float64 `json:"bound"`
	// NodeHours and PlannedNodeHours are nodes times hours.
	NodeHours        float64 `json:"nodeHours"`
	PlannedNodeHours float64 `json:"plannedNodeHours"`
	// MostPending is the most pods of a sample that the plan had no place for.
	MostPending int `json:"mostPending,omitempty"`
}

// Machines are machines of one size.
type Machines struct {
	// Size is the VM size, with " spot" behind it for spot machines.
	Size  string `json:"size"`
	Count int    `json:"count"`
}

// Purchase is what pods that began to wait together would have got from nap, and what they
// got from the ruling autoscaler.
type Purchase struct {
	// At is when the first of the pods could not be scheduled. Pods is how many they are, Pod
	// the first by name.
	At   time.Time `json:"at"`
	Pods int       `json:"pods"`
	Pod  string    `json:"pod"`
	// Decided is when nap would have bought, Planned what, for PlannedHourly dollars per
	// hour. Unplaced is how many of the pods the plan had no place for.
	Decided       time.Time  `json:"decided"`
	Planned       []Machines `json:"planned,omitempty"`
	PlannedHourly float64    `json:"plannedHourly"`
	Unplaced      int        `json:"unplaced,omitempty"`
	// First is when the first machine that some of the pods went to became a node; nil where
	// none was bought. Bought are these machines, for BoughtHourly dollars per hour.
	First        *time.Time `json:"first,omitempty"`
	Bought       []Machines `json:"bought,omitempty"`
	BoughtHourly float64    `json:"boughtHourly"`
	// Placed is when the last of the pods got a node; nil while some wait. Gone is how many
	// were deleted before.
	Placed *time.Time `json:"placed,omitempty"`
	Gone   int        `json:"gone,omitempty"`
	// Lost says that the pods were not followed to the end.
	Lost bool `json:"lost,omitempty"`
}

// Record is what is written down.
type Record struct {
	Form int `json:"form"`
	// Began is when the first sample was taken, Every the usual pause between samples in
	// seconds.
	Began time.Time `json:"began"`
	Every float64   `json:"every"`
	// Last is the latest sample.
	Last *Sample `json:"last,omitempty"`
	// Hours are the sums, the oldest first; hours that were not watched are absent.
	Hours []Hour `json:"hours,omitempty"`
	// Purchases are those of waiting pods, the oldest first. Dropped is how many older ones
	// are not in the record any more.
	Purchases []Purchase `json:"purchases,omitempty"`
	Dropped   int        `json:"dropped,omitempty"`
	// Region is the region of the prices, Notes are what was assumed.
	Region string   `json:"region,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// NewRecord is a record without anything.
func NewRecord() *Record { return &Record{Form: Form} }

// Gap is after how long without a sample the time between counts on no side.
func Gap(every time.Duration) time.Duration { return gapAfter * every }

// Observe adds a sample, which holds until the next one; every is the usual pause.
func (r *Record) Observe(s Sample, every time.Duration) {
	if r.Began.IsZero() {
		r.Began = s.At
	}
	if last := r.Last; last != nil {
		// A longer pause that was usual until now is no gap.
		usual := max(every, time.Duration(r.Every*float64(time.Second)))
		if between := s.At.Sub(last.At); between > 0 && between <= Gap(usual) {
			r.count(last, s.At)
		}
	}
	r.Every = every.Seconds()
	h := r.hour(s.At)
	h.Samples++
	h.MostPending = max(h.MostPending, s.Pending)
	r.Last = &s
	r.Hours = r.Hours[max(0, len(r.Hours)-keptHours):]
}

// count adds what a sample costs from when it was taken until the next one.
func (r *Record) count(s *Sample, until time.Time) {
	for from := s.At; from.Before(until); {
		to := from.UTC().Truncate(time.Hour).Add(time.Hour)
		if to.After(until) {
			to = until
		}
		h, hours := r.hour(from), to.Sub(from).Hours()
		h.Seconds += to.Sub(from).Seconds()
		h.Paid.add(s.Paid, hours)
		h.Planned.add(s.Planned, hours)
		h.Bound += s.Bound * hours
		h.NodeHours += float64(s.Nodes) * hours
		h.PlannedNodeHours += float64(s.PlannedNodes) * hours
		from = to
	}
}

func (p *Price) add(o Price, times float64) {
	p.Machine += o.Machine * times
	p.Disk += o.Disk * times
	p.Node += o.Node * times
}

// hour are the sums of the hour of a moment.
func (r *Record) hour(at time.Time) *Hour {
	start := at.UTC().Truncate(time.Hour)
	i, found := slices.BinarySearchFunc(r.Hours, start, func(h Hour, start time.Time) int { return h.Start.Compare(start) })
	if !found {
		r.Hours = slices.Insert(r.Hours, i, Hour{Start: start})
	}
	return &r.Hours[i]
}

// Follow writes down how far a purchase is, known by its time and first pod. One for which
// nothing is bought on either side is none.
func (r *Record) Follow(p Purchase) {
	if i := slices.IndexFunc(r.Purchases, func(o Purchase) bool { return o.At.Equal(p.At) && o.Pod == p.Pod }); i >= 0 {
		r.Purchases[i] = p
		return
	}
	if len(p.Planned) == 0 && len(p.Bought) == 0 {
		return
	}
	r.Purchases = append(r.Purchases, p)
	if over := len(r.Purchases) - mostPurchases; over > 0 {
		r.Purchases, r.Dropped = slices.Clone(r.Purchases[over:]), r.Dropped+over
	}
}

// AddMachine adds a machine to those of a purchase; sizes beyond a bound are counted together.
func AddMachine(to []Machines, size string) []Machines {
	i := slices.IndexFunc(to, func(m Machines) bool { return m.Size == size })
	if i < 0 && len(to) >= mostSizes {
		i, to[len(to)-1].Size = len(to)-1, "others"
	}
	if i < 0 {
		return append(to, Machines{Size: size, Count: 1})
	}
	to[i].Count++
	return to
}
