package topology

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// NoLimit is the room of a place that topology does not limit.
const NoLimit = math.MaxInt32

// Scope selects the topology keys that a question is about.
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

// Room is the number of pods that may enter the place's domains now, one after the
// other, as far as keys in the scope are concerned; [NoLimit] if any number may. The
// first pod of an affinity group is alone in that number, since the others are then bound
// to its domain. The bound holds until counts change.
func (c *Counts) Room(r *Rules, p Place, scope Scope) int {
	room := NoLimit
	for i := range r.Spread {
		if scope.covers(r.Spread[i].Key) {
			room = min(room, c.spreadRoom(r, &r.Spread[i], p))
		}
	}
	if room == 0 {
		return 0
	}
	room = min(room, c.affinityRoom(r, p, scope))
	if scope.covers(Host) {
		room = min(room, c.residentsRoom(r, p.ID))
	}
	for _, list := range [2][]AntiAffinity{r.AntiAffinity, r.Inverse} {
		for i := range list {
			if !list[i].pairwise {
				room = min(room, c.antiAffinityRoom(&list[i], p, scope))
			}
		}
	}
	return room
}

// RoomInTurn is [Counts.Room] of everything, where a minimum that only the place's own domain has
// rises with the pods that enter: so an emptied zone takes in again what it had.
func (c *Counts) RoomInTurn(r *Rules, p Place) int {
	room := c.Room(r, p, Everything)
	if room == 0 || room == NoLimit || len(r.Spread) == 0 {
		return room
	}
	inTurn := NoLimit
	for i := range r.Spread {
		inTurn = min(inTurn, c.spreadRoomInTurn(r, &r.Spread[i], p))
	}
	if inTurn <= room {
		return room
	}
	without := *r
	without.Spread = nil
	return min(inTurn, c.Room(&without, p, Everything))
}

// spreadRoomInTurn is [Counts.spreadRoom], where the minimum of labels rises with the pods that enter.
func (c *Counts) spreadRoomInTurn(r *Rules, s *Spread, p Place) int {
	room := c.spreadRoom(r, s, p)
	n, d := c.Eligible.count(s), c.t.Domain(s.Key, p)
	if s.Key == Host || s.Self == 0 || room == 0 || d < 0 || n == 0 || n < s.MinDomains {
		return room
	}
	m, count := c.minima[s.group], c.in(s.Counter, d)
	if m.domains != 1 || count != m.least {
		return room
	}
	others := int32(math.MaxInt32)
	for _, list := range [2][]int32{c.t.groups[s.group].domains, c.Eligible.more(s.group)} {
		for _, other := range list {
			if other != d {
				others = min(others, c.in(s.Counter, other))
			}
		}
	}
	if others == math.MaxInt32 {
		return NoLimit // no other domain counts: the minimum is this one's own
	}
	return max(room, int(others-count+s.MaxSkew))
}

// SpreadRoom is the part of Room that the spread constraints over labels leave.
func (c *Counts) SpreadRoom(r *Rules, p Place) int {
	room := NoLimit
	for i := range r.Spread {
		if r.Spread[i].Key != Host {
			room = min(room, c.spreadRoom(r, &r.Spread[i], p))
		}
	}
	return room
}

// KeepAdmitting keeps in a set the options as which a new node with the given
// [Place.ID] would admit a pod now, as far as affinity and anti-affinity over labels are
// concerned. Every option stands for itself: that one is kept says nothing of the others.
func (c *Counts) KeepAdmitting(r *Rules, id int, set bitset.Set) {
	for o := range set.All {
		p := Place{ID: id, Node: -1, Option: o}
		admits := c.affinityRoom(r, p, Labels) > 0
		for _, list := range [2][]AntiAffinity{r.AntiAffinity, r.Inverse} {
			for i := range list {
				admits = admits && c.antiAffinityRoom(&list[i], p, Labels) > 0
			}
		}
		if !admits {
			set.Remove(o)
		}
	}
}

