package topology

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Class is what topology needs to know of a class of pods.
type Class struct {
	// Index into Problem.Classes.
	Index  int
	Levels []Level
}

// Level is one state of a class's preferences: those still treated as required
// are in the lists.
type Level struct {
	Spread   []model.SpreadConstraint
	Affinity []model.AffinityTerm
	// Anti are the terms that keep this class away from others.
	Anti []model.AffinityTerm
	// Options are those that the class could be bought on, for the domains of
	// its spread constraints.
	Options feasible.Set
	Rules   Rules
}

// Rules are a class's topology terms bound to counters.
type Rules struct {
	Spread   []Spread
	Affinity []Affinity
	// Empty are counters that must be zero in the domain entered.
	Empty []int
}

// Spread is a hard spread constraint.
type Spread struct {
	Counter    int
	Key        int
	MaxSkew    int32
	MinDomains int
	// Self is 1 when the pod counts itself.
	Self int32
	// Hard constraints are enforced by the scheduler; others are preferences.
	Hard bool
	// Domains are those over which the minimum is taken, ascending, but for what
	// [World.Settle] adds: those of existing nodes that count, and those in which
	// a machine can be bought for the class.
	Domains []int32
	// id numbers the constraint's remembered minimum in the world.
	id int
}

// minimum remembers how many domains have the least count.
type minimum struct {
	known   bool
	version int
	least   int32
	domains int
}

// Affinity is a required pod affinity term.
type Affinity struct {
	Counter int
	Key     int
	Self    bool
}

// compile binds a level's terms to counters.
func (w *World) compile(c *Class, l *Level) {
	class := &w.space.Problem.Classes[c.Index]
	l.Rules = Rules{}
	keys := w.hardKeys(l.Spread)
	for i := range l.Spread {
		l.Rules.Spread = append(l.Rules.Spread, w.spread(class, &l.Spread[i], l.Options, keys))
	}
	for i := range l.Affinity {
		t := w.affinityTerm(&l.Affinity[i])
		l.Rules.Affinity = append(l.Rules.Affinity, Affinity{
			Counter: w.counter(t, "", nil, nil),
			Key:     t.key,
			Self:    t.selects(class.Namespace, class.Labels),
		})
		w.counters[l.Rules.Affinity[i].Counter].attracts = true
	}
	for i := range l.Anti {
		l.Rules.Empty = append(l.Rules.Empty, w.counter(w.affinityTerm(&l.Anti[i]), "", nil, nil))
		w.counters[l.Rules.Empty[i]].repels = true
	}
	for i := range class.AntiAffinity {
		w.carrierOf(&class.AntiAffinity[i])
	}
}

// spread binds a constraint. Its counter sees only the nodes that the node
// inclusion policies let count and that have all of the keys.
func (w *World) spread(class *model.PodClass, sc *model.SpreadConstraint, options feasible.Set, keys []int) Spread {
	t := term{key: w.keyOf(sc.TopologyKey), selector: sc.Selector, namespaces: []string{class.Namespace}}
	filter, nodes, opts := w.counting(class, sc, keys)
	s := Spread{
		Counter:    w.counter(t, filter, nodes, opts),
		Key:        t.key,
		MaxSkew:    sc.MaxSkew,
		MinDomains: int(sc.MinDomains),
		Hard:       sc.Hard,
		id:         len(w.minima),
	}
	w.minima = append(w.minima, minimum{})
	w.watched[s.Counter] = true
	if t.selects(class.Namespace, class.Labels) {
		s.Self = 1
	}
	if s.Key != Host {
		if opts != nil {
			options = options.Clone()
			options.And(opts)
		}
		s.Domains = w.domains(s.Key, nodes, options)
	}
	w.spreads = append(w.spreads, settled{counter: s.Counter, known: s.Domains, options: options, byAffinity: sc.HonorNodeAffinity})
	return s
}

