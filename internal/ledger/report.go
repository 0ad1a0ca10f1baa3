package ledger

import (
	"cmp"
	"slices"
	"time"
)

// Report is what a ledger says of some days. Its fields are a promise: docs/plan-json.md documents
// them.
type Report struct {
	// From is the start of its first day, To up to when everything is counted, both in
	// UTC. Began is when the ledger began.
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Began time.Time `json:"began"`
	// Cost is what was paid in these days, in dollars, HourlyCost what is paid per hour now.
	Cost       Cost `json:"cost"`
	HourlyCost Cost `json:"hourlyCost"`
	// NodePools, Namespaces and Labels are whose that was: each sums to Cost, Labels by each
	// label.
	NodePools  []Share `json:"nodePools"`
	Namespaces []Share `json:"namespaces"`
	Labels     []Share `json:"labels"`
	// Purchases are the machines that were bought in these days or are there, the latest
	// first; of those that have ended before From none.
	Purchases []Machine `json:"purchases"`
	// Moves are those that began or ended in these days, the latest first.
	Moves []Move `json:"moves"`
	// Folded are those of which only sums are left.
	Folded []Folded `json:"folded,omitempty"`
	Totals Totals   `json:"totals"`
}

// Totals count purchases and moves of a report, those that were folded included.
type Totals struct {
	Machines int `json:"machines"`
	// Planned and Paid are what the machines of which a plan says were to cost and cost,
	// in dollars per hour.
	Planned float64 `json:"planned"`
	Paid    float64 `json:"paid"`
	Moves   int     `json:"moves"`
	// MovesPaid is how many of the moves have saved more than they have cost, Saved and
	// Spent what they did in dollars.
	MovesPaid int     `json:"movesPaid"`
	Evictions int     `json:"evictions"`
	Saved     float64 `json:"saved"`
	Spent     float64 `json:"spent"`
	// Evicted is how many machines Azure took back.
	Evicted int `json:"evicted"`
}

// Sum puts pages together from the day of a moment on. How far they reach, and what is paid
// now, the last page says, also where it is older.
func Sum(books []*Book, from time.Time) *Report {
	first := from.UTC().Truncate(24 * time.Hour)
	out := &Report{From: first}
	pools, namespaces, labels := map[shareKey]Cost{}, map[shareKey]Cost{}, map[shareKey]Cost{}
	for _, b := range books {
		if b.Until.After(out.To) {
			out.To, out.Began = b.Until, b.Began
		}
		for i := range b.Open {
			out.HourlyCost = out.HourlyCost.plus(b.Open[i].Paid)
		}
		if b.Day < first.Format(dayFormat) {
			continue
		}
		for _, r := range b.Namespaces {
			out.Cost = out.Cost.plus(r.Cost)
			pool, namespace := shareKey{name: r.Of}, shareKey{name: r.Name}
			pools[pool], namespaces[namespace] = pools[pool].plus(r.Cost), namespaces[namespace].plus(r.Cost)
		}
		for _, r := range b.Labels {
			key := shareKey{r.Of, r.Name}
			labels[key] = labels[key].plus(r.Cost)
		}
		out.Purchases = slices.Concat(out.Purchases, b.Ended, b.Open)
		out.Moves = slices.Concat(out.Moves, b.Moved, b.Moving)
		out.fold(b.Folded)
	}
	out.NodePools, out.Namespaces, out.Labels = shares(pools), shares(namespaces), shares(labels)
	slices.SortFunc(out.Purchases, func(x, y Machine) int {
		return cmp.Or(y.Launched.Compare(x.Launched), cmp.Compare(x.NodeClaim, y.NodeClaim))
	})
	slices.SortFunc(out.Moves, func(x, y Move) int { return cmp.Or(y.Begun.Compare(x.Begun), cmp.Compare(x.ID, y.ID)) })
	out.total()
	return out
}

func (r *Report) fold(folded []Folded) {
	for _, f := range folded {
		at := slices.IndexFunc(r.Folded, func(o Folded) bool { return o.NodePool == f.NodePool })
		if at < 0 {
			r.Folded = append(r.Folded, f)
			continue
		}
		o := &r.Folded[at]
		o.Machines, o.Cost, o.Moves, o.Paid = o.Machines+f.Machines, o.Cost.plus(f.Cost), o.Moves+f.Moves, o.Paid+f.Paid
		o.Evictions, o.Spent, o.Saved = o.Evictions+f.Evictions, o.Spent+f.Spent, o.Saved+f.Saved
	}
}

func (r *Report) total() {
	t := &r.Totals
	for i := range r.Purchases {
		m := &r.Purchases[i]
		t.Machines++
		if m.Planned > 0 {
			t.Planned, t.Paid = t.Planned+m.Planned, t.Paid+m.Paid.Total()
		}
		if m.End == EndEvicted {
			t.Evicted++
		}
	}
	for i := range r.Moves {
		m := &r.Moves[i]
		t.Moves++
		t.Evictions, t.Saved, t.Spent = t.Evictions+m.Evictions, t.Saved+m.Saved, t.Spent+m.Spent
		if m.Paid() {
			t.MovesPaid++
		}
	}
	for _, f := range r.Folded {
		t.Machines, t.Moves, t.MovesPaid = t.Machines+f.Machines, t.Moves+f.Moves, t.MovesPaid+f.Paid
		t.Evictions, t.Saved, t.Spent = t.Evictions+f.Evictions, t.Saved+f.Saved, t.Spent+f.Spent
	}
}

// shares are sums as rows, the dearest first; rows of no namespace come last.
func shares(of map[shareKey]Cost) []Share {
	out := make([]Share, 0, len(of))
	for key, cost := range of {
		out = append(out, Share{Of: key.of, Name: key.name, Cost: cost})
	}
	slices.SortFunc(out, func(x, y Share) int {
		return cmp.Or(cmp.Compare(x.Of, y.Of), cmp.Compare(overhead(x.Name), overhead(y.Name)),
			cmp.Compare(y.Cost.Total(), x.Cost.Total()), cmp.Compare(x.Name, y.Name))
	})
	return out
}

// overhead orders the rows that are no namespace behind all others.
func overhead(name string) int {
	return slices.Index([]string{Idle, Daemons, Starting, Others}, name)
}
