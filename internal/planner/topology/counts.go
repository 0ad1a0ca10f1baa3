package topology

import (
	"maps"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Counts are the numbers of pods per domain in one plan: those that run, and those that
// the plan placed so far. Methods that begin with Add change them, and no others do.
// Adding a negative number takes pods back; the counts then are as if the pods had never
// been added.
type Counts struct {
	// Eligible are the eligible domains of spread constraints in this plan.
	Eligible *Eligible
	t        *Topology
	// tallies are the numbers of each counter of the topology; those of pairwise ones are
	// not used.
	tallies []tally
	// minima are the global minima of each group of the topology. Invariant: each is
	// what [Counts.minimum] returns.
	minima []minimum
	// residents are the pods on hosts that pairwise counters count.
	residents residents
}

// tally is the numbers of one counter.
type tally struct {
	// total counts over all domains. Pods on places without a domain, or that the
	// counter does not see, do not count at all.
	total int
	// starting is how many of them are on nodes that have yet to start.
	starting int
	// byValue counts by domain if the key is a label. Domains beyond its end have no
	// pods.
	byValue []int32
	// byPlace counts by [Place.ID] if the key is Host. It is nil while there is none.
	byPlace map[int]int32
	// undecided counts, by [Place.ID], pods on new nodes whose domain is not decided.
	// They are in total and in no domain. It is nil while there is none.
	undecided map[int]int32
}

// minimum is the least count of a group of eligible domains.
type minimum struct {
	// least is math.MaxInt32 when there is no domain.
	least int32
	// domains is how many domains have that count.
	domains int
}

// NewCounts counts the pods that run. The further domains are eligible for the spread
// constraints of their counters besides the constraints' own.
func (t *Topology) NewCounts(further []Domain) *Counts {
	c := t.running.Fork()
	if len(further) > 0 {
		c.Eligible = newEligible(t, further)
		c.setMinima()
	}
	return c
}

// newCounts counts no pods.
func newCounts(t *Topology) *Counts {
	c := &Counts{Eligible: newEligible(t, nil), t: t, tallies: make([]tally, len(t.counters)), minima: make([]minimum, len(t.groups))}
	c.setMinima()
	return c
}

// Fork returns independent counts with the same numbers.
func (c *Counts) Fork() *Counts {
	f := &Counts{Eligible: c.Eligible, t: c.t, tallies: slices.Clone(c.tallies), minima: slices.Clone(c.minima), residents: c.residents.fork()}
	n := 0
	for i := range c.tallies {
		n += len(c.tallies[i].byValue)
	}
	cells := make([]int32, 0, n) // one piece of storage for all
	for i := range f.tallies {
		y := &f.tallies[i]
		begin := len(cells)
		cells = append(cells, y.byValue...)
		y.byValue = cells[begin:len(cells):len(cells)]
		y.byPlace, y.undecided = maps.Clone(y.byPlace), maps.Clone(y.undecided)
	}
	return f
}

// Add counts n more pods of a class on a place. It does not ask whether they may enter:
// see [Counts.Room].
func (c *Counts) Add(class int, p Place, n int) {
	as := &c.t.counts[class]
	for _, at := range as.tallied {
		c.add(int(at), p, n)
	}
	c.residents.add(p.ID, as.kind, n)
}

// AddHost is Add for counters of hosts only. It is for pods on a new node whose other
// domains are undecided, and are counted by [Counts.AddUndecided].
func (c *Counts) AddHost(class int, p Place, n int) {
	as := &c.t.counts[class]
	for _, at := range as.tallied {
		if c.t.counters[at].key == Host {
			c.add(int(at), p, n)
		}
	}
	c.residents.add(p.ID, as.kind, n)
}

// AddUndecided counts n more pods of a class on a new node that may still be bought as
// any of the options. Where these have several domains of a key, affinity counts the
// pods on the node and in no domain; anti-affinity counts them in each domain. To take
// pods back, the options must be those with which they were added.
func (c *Counts) AddUndecided(class int, p Place, n int, options bitset.Set) {
	var domains []int32
	as := &c.t.counts[class]
	c.residents.add(p.ID, as.kind, n)
	for _, at := range as.tallied {
		counter, y := &c.t.counters[at], &c.tallies[at]
		if domains = domains[:0]; counter.key != Host {
			for o := range options.All {
				if d := c.t.space.Labels.OptionValue(counter.key, o); !slices.Contains(domains, d) {
					domains = append(domains, d)
				}
			}
		}
		switch {
		case len(domains) < 2:
			c.add(int(at), p, n)
		case counter.byAffinity:
			y.total += n
			y.starting += n
			if y.undecided == nil {
				y.undecided = map[int]int32{}
			}
			y.undecided[p.ID] += int32(n)
		default:
			y.starting += n
			for _, d := range domains {
				c.addIn(int(at), d, n)
			}
		}
	}
}

// add counts n more pods on a place, if the counter counts there.
func (c *Counts) add(counter int, p Place, n int) {
	if of := &c.t.counters[counter]; of.sees(p) {
		if c.t.starts(p) {
			c.tallies[counter].starting += n
		}
		c.addIn(counter, c.t.Domain(of.key, p), n)
	}
}

// addIn counts n more pods in a domain; a negative domain is none.
func (c *Counts) addIn(counter int, d int32, n int) {
	if d < 0 {
		return
	}
	y, of := &c.tallies[counter], &c.t.counters[counter]
	y.total += n
	if of.key == Host {
		if y.byPlace == nil {
			y.byPlace = map[int]int32{}
		}
		y.byPlace[int(d)] += int32(n)
	} else {
		for int(d) >= len(y.byValue) {
			y.byValue = append(y.byValue, 0)
		}
		y.byValue[d] += int32(n)
	}
	after := c.in(counter, d)
	for _, g := range of.groups {
		if c.Eligible.has(g, d) {
			c.updateMinimum(g, after-int32(n), after)
		}
	}
}

// updateMinimum restores the invariant of a group after the count of one of its domains
// changed. Only when the last domain with the least count left it are all counted again.
func (c *Counts) updateMinimum(group int, before, after int32) {
	switch m := &c.minima[group]; {
	case after < m.least:
		m.least, m.domains = after, 1
	case after == m.least && before > m.least:
		m.domains++
	case after > m.least && before == m.least:
		if m.domains--; m.domains == 0 {
			*m = c.minimum(group)
		}
	}
}

func (c *Counts) setMinima() {
	for g := range c.minima {
		c.minima[g] = c.minimum(g)
	}
}

// minimum finds the global minimum of a group.
func (c *Counts) minimum(group int) minimum {
	m, counter := minimum{least: math.MaxInt32}, c.t.groups[group].counter
	if c.t.counters[counter].key == Host && len(c.tallies[counter].byPlace) == 0 {
		return minimum{0, len(c.t.groups[group].domains)}
	}
	for _, list := range [2][]int32{c.t.groups[group].domains, c.Eligible.more(group)} {
		for _, d := range list {
			switch n := c.in(counter, d); {
			case n < m.least:
				m.least, m.domains = n, 1
			case n == m.least:
				m.domains++
			}
		}
	}
	return m
}

// inValue is the count in a domain of a label key.
func (y *tally) inValue(d int32) int32 {
	if d < 0 || int(d) >= len(y.byValue) {
		return 0
	}
	return y.byValue[d]
}

// in is the number of pods that a counter counts in a domain.
func (c *Counts) in(counter int, d int32) int32 {
	switch of := &c.t.counters[counter]; {
	case of.kinds != nil:
		return c.residents.count(int(d), of.kinds)
	case of.key == Host:
		return c.tallies[counter].byPlace[int(d)]
	}
	return c.tallies[counter].inValue(d)
}

// Total is the number of pods that a counter counts over all domains, undecided ones
// included. It is 0 for a counter that anti-affinity over hosts alone reads.
func (c *Counts) Total(counter int) int { return c.tallies[counter].total }

// Sum adds up the counts of some counters in a place's domains.
func (c *Counts) Sum(counters []int, p Place) int64 {
	var sum int64
	for _, at := range counters {
		sum += int64(c.in(at, c.t.Domain(c.t.counters[at].key, p)))
	}
	return sum
}
