package shadow

import (
	"math"
	"time"
)

// Report is a record from a moment on. Its fields are a promise: docs/plan-json.md
// documents them.
type Report struct {
	// From is the start of the first hour that counts, To the latest sample. Began is when the
	// record began.
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Began time.Time `json:"began"`
	// EverySeconds is the usual pause between samples, and Samples how many there are.
	EverySeconds float64 `json:"everySeconds"`
	Samples      int     `json:"samples"`
	// WatchedHours is the time that counts; UnwatchedHours lie between From, or Began where
	// that is later, and To without one, and count on neither side.
	WatchedHours   float64 `json:"watchedHours"`
	UnwatchedHours float64 `json:"unwatchedHours"`
	// Paid is what the nodes have cost in that time in dollars, Planned what nap's plans for
	// the same pods would have, and Bound is below what any nodes for them could have.
	Paid    Price   `json:"paid"`
	Planned Price   `json:"planned"`
	Bound   float64 `json:"bound"`
	// SavedPercent is how much less Planned is, from 0 to 100.
	SavedPercent float64 `json:"savedPercent"`
	// MostPending is the most pods that a plan had no place for.
	MostPending int `json:"mostPending,omitempty"`
	// Now is the latest sample.
	Now *Sample `json:"now,omitempty"`
	// Hours are the sums by hour, Purchases what pods that waited would have got and got.
	Hours     []Hour     `json:"hours"`
	Purchases []Purchase `json:"purchases"`
	// Dropped is how many older purchases the record does not have any more.
	Dropped int      `json:"dropped,omitempty"`
	Region  string   `json:"region,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// Since sums up the hours from the one of a moment on.
func (r *Record) Since(from time.Time) *Report {
	out := &Report{
		From: from.UTC().Truncate(time.Hour), Began: r.Began, EverySeconds: r.Every, Now: r.Last, Hours: []Hour{}, Purchases: []Purchase{},
		Dropped: r.Dropped, Region: r.Region, Notes: r.Notes,
	}
	if r.Last != nil {
		out.To = r.Last.At
	}
	seconds := 0.0
	for i := range r.Hours {
		h := &r.Hours[i]
		if h.Start.Before(out.From) {
			continue
		}
		out.Hours = append(out.Hours, *h)
		out.Samples += h.Samples
		seconds += h.Seconds
		out.Paid.add(h.Paid, 1)
		out.Planned.add(h.Planned, 1)
		out.Bound += h.Bound
		out.MostPending = max(out.MostPending, h.MostPending)
	}
	start := out.From
	if r.Began.After(start) {
		start = r.Began
	}
	out.WatchedHours = seconds / time.Hour.Seconds()
	out.UnwatchedHours = max(0, out.To.Sub(start).Hours()-out.WatchedHours)
	out.SavedPercent = Saved(out.Paid.Total(), out.Planned.Total())
	for _, p := range r.Purchases {
		if !p.At.Before(out.From) {
			out.Purchases = append(out.Purchases, p)
		}
	}
	return out
}

// Saved is how many percent less one cost is than another, from 0 to 100.
func Saved(paid, planned float64) float64 {
	if paid <= 0 {
		return 0
	}
	return max(0, math.Round(1e4*(1-planned/paid))/100)
}
