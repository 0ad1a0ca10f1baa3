package verify

import (
	"math/rand/v2"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// spot is a place with the domains that topology sees: an existing node, or a new one of
// the plan.
type spot struct {
	// name is what violations call it.
	name string
	// labels are all that a node there has or will have; someValue stands for a value
	// that is not known.
	labels map[string]string
	// taints are those that the scheduler will see, startup taints left out.
	taints []model.Taint
	// host is its domain of kubernetes.io/hostname, different for each spot.
	host string
	// open are, by key, the domains of a machine that may be bought in several.
	open map[string][]string
}

// item is pods of one class that the plan puts on one spot, both by index: left of all of
// them have yet to enter.
type item struct {
	class, spot, left, all int
}

// topology looks for an order in which every pod finds its rules satisfied at
// the moment it enters its place.
//
// An order that is found proves that the plan is sound. The search is not complete: a large
// plan may have an order that it misses, so a violation calls for a second look, and
// silence does not.
// Precondition: every pod of the plan has exactly one place that exists.
func (c *checker) topology() {
	r := newReplay(c)
	if r.anyOrder() {
		return
	}
	r.greedy()
	for _, it := range r.items {
		if it.left > 0 && !r.admits(it.class, it.spot) {
			c.report("topology", "%d pods of class %d (%s) could never enter %s: %s", it.left,
				it.class, c.p.Classes[it.class].Owner, r.spots[it.spot].name, r.refusal)
		}
	}
}

// anyOrder tries a few sensible orders, then, within bounds, all of them. If none is found,
// nothing has entered.
func (r *replay) anyOrder() bool {
	priority := func(it item) int { return -int(r.p.Classes[it.class].Priority) }
	rank := func(it item) int { return r.rank[it.class] }
	labelsFirst := func(it item) int { return [...]int{1, 0, 2}[r.rank[it.class]] }
	for _, keys := range [][]func(item) int{{rank}, {priority, rank}, {labelsFirst}, {priority, labelsFirst}} {
		slices.SortStableFunc(r.items, func(a, b item) int {
			for _, key := range keys {
				if ka, kb := key(a), key(b); ka != kb {
					return ka - kb
				}
			}
			return 0
		})
		for _, greedy := range []func(){r.greedy, r.strictGreedy} {
			if greedy(); r.left() == 0 {
				return true
			}
			r.clear()
		}
	}
	return r.shuffled() || r.search(&searchBudget{steps: 20000, seen: map[string]bool{}})
}

// shuffled lets whole classes in one after the other, in many orders of classes
// and of the places of each; for large plans that takes too long.
func (r *replay) shuffled() bool {
	if len(r.items) > 200 {
		return false
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		turn := dice.Perm(len(r.p.Classes))
		dice.Shuffle(len(r.items), func(i, j int) { r.items[i], r.items[j] = r.items[j], r.items[i] })
		slices.SortStableFunc(r.items, func(a, b item) int { return turn[a.class] - turn[b.class] })
		for progress := true; progress; {
			progress = false
			for i := range r.items {
				it := &r.items[i]
				for it.left > 0 && r.admits(it.class, it.spot) {
					r.enter(it.class, it.spot)
					it.left--
					progress = true
				}
			}
		}
		if r.left() == 0 {
			return true
		}
		r.clear()
	}
	return false
}

// strictGreedy lets a rank in only when the one before is in, or stuck. Items of one rank
// count as such as far as they are side by side.
func (r *replay) strictGreedy() {
	for from := 0; from < len(r.items); {
		to := from
		for to < len(r.items) && r.rank[r.items[to].class] == r.rank[r.items[from].class] {
			to++
		}
		all := r.items
		r.items = all[from:to]
		r.greedy()
		r.items = all
		from = to
	}
	r.greedy()
}

// clear takes everything out again.
func (r *replay) clear() {
	for i := range r.items {
		it := &r.items[i]
		for ; it.left < it.all; it.left++ {
			r.record(it.class, it.spot, -1)
		}
	}
}

// greedy lets pods in, in the order of items, until no further one may enter: as long as
// possible only those that leave spreads even, since they bar the way to the fewest.
func (r *replay) greedy() {
	for r.pass(true) || r.pass(false) {
		continue
	}
}

// left is how many pods have yet to enter.
func (r *replay) left() int {
	n := 0
	for i := range r.items {
		n += r.items[i].left
	}
	return n
}

// searchBudget bounds the search for an order and remembers dead ends.
type searchBudget struct {
	// steps is how many further states may be looked at.
	steps int
	// seen are the states from which no order leads on: how many pods of each item are
	// left says all of a state, whatever the order in which the others came.
	seen map[string]bool
}

// search tries orders one after the other, pod by pod, for as long as the budget lasts. It
// reports whether all have entered; if not, those have that had before.
func (r *replay) search(b *searchBudget) bool {
	if r.left() == 0 {
		return true
	}
	state := make([]byte, 0, 2*len(r.items))
	for i := range r.items {
		state = append(state, byte(r.items[i].left), byte(r.items[i].left>>8))
	}
	if b.seen[string(state)] || b.steps == 0 {
		return false
	}
	b.steps--
	b.seen[string(state)] = true
	for i := range r.items {
		it := &r.items[i]
		if it.left == 0 || !r.admits(it.class, it.spot) {
			continue
		}
		r.enter(it.class, it.spot)
		it.left--
		if r.search(b) {
			return true
		}
		it.left++
		r.record(it.class, it.spot, -1)
	}
	return false
}

// pass lets pods in, one rank after the other, and reports whether any came.
// With even, only those that leave all spreads even; without, just one.
func (r *replay) pass(even bool) bool {
	progress, waiting := false, false
	for i := range r.items {
		it := &r.items[i]
		if progress && (waiting || r.rank[it.class] != r.rank[r.items[i-1].class]) {
			return true // earlier ones first, as far as they come
		}
		for it.left > 0 && r.admits(it.class, it.spot) && (!even || r.staysEven(it.class, it.spot)) {
			r.enter(it.class, it.spot)
			it.left--
			progress = true
			if !even {
				return true
			}
		}
		waiting = waiting || it.left > 0 && len(r.near[it.class]) > 0
	}
	return progress
}

// staysEven: every spread over labels that counts the pod counts least where
// it goes.
func (r *replay) staysEven(class, at int) bool {
	for _, t := range r.counters(class) {
		if t.spread == nil || t.key == model.LabelHostname {
			continue
		}
		if d, ok := r.domain(t.key, at); ok && r.counts[count{t.id, d}] > r.minimum(t) {
			return false
		}
	}
	return true
}

// replay is a plan while its pods enter one by one.
//
// Invariant: counts and the totals of terms are those of the pods that run and of those
// that have entered, which are all - left of each item.
type replay struct {
	p    *model.Problem
	plan *model.Plan
	// spots are the existing nodes, by their index in the problem, and then the new ones
	// of the plan, in its order.
	spots []spot
	items []item
	// terms are all topology terms, by their id.
	terms []*boundTerm
	// counts of pods by term and domain.
	counts map[count]int
	// counting remembers, by class or, below zero, shape, the terms that count its pods.
	counting map[int][]*boundTerm
	check    *checker
	// refusal says why admits refused the last pod.
	refusal string
	// spread, near and far are, by class, its own terms: topology spread that is
	// required, affinity and anti-affinity. Preferences bind no pod and are left out.
	spread, near, far [][]*boundTerm
	// bans are anti-affinity terms of pods that run or enter: pods which carry them
	// are counted, and pods which they select are refused.
	bans []*boundTerm
	// banned remembers, by class, the bans that select its pods.
	banned map[int][]*boundTerm
	// rank is, by class, 0 if it has rules on hosts, 1 if it has others, else 2.
	rank []int
}

// count names a counter: a term by its id, and a value of its topology key.
type count struct {
	term   int
	domain string
}

// boundTerm is one topology term and the pods that it counts. What the term does not need
// is nil.
type boundTerm struct {
	// id is its index in replay.terms, key its topology key.
	id  int
	key string
	// spread is the constraint of a spread term, and owner the class whose term it is.
	spread *model.SpreadConstraint
	owner  *model.PodClass
	// affinity is the anti-affinity term of a ban.
	affinity *model.AffinityTerm
	// selectsPod reports whether the term counts a pod; nil for bans, which count the
	// pods of the classes and shapes that carriedBy names (shape s as -1-s).
	selectsPod func(namespace string, labels map[string]string) bool
	carriedBy  func(class int) bool
	// attracts says that pods have to be near those that the term counts.
	attracts bool
	// total is how many pods it counts in all domains.
	total int
	// domains are those over which a spread is even (domainsFor); nil for hosts, of which
	// there is always a further one.
	domains []string
}

func newReplay(c *checker) *replay {
	r := &replay{p: c.p, plan: c.plan, check: c, counts: map[count]int{}, counting: map[int][]*boundTerm{}, banned: map[int][]*boundTerm{}}
	r.load(c)
	return r
}

// bind adds a term that counts the pods which selects picks.
func (r *replay) bind(key string, selects func(string, map[string]string) bool) *boundTerm {
	t := &boundTerm{id: len(r.terms), key: key, selectsPod: selects}
	r.terms = append(r.terms, t)
	return t
}

// load lists the spots and the pods of the plan, binds all terms, and lets the pods that
// run already be counted. It needs the spots of all nodes before the terms, since a
// spread's domains come from them.
func (r *replay) load(c *checker) {
	for n := range r.p.Nodes {
		node := &r.p.Nodes[n]
		r.spots = append(r.spots, spot{name: "node " + node.Name, labels: nodeLabels(node), taints: node.Taints, host: "node " + node.Name})
	}
	for i := range r.plan.NewNodes {
		n := &r.plan.NewNodes[i]
		pool := &r.p.Pools[n.Pool]
		name := "new node " + itoa(i)
		r.spots = append(r.spots, spot{name: name, labels: c.labelsOf(n.Pool, n.Offerings[0], n.Requirements), taints: pool.Taints, host: name})
	}
	r.bindTerms()
	for n := range r.p.Nodes {
		if r.p.Nodes[n].State == model.NodeLeaving {
			continue
		}
		for _, b := range r.p.Nodes[n].Bound {
			for range b.Count {
				r.running(b.Shape, n)
			}
		}
	}
	for i := range r.plan.Placements {
		for _, cp := range r.plan.Placements[i].Pods {
			r.items = append(r.items, item{cp.Class, r.plan.Placements[i].Node, len(cp.Pods), len(cp.Pods)})
		}
	}
	for i := range r.plan.NewNodes {
		for _, cp := range r.plan.NewNodes[i].Pods {
			r.items = append(r.items, item{cp.Class, len(r.p.Nodes) + i, len(cp.Pods), len(cp.Pods)})
		}
		c.pinned(r, i)
	}
}

// bindTerms binds the required terms of all classes, and the anti-affinity of pods that
// run: a pod that runs refuses those which enter, but nothing refuses it.
func (r *replay) bindTerms() {
	n := len(r.p.Classes)
	r.spread, r.near, r.far, r.rank = make([][]*boundTerm, n), make([][]*boundTerm, n), make([][]*boundTerm, n), make([]int, n)
	ban := func(a *model.AffinityTerm, carried func(int) bool) {
		t := r.bind(a.TopologyKey, nil)
		t.affinity, t.carriedBy = a, carried
		r.bans = append(r.bans, t)
	}
	for i := range r.p.Classes {
		class := &r.p.Classes[i]
		for j := range class.Spread {
			s := &class.Spread[j]
			if !s.Hard {
				continue
			}
			t := r.bind(s.TopologyKey, func(ns string, l map[string]string) bool { return ns == class.Namespace && s.Selector.Matches(l) })
			t.spread, t.owner = s, class
			t.domains = r.domainsFor(t)
			r.spread[i] = append(r.spread[i], t)
		}
		for j := range class.Affinity {
			t := r.bind(class.Affinity[j].TopologyKey, func(namespace string, labels map[string]string) bool {
				for k := range class.Affinity { // a pod counts only if all terms select it
					if !class.Affinity[k].Selects(namespace, labels) {
						return false
					}
				}
				return true
			})
			t.owner, t.attracts = class, true
			r.near[i] = append(r.near[i], t)
		}
		for j := range class.AntiAffinity {
			t := r.bind(class.AntiAffinity[j].TopologyKey, class.AntiAffinity[j].Selects)
			t.owner = class
			r.far[i] = append(r.far[i], t)
			ban(&class.AntiAffinity[j], func(c int) bool { return c == i })
		}
		own := slices.Concat(r.spread[i], r.near[i], r.far[i])
		perHost := func(t *boundTerm) bool { return t.key == model.LabelHostname }
		switch {
		case slices.ContainsFunc(own, perHost):
			r.rank[i] = 0
		case len(own) > 0:
			r.rank[i] = 1
		default:
			r.rank[i] = 2
		}
	}
	for s := range r.p.Shapes {
		for j := range r.p.Shapes[s].AntiAffinity {
			ban(&r.p.Shapes[s].AntiAffinity[j], func(c int) bool { return c == -1-s })
		}
	}
}

// domain is the spot's value for a topology key; a host is its own.
func (r *replay) domain(key string, at int) (string, bool) {
	if key == model.LabelHostname {
		return r.spots[at].host, true
	}
	v, ok := r.spots[at].labels[key]
	return v, ok
}

// possible are the domains that the spot may turn out to be in, if any.
func (r *replay) possible(key string, at int) []string {
	if several := r.spots[at].open[key]; several != nil {
		return several
	}
	if d, ok := r.domain(key, at); ok {
		return []string{d}
	}
	return nil
}

// aboard is, in place of a domain, the spot itself.
func (r *replay) aboard(at int) string { return "aboard " + r.spots[at].host }

// taken: pods that the term counts may be where the spot turns out to be.
func (r *replay) taken(t *boundTerm, at int) bool {
	return slices.ContainsFunc(r.possible(t.key, at), func(d string) bool { return r.counts[count{t.id, d}] > 0 })
}

// eligible: the node inclusion policies let the spot count, and it has a domain
// for each of the pod's spreads.
func (t *boundTerm) eligible(s *spot) bool {
	if t.spread == nil {
		return true
	}
	for i := range t.owner.Spread {
		if other := &t.owner.Spread[i]; other.Hard && other.TopologyKey != model.LabelHostname {
			if _, ok := s.labels[other.TopologyKey]; !ok {
				return false
			}
		}
	}
	if t.spread.HonorNodeAffinity && (!t.owner.NodeRequirements.MatchLabels(s.labels) || !oneHolds(t.owner.NodeAlternatives, s.labels)) {
		return false
	}
	return !t.spread.HonorTaints || model.Untolerated(s.taints, t.owner.Tolerations) == nil
}

// domainsFor lists the domains over which a spread is even: those of eligible
// nodes, those of eligible machines that the plan buys for whomever, and those in
// which a machine could be bought for the pod.
func (r *replay) domainsFor(t *boundTerm) []string {
	if t.key == model.LabelHostname {
		return nil
	}
	var out []string
	add := func(labels map[string]string) {
		if v, ok := labels[t.key]; ok && v != someValue && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	for n := range r.p.Nodes {
		if r.p.Nodes[n].State != model.NodeLeaving && t.eligible(&r.spots[n]) {
			add(r.spots[n].labels)
		}
	}
	for n := len(r.p.Nodes); n < len(r.spots); n++ {
		if t.eligible(&r.spots[n]) {
			add(r.spots[n].labels)
		}
	}
	for i := range r.p.Pools {
		unknown := func(labels map[string]string) bool {
			v, ok := labels[t.key]
			return ok && !slices.Contains(out, v)
		}
		for _, m := range r.check.machinesFor(i, t.owner, unknown) {
			if t.eligible(&spot{labels: m.labels, taints: r.p.Pools[i].Taints}) {
				add(m.labels)
			}
		}
	}
	return out
}

func (r *replay) running(shape, node int) { r.record(-1-shape, node, 1) }

func (r *replay) enter(class, at int) { r.record(class, at, 1) }

// counted: the term counts pods of the class, because it selects them or, for
// a ban, because they carry it.
func (r *replay) counted(t *boundTerm, class int, namespace string, labels map[string]string) bool {
	return t.carriedBy != nil && t.carriedBy(class) || t.selectsPod != nil && t.selectsPod(namespace, labels)
}

// counters lists the terms that count pods of a class, or, below zero, of a
// shape of running pods.
func (r *replay) counters(class int) []*boundTerm {
	if list, known := r.counting[class]; known {
		return list
	}
	var shape *model.PodShape
	if class < 0 {
		shape = &r.p.Shapes[-1-class]
	} else {
		shape = &r.p.Classes[class].PodShape
	}
	var list []*boundTerm
	for _, t := range r.terms {
		if r.counted(t, class, shape.Namespace, shape.Labels) {
			list = append(list, t)
		}
	}
	r.counting[class] = list
	return list
}

// record counts pods of a class. Where it is not known in which of several domains they
// are, they repel in all of them and attract to their machine alone. A spread that
// merely counts them does not ask any more; see cares.
func (r *replay) record(class, at, n int) {
	for _, t := range r.counters(class) {
		domains := r.possible(t.key, at)
		if len(domains) == 0 || !t.eligible(&r.spots[at]) {
			continue
		}
		t.total += n
		switch {
		case t.spread != nil:
			domains = domains[:1]
		case t.attracts && len(domains) > 1:
			domains = []string{r.aboard(at)}
		}
		for _, d := range domains {
			r.counts[count{t.id, d}] += n
		}
	}
}

// admits: all topology rules of a pod of the class hold on the spot now.
func (r *replay) admits(class, at int) bool {
	c := &r.p.Classes[class]
	for _, t := range r.spread[class] {
		d, ok := r.domain(t.key, at)
		if !ok {
			r.refusal = "spread: no label " + t.key
			return false
		}
		self := 0
		if t.selectsPod(c.Namespace, c.Labels) {
			self = 1
		}
		if r.counts[count{t.id, d}]+self-r.minimum(t) > int(t.spread.MaxSkew) {
			r.refusal = "spread over " + t.key + " exceeded in " + d
			return false
		}
	}
	if !r.nearEnough(class, at) {
		r.refusal = "affinity not met"
		return false
	}
	for _, t := range r.far[class] {
		if r.taken(t, at) {
			r.refusal = "anti-affinity on " + t.key + " broken"
			return false
		}
	}
	for _, t := range r.bansOn(class) {
		if r.taken(t, at) {
			r.refusal = "another pod's anti-affinity on " + t.key + " broken"
			return false
		}
	}
	return true
}

// bansOn lists the anti-affinity terms that select pods of the class.
func (r *replay) bansOn(class int) []*boundTerm {
	if list, known := r.banned[class]; known {
		return list
	}
	var list []*boundTerm
	c := &r.p.Classes[class]
	for _, t := range r.bans {
		if t.affinity.Selects(c.Namespace, c.Labels) {
			list = append(list, t)
		}
	}
	r.banned[class] = list
	return list
}

// minimum: a new host is always possible and empty; missing domains are empty.
func (r *replay) minimum(t *boundTerm) int {
	if t.key == model.LabelHostname || len(t.domains) < int(t.spread.MinDomains) || len(t.domains) == 0 {
		return 0
	}
	least := r.counts[count{t.id, t.domains[0]}]
	for _, d := range t.domains {
		least = min(least, r.counts[count{t.id, d}])
	}
	return least
}

// nearEnough: every affinity term finds a pod in the domain, or the pod is the
// first of a group that selects itself.
func (r *replay) nearEnough(class, at int) bool {
	c := &r.p.Classes[class]
	first, met := true, true
	for _, t := range r.near[class] {
		domains := r.possible(t.key, at)
		if len(domains) == 0 {
			return false
		}
		elsewhere := slices.ContainsFunc(domains, func(d string) bool { return r.counts[count{t.id, d}] == 0 })
		met = met && (!elsewhere || r.counts[count{t.id, r.aboard(at)}] > 0)
		first = first && t.total == 0 && t.selectsPod(c.Namespace, c.Labels)
	}
	return met || first
}
