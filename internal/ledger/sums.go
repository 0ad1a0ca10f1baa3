package ledger

import (
	"cmp"
	"slices"
)

// mostRows is how many rows of namespaces, and of labels, a day has at most. The smallest of
// more become one.
const mostRows = 500

type shareKey struct{ of, name string }

// sums adds up whose the costs are.
type sums struct {
	keys       []string
	namespaces map[shareKey]Cost
	labels     map[shareKey]Cost
}

func newSums(b *Book) *sums {
	s := &sums{keys: b.LabelKeys, namespaces: map[shareKey]Cost{}, labels: map[shareKey]Cost{}}
	for _, r := range b.Namespaces {
		s.namespaces[shareKey{r.Of, r.Name}] = r.Cost
	}
	for _, r := range b.Labels {
		s.labels[shareKey{r.Of, r.Name}] = r.Cost
	}
	return s
}

// add shares what a machine has cost.
func (s *sums) add(pool string, seen *Seen, cost Cost) {
	if seen.Starting {
		s.put(pool, Starting, nil, cost)
		return
	}
	left := 1.0
	for i := range seen.Shares {
		p := &seen.Shares[i]
		left -= p.Share
		if p.Daemon {
			s.put(pool, Daemons, nil, cost.times(p.Share))
			continue
		}
		s.put(pool, p.Namespace, p.Labels, cost.times(p.Share))
	}
	s.put(pool, Idle, nil, cost.times(max(0, left)))
}

// put adds to the rows of a namespace and of the values of labels; without values the
// namespace's name stands for each.
func (s *sums) put(pool, namespace string, values []string, cost Cost) {
	at := shareKey{pool, namespace}
	s.namespaces[at] = s.namespaces[at].plus(cost)
	for i, key := range s.keys {
		name := namespace
		if values != nil {
			name = cmp.Or(values[i], None)
		}
		at := shareKey{key, name}
		s.labels[at] = s.labels[at].plus(cost)
	}
}

// write puts the sums into the book.
func (s *sums) write(b *Book) {
	b.Namespaces, b.Labels = rows(s.namespaces), rows(s.labels)
}

// rows are sums as rows, ordered; the smallest of too many become Others.
func rows(of map[shareKey]Cost) []Share {
	out := make([]Share, 0, len(of))
	for key, cost := range of {
		if cost != (Cost{}) {
			out = append(out, Share{Of: key.of, Name: key.name, Cost: cost})
		}
	}
	if len(out) > mostRows {
		slices.SortFunc(out, func(x, y Share) int {
			return cmp.Or(cmp.Compare(y.Cost.Total(), x.Cost.Total()), cmp.Compare(x.Of, y.Of), cmp.Compare(x.Name, y.Name))
		})
		kept := map[shareKey]Cost{}
		for i, r := range out {
			key := shareKey{r.Of, r.Name}
			if i >= mostRows/2 {
				key.name = Others
			}
			kept[key] = kept[key].plus(r.Cost)
		}
		if len(kept) < len(of) {
			return rows(kept)
		}
	}
	slices.SortFunc(out, func(x, y Share) int {
		return cmp.Or(cmp.Compare(x.Of, y.Of), cmp.Compare(x.Name, y.Name))
	})
	return out
}