// hardKeys are the label keys of those constraints that the scheduler enforces.
func (w *World) hardKeys(constraints []model.SpreadConstraint) []int {
	var keys []int
	for i := range constraints {
		if k := w.keyOf(constraints[i].TopologyKey); constraints[i].Hard && k != Host && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// counting is which nodes and options count for a constraint, nil for all, with
// a text that is equal where they are.
func (w *World) counting(class *model.PodClass, sc *model.SpreadConstraint, keys []int) (string, feasible.Set, feasible.Set) {
	var filter string
	var nodes, opts feasible.Set
	if sc.HonorNodeAffinity && (len(class.NodeRequirements) > 0 || len(class.NodeAlternatives) > 0) {
		filter = "a" + feasible.RequirementsKey(class.NodeRequirements)
		for _, rs := range class.NodeAlternatives {
			filter += "|" + feasible.RequirementsKey(rs)
		}
		affinity := feasible.NodeAffinityOf(class)
		nodes, opts = w.space.NodesMeeting(affinity), w.space.OptionsMeeting(affinity)
	}
	if sc.HonorTaints {
		filter += "t"
		for _, tol := range class.Tolerations {
			filter += "|" + tol.Key + "=" + tol.Value + ":" + string(tol.Effect)
			if tol.Exists {
				filter += "!"
			}
		}
		tn, to := w.space.NodesTolerating(class.Tolerations, false), w.space.Tolerating(class.Tolerations, false)
		if nodes != nil {
			tn.And(nodes)
			to.And(opts)
		}
		nodes, opts = tn, to
	}
	// A place without a domain for each of the pod's constraints counts for none.
	if sc.Hard && (len(keys) > 1 || len(keys) == 1 && keys[0] != w.keyOf(sc.TopologyKey)) {
		if hn, ho, some := w.having(keys); some {
			filter += "k" + fmt.Sprint(keys)
			if nodes != nil {
				hn.And(nodes)
				ho.And(opts)
			}
			nodes, opts = hn, ho
		}
	}
	return filter, nodes, opts
}

// having are the nodes and options that have all of the keys, and whether some
// have not.
func (w *World) having(keys []int) (nodes, options feasible.Set, some bool) {
	nodes, options = feasible.Full(len(w.space.Problem.Nodes)), feasible.Full(len(w.space.Options))
	for _, k := range keys {
		for n := range w.space.Problem.Nodes {
			if w.space.NodeValue(k, n) < 0 {
				nodes.Remove(n)
				some = true
			}
		}
		for o := range w.space.Options {
			if w.space.OptionValue(k, o) < 0 {
				options.Remove(o)
				some = true
			}
		}
	}
	return nodes, options, some
}

// span is what the domains of a constraint depend on, as far as sets that are
// shared can tell.
type span struct {
	key     int
	options *uint64
}

// domains lists the values of a key over eligible nodes and options. Callers
// share the list and do not change it.
func (w *World) domains(key int, nodes, options feasible.Set) []int32 {
	if len(options) == 0 || nodes != nil {
		return w.listDomains(key, nodes, options)
	}
	id := span{key: key, options: &options[0]}
	list, ok := w.spans[id]
	if !ok {
		list = w.listDomains(key, nodes, options)
		w.spans[id] = list
	}
	return list
}

func (w *World) listDomains(key int, nodes, options feasible.Set) []int32 {
	seen := make([]bool, w.space.Values(key))
	for n := range w.space.Problem.Nodes {
		node := &w.space.Problem.Nodes[n]
		if v := w.space.NodeValue(key, n); v >= 0 && node.State != model.NodeLeaving && (nodes == nil || nodes.Has(n)) {
			seen[v] = true
		}
	}
	for o := range options.All {
		if v := w.space.OptionValue(key, o); v >= 0 {
			seen[v] = true
		}
	}
	var out []int32
	for v, ok := range seen {
		if ok {
			out = append(out, int32(v))
		}
	}
	return out
}

// Keys lists the label keys whose domains matter for a class at these rules:
// those its rules read and those of counters that it adds to and that some
// class reads which is placed later (see [World.SetOrder]). Host is left out.
func (w *World) Keys(class int, r *Rules) []int {
	var keys []int
	for i := range r.Spread {
		keys = withLabel(keys, r.Spread[i].Key)
	}
	for i := range r.Affinity {
		keys = withLabel(keys, r.Affinity[i].Key)
	}
	for _, list := range [][]int{r.Empty, w.repelled[class]} {
		for _, c := range list {
			keys = withLabel(keys, w.counters[c].Key)
		}
	}
	for _, c := range w.adds[class] {
		if w.lastReader[c] > w.position[class] {
			keys = withLabel(keys, w.counters[c].Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// withLabel is the list with a key more, unless it is that of hosts or there already.
func withLabel(keys []int, k int) []int {
	if k == Host || slices.Contains(keys, k) {
		return keys
	}
	return append(keys, k)
}

// SetOrder tells in which order classes will be placed. A counter that only
// the spread constraints of earlier classes read no longer matters to later
// ones. Affinity and anti-affinity hold in both directions and always matter.
// With OnlyHard, what only preferences read matters to nobody but themselves.
func (w *World) SetOrder(classes []Class, sequence []int) {
	w.position = make([]int, len(w.space.Problem.Classes))
	w.lastReader, w.lastAdder = make([]int, len(w.counters)), make([]int, len(w.counters))
	for c := range w.lastReader {
		w.lastReader[c] = -1
		if w.terms[c].carriers {
			w.lastReader[c] = len(sequence)
		}
	}
	for at, class := range sequence {
		w.position[class] = at
		for _, c := range w.adds[class] {
			w.lastAdder[c] = at
		}
		first := 0
		if w.OnlyHard {
			first = max(0, len(classes[class].Levels)-1)
		}
		for l := first; l < len(classes[class].Levels); l++ {
			r := &classes[class].Levels[l].Rules
			for i := range r.Spread {
				w.lastReader[r.Spread[i].Counter] = max(w.lastReader[r.Spread[i].Counter], at)
			}
			for i := range r.Affinity {
				w.lastReader[r.Affinity[i].Counter] = len(sequence)
			}
			for _, c := range r.Empty {
				w.lastReader[c] = len(sequence)
			}
		}
	}
}

// Seen says for which of the filtered counters that a class adds to the pods
// on a place count. Places that differ in it differ to topology. Hosts are left
// out: whom a counter of hosts binds is on the place itself, if anywhere, and
// therefore seen.
func (w *World) Seen(class int, p Place) uint64 {
	var seen uint64
	for i, c := range w.adds[class] {
		if w.tells(class, c) && w.counters[c].Sees(p) {
			seen |= 1 << (i & 63)
		}
	}
	return seen
}

// KeepSeen keeps of a set of options, of which it gets the words from word on,
// those for which Seen is what it is for the place.
func (w *World) KeepSeen(class int, p Place, set feasible.Set, word int) {
	for _, c := range w.adds[class] {
		counter := w.counters[c]
		if !w.tells(class, c) {
			continue
		}
		if options := counter.options[word : word+len(set)]; counter.Sees(p) {
			set.And(options)
		} else {
			set.AndNot(options)
		}
	}
}

// Filtered reports whether the class adds to a counter that does not see every
// place, so that Seen may tell places apart.
func (w *World) Filtered(class int) bool {
	return slices.ContainsFunc(w.adds[class], func(c int) bool { return w.tells(class, c) })
}

// tells reports whether a counter that a class adds to tells places apart for
// somebody who is placed later.
func (w *World) tells(class, counter int) bool {
	c := w.counters[counter]
	return c.nodes != nil && c.Key != Host && w.lastReader[counter] > w.position[class]
}

// TopologyKeys lists all label keys that some counter has as its key.
func (w *World) TopologyKeys() []int {
	var keys []int
	for _, c := range w.counters {
		if c.Key != Host && !slices.Contains(keys, c.Key) {
			keys = append(keys, c.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Filters lists the sets of options that counters are limited to.
func (w *World) Filters() []feasible.Set {
	var out []feasible.Set
	for _, c := range w.counters {
		if c.options != nil {
			out = append(out, c.options)
		}
	}
	return out
}

// HostKey reports whether the counter counts per host.
func (w *World) HostKey(counter int) bool { return w.counters[counter].Key == Host }

// Adds lists the counters that a class's pods add to.
func (w *World) Adds(class int) []int { return w.adds[class] }

// Foreign lists the counters on label keys that other classes' spread rules
// look at and that this class adds to without being bound by them at the given
// rules. Its pods are free to unbalance them, and had better not where they
// have to settle for a domain anyway. Keys are what [World.Keys] gives for the
// class at these rules.
func (w *World) Foreign(class int, r *Rules, keys []int) []int {
	var out []int
	for _, c := range w.adds[class] {
		if !w.watched[c] || !slices.Contains(keys, w.counters[c].Key) {
			continue
		}
		if !slices.ContainsFunc(r.Spread, func(s Spread) bool { return s.Counter == c }) {
			out = append(out, c)
		}
	}
	return out
}

// Crowd adds up the counts of some counters in a place's domains.
func (w *World) Crowd(counters []int, p Place) int64 {
	var sum int64
	for _, c := range counters {
		sum += int64(w.counters[c].Count(w.Domain(w.counters[c].Key, p)))
	}
	return sum
}

// PerHost reports whether any of the rules is about hosts.
func (w *World) PerHost(r *Rules) bool {
	return slices.ContainsFunc(r.Spread, func(s Spread) bool { return s.Key == Host }) ||
		slices.ContainsFunc(r.Affinity, func(a Affinity) bool { return a.Key == Host }) ||
		slices.ContainsFunc(r.Empty, func(c int) bool { return w.counters[c].Key == Host })
}

// PerMachine is how many pods of the class a new machine may hold, as far as rules
// on hosts bind the class to itself.
func (w *World) PerMachine(class int, r *Rules) int {
	most := NoLimit
	for i := range r.Spread {
		if s := &r.Spread[i]; s.Key == Host && s.Self > 0 {
			most = min(most, int(s.MaxSkew))
		}
	}
	for _, c := range r.Empty {
		if w.counters[c].Key == Host && slices.Contains(w.adds[class], c) {
			most = 1
		}
	}
	return most
}

// Position is the class's place in the order of placing.
func (w *World) Position(class int) int { return w.position[class] }

// Total is how many pods a counter counts over all domains.
func (w *World) Total(counter int) int { return w.counters[counter].Total }

// Indifferent reports whether topology has nothing to say about pods of the
// class at these rules: nothing binds them, and nobody counts them.
func (w *World) Indifferent(class int, r *Rules) bool {
	return len(r.Spread)+len(r.Affinity)+len(r.Empty)+len(w.adds[class])+len(w.repelled[class]) == 0
}