// spreadRoom is the distance from the domain's count to the global minimum plus maxSkew.
// Pods that their own constraint does not select never raise the count: they enter in
// any number or not at all.
func (c *Counts) spreadRoom(r *Rules, s *Spread, p Place) int {
	d := c.t.Domain(s.Key, p)
	if d < 0 && s.Key != Host {
		return 0
	}
	most := c.least(r, s, p) + s.MaxSkew
	count := int32(0) // on a new node that has no identity yet
	if d >= 0 {
		count = c.in(s.Counter, d)
	}
	if s.Self == 0 {
		if count <= most {
			return NoLimit
		}
		return 0
	}
	return int(max(0, most-count))
}

// Minimum is the global minimum of a spread constraint: the least count of its eligible
// domains. It is zero where there are fewer domains than MinDomains. For hosts it is that
// of the nodes which exist.
func (c *Counts) Minimum(s *Spread) int32 {
	n := c.Eligible.count(s)
	if n == 0 || n < s.MinDomains {
		return 0
	}
	return c.minima[s.group].least
}

// least is the global minimum as the scheduler will find it when it looks at a place. A
// node that exists takes pods now, beside the nodes that exist, unless its pods may have to
// wait for others. On a node that has yet to start they count from zero: others may start
// before it, and are empty.
func (c *Counts) least(r *Rules, s *Spread, p Place) int32 {
	if s.Key == Host && (c.t.starts(p) || c.mayWait(r)) {
		return 0
	}
	return c.Minimum(s)
}

// mayWait reports whether pods which a rule over labels asks for are on nodes that have yet
// to start, so that a pod may not come before these do.
func (c *Counts) mayWait(r *Rules) bool {
	for i := range r.Spread {
		if s := &r.Spread[i]; s.Key != Host && c.tallies[s.Counter].starting > 0 {
			return true
		}
	}
	for i := range r.Affinity {
		if c.tallies[r.Affinity[i].Counter].starting > 0 {
			return true
		}
	}
	return false
}

// HighestMinimum is what the minimum of a constraint over hosts can rise to on nodes that
// exist, or [NoLimit], where further pods that count go to no other nodes than those that
// may grow. The counts do not matter: it begins with the pods that run.
func (t *Topology) HighestMinimum(s *Spread, grows func(node int) bool) int {
	if s.group < 0 || t.running.Eligible.TooFew(s) {
		return 0
	}
	highest := NoLimit
	for _, n := range t.groups[s.group].domains {
		if now := int(t.running.in(s.Counter, n)); now < highest && !grows(int(n)) {
			highest = now
		}
	}
	return highest
}

// Excess is by how many pods the place's domain would exceed what a constraint allows if
// another domain became eligible. It is positive if the scheduler would then admit no
// more pods there.
func (c *Counts) Excess(s *Spread, p Place, other int32) int {
	return int(c.in(s.Counter, c.t.Domain(s.Key, p)) - c.in(s.Counter, other) - s.MaxSkew)
}

// affinityRoom treats all terms together, as the scheduler does: a pod is the first of
// its group, and may enter any domain, only if no pod that any of its terms selects runs
// anywhere and all of its terms select the pod itself.
func (c *Counts) affinityRoom(r *Rules, p Place, scope Scope) int {
	if len(r.Affinity) == 0 {
		return NoLimit
	}
	first := true
	for i := range r.Affinity {
		first = first && r.Affinity[i].Self && c.tallies[r.Affinity[i].Counter].total == 0
	}
	for i := range r.Affinity {
		a := &r.Affinity[i]
		if !scope.covers(a.Key) {
			continue
		}
		d := c.t.Domain(a.Key, p)
		if d < 0 && a.Key != Host || !first && (d < 0 || c.in(a.Counter, d) == 0 && c.tallies[a.Counter].undecided[p.ID] == 0) {
			return 0
		}
	}
	if first {
		return 1
	}
	return NoLimit
}

// antiAffinityRoom limits pods to domains without pods that the term counts. A place
// without a domain is not limited.
func (c *Counts) antiAffinityRoom(a *AntiAffinity, p Place, scope Scope) int {
	if !scope.covers(a.Key) {
		return NoLimit
	}
	d := c.t.Domain(a.Key, p)
	if d < 0 {
		return NoLimit
	}
	if c.in(a.Counter, d) > 0 {
		return 0
	}
	if a.Self {
		return 1
	}
	return NoLimit
}
