package topology

import (
	"math"
	"slices"
)

// NoLimit is the room of a place that topology does not limit.
const NoLimit = math.MaxInt32

// Scope selects which keys a question is about.
type Scope int

// The scopes: label keys, kubernetes.io/hostname, or both.
const (
	Labels Scope = 1 << iota
	Hosts
	Everything = Labels | Hosts
)

func (s Scope) covers(key int) bool {
	if key == Host {
		return s&Hosts != 0
	}
	return s&Labels != 0
}

// Room is how many more pods of the class may enter the place's domains right
// now, as far as keys in the scope are concerned.
func (w *World) Room(class int, r *Rules, p Place, scope Scope) int {
	room := NoLimit
	for i := range r.Spread {
		if scope.covers(r.Spread[i].Key) {
			room = min(room, w.spreadRoom(&r.Spread[i], p))
		}
	}
	if room == 0 {
		return 0
	}
	room = min(room, w.affinityRoom(r, p, scope))
	for _, c := range r.Empty {
		room = min(room, w.emptyRoom(class, c, p, scope))
	}
	for _, c := range w.repelled[class] {
		room = min(room, w.emptyRoom(class, c, p, scope))
	}
	return room
}

// SpreadRoom is the part of Room that the spreads over labels leave.
func (w *World) SpreadRoom(r *Rules, p Place) int {
	room := NoLimit
	for i := range r.Spread {
		if r.Spread[i].Key != Host {
			room = min(room, w.spreadRoom(&r.Spread[i], p))
		}
	}
	return room
}

func (w *World) spreadRoom(s *Spread, p Place) int {
	c := w.counters[s.Counter]
	d := w.Domain(s.Key, p)
	if d < 0 && s.Key != Host {
		return 0
	}
	ceiling := w.Minimum(s) + s.MaxSkew
	count := int32(0) // on a machine that is nowhere yet
	if d >= 0 {
		count = c.Count(d)
	}
	if s.Self == 0 {
		if count <= ceiling {
			return NoLimit
		}
		return 0
	}
	return int(max(0, ceiling-count))
}

// Minimum is the count of the emptiest domain of a spread constraint: zero for
// hosts, since a new one can be had, and where domains are missing.
func (w *World) Minimum(s *Spread) int32 {
	more := w.spreads[s.id].more
	if s.Key == Host || len(s.Domains)+len(more) == 0 || len(s.Domains)+len(more) < s.MinDomains {
		return 0
	}
	c := w.counters[s.Counter]
	if m := &w.minima[s.id]; m.known && m.version == c.version {
		return m.least
	} else if m.known && m.version+1 == c.version && c.Count(c.changed) > c.changedFrom {
		// Counts only rise while a plan grows: the minimum stays until its last
		// domain has left it.
		if c.changedFrom == m.least {
			if _, ok := slices.BinarySearch(s.Domains, c.changed); ok || slices.Contains(more, c.changed) {
				m.domains--
			}
		}
		if m.domains > 0 {
			m.version = c.version
			return m.least
		}
	}
	m := minimum{known: true, version: c.version, least: math.MaxInt32}
	for _, list := range [2][]int32{s.Domains, more} {
		for _, d := range list {
			switch n := c.Count(d); {
			case n < m.least:
				m.least, m.domains = n, 1
			case n == m.least:
				m.domains++
			}
		}
	}
	w.minima[s.id] = m
	return m.least
}

// affinityRoom treats all terms together: a pod may found a domain only when
// nothing that any of its terms selects runs anywhere and it selects itself.
func (w *World) affinityRoom(r *Rules, p Place, scope Scope) int {
	if len(r.Affinity) == 0 {
		return NoLimit
	}
	founding := true
	for i := range r.Affinity {
		a := &r.Affinity[i]
		founding = founding && a.Self && w.counters[a.Counter].Total == 0
	}
	for i := range r.Affinity {
		a := &r.Affinity[i]
		if !scope.covers(a.Key) {
			continue
		}
		d := w.Domain(a.Key, p)
		c := w.counters[a.Counter]
		if d < 0 && a.Key != Host || !founding && (d < 0 || c.Count(d) == 0 && c.aboard[p.ID] == 0) {
			return 0
		}
	}
	if founding {
		return 1
	}
	return NoLimit
}

func (w *World) emptyRoom(class, counter int, p Place, scope Scope) int {
	c := w.counters[counter]
	if !scope.covers(c.Key) {
		return NoLimit
	}
	d := w.Domain(c.Key, p)
	if d < 0 {
		return NoLimit
	}
	if c.Count(d) > 0 {
		return 0
	}
	if slices.Contains(w.adds[class], counter) {
		return 1
	}
	return NoLimit
}
