package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// fixture has nodes n0 to n2 in zones z0 to z2, and n3 without a zone. Classes hold one
// pod each.
type fixture struct {
	nodes  []model.Node
	shapes []model.PodShape
	// sold are the zones in which a pool can buy; only, if set, that of the first class.
	sold    []string
	only    string
	classes []model.PodClass
}

func newFixture(classes ...model.PodClass) *fixture {
	f := &fixture{classes: classes}
	for i := range 4 {
		n := model.Node{Name: fmt.Sprint("n", i), State: model.NodeReady, Labels: map[string]string{}}
		if i < 3 {
			n.Labels[model.LabelZone] = fmt.Sprint("z", i)
		}
		f.nodes = append(f.nodes, n)
	}
	return f
}

// compile makes the topology. All required terms of a class hold at its only level, and
// all options may be bought for it but for what the fixture says of the first class.
func (f *fixture) compile() *Topology {
	p := &model.Problem{Axes: model.NewAxes(), Nodes: f.nodes, Shapes: f.shapes, Classes: f.classes}
	if len(f.sold) > 0 {
		small := model.InstanceType{Name: "small", Capacity: model.Resources{4000, 16, 0, 110}}
		for i, zone := range f.sold {
			small.Offerings = append(small.Offerings, model.Offering{CapacityType: model.OnDemand, Zone: zone, Price: model.Money(i + 1), Available: true})
		}
		p.Catalogs = []model.Catalog{{InstanceTypes: []model.InstanceType{small}}}
		p.Pools = []model.Pool{{Name: "pool", NodeLimit: -1}}
	}
	s := feasible.New(p, nil)
	levels := make([][]Level, len(f.classes))
	for i := range f.classes {
		c := &f.classes[i]
		options := bitset.Full(len(s.Options))
		if i == 0 && f.only != "" {
			options = bitset.New(len(s.Options))
			options.Add(optionIn(s, f.only))
		}
		levels[i] = []Level{{Spread: c.Spread, Affinity: c.Affinity, AntiAffinity: c.AntiAffinity, Options: options}}
	}
	return Compile(s, levels)
}

// optionIn is the pool's option in a zone, or -1.
func optionIn(s *feasible.Space, zone string) int {
	key := s.Labels.KeyIndex(model.LabelZone)
	for o := range s.Options {
		if name, _ := s.Labels.ValueName(key, s.Labels.OptionValue(key, o)); name == zone {
			return o
		}
	}
	return -1
}

// pod is a class whose pods have the label app.
func pod(app string, terms ...func(*model.PodClass)) model.PodClass {
	c := model.PodClass{Pods: make([]model.PodRef, 1)}
	c.Namespace, c.Labels = "default", map[string]string{"app": app}
	for _, t := range terms {
		t(&c)
	}
	return c
}

func spread(key, app string, maxSkew int32, more ...func(*model.SpreadConstraint)) func(*model.PodClass) {
	s := model.SpreadConstraint{TopologyKey: key, MaxSkew: maxSkew, Selector: selecting(app), Hard: true}
	for _, m := range more {
		m(&s)
	}
	return func(c *model.PodClass) { c.Spread = append(c.Spread, s) }
}

func minDomains(n int32) func(*model.SpreadConstraint) {
	return func(s *model.SpreadConstraint) { s.MinDomains = n }
}

func near(key, app string) func(*model.PodClass) {
	return func(c *model.PodClass) { c.Affinity = append(c.Affinity, affinityTo(key, app)) }
}

func apart(key, app string) func(*model.PodClass) {
	return func(c *model.PodClass) { c.AntiAffinity = append(c.AntiAffinity, affinityTo(key, app)) }
}

func affinityTo(key, app string) model.AffinityTerm {
	return model.AffinityTerm{TopologyKey: key, Selector: selecting(app), Namespaces: []string{"default"}}
}

func selecting(app string) *model.Selector {
	return &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{app}}}}
}

func node(n int) Place { return Place{ID: n, Node: n, Option: -1} }

// rooms is the room of each node.
func rooms(c *Counts, r *Rules, scope Scope) []int {
	var out []int
	for n := range 4 {
		out = append(out, c.Room(r, node(n), scope))
	}
	return out
}

func wantRooms(t *testing.T, c *Counts, r *Rules, want ...int) {
	t.Helper()
	if got := rooms(c, r, Everything); !slices.Equal(got, want) {
		t.Errorf("got rooms %v, want %v", got, want)
	}
}

const (
	zone = model.LabelZone
	host = model.LabelHostname
)

func TestSpreadRoomUpToSkewOverMinimum(t *testing.T) {
	top := newFixture(pod("web", spread(zone, "web", 2))).compile()
	c, r := top.NewCounts(nil), top.Rules(0, 0)
	wantRooms(t, c, r, 2, 2, 2, 0)
	c.Add(0, node(0), 2)
	wantRooms(t, c, r, 0, 2, 2, 0)
	c.Add(0, node(1), 1)
	c.Add(0, node(2), 1)
	wantRooms(t, c, r, 1, 2, 2, 0)
	if got := r.Spread[0]; got.Self != 1 || len(got.Domains) != 3 {
		t.Errorf("got %+v", got)
	}
}

// Pods that enter the emptiest domain one by one fill all domains to the same level.
func TestSpreadWaterFillingIsEven(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		skew := int32(rapid.IntRange(1, 3).Draw(rt, "maxSkew"))
		top := newFixture(pod("web", spread(zone, "web", skew))).compile()
		c, r := top.NewCounts(nil), top.Rules(0, 0)
		counts := [3]int{}
		for range rapid.IntRange(0, 30).Draw(rt, "pods") {
			n := rapid.IntRange(0, 2).Draw(rt, "first choice")
			for c.Room(r, node(n), Everything) == 0 {
				n = (n + 1) % 3
			}
			c.Add(0, node(n), 1)
			counts[n]++
			if least, most := min(counts[0], counts[1], counts[2]), max(counts[0], counts[1], counts[2]); most-least > int(skew) {
				rt.Fatalf("counts %v exceed maxSkew %d", counts, skew)
			}
		}
	})
}

// As many pods as the room in turn enter a domain one by one, and no more.
func TestSpreadRoomInTurnIsWhatEntersOneByOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		skew, hosts := int32(rapid.IntRange(1, 3).Draw(rt, "maxSkew")), rapid.Bool().Draw(rt, "hosts")
		rules := []func(*model.PodClass){spread(zone, "web", skew)}
		if hosts {
			rules = append(rules, spread(host, "web", 4))
		}
		top := newFixture(pod("web", rules...)).compile()
		c, r := top.NewCounts(nil), top.Rules(0, 0)
		for n := range 3 {
			c.Add(0, node(n), rapid.IntRange(0, 3).Draw(rt, "pods"))
		}
		at := node(rapid.IntRange(0, 2).Draw(rt, "domain"))
		got, entered := c.RoomInTurn(r, at), 0
		for ; c.Room(r, at, Everything) > 0; entered++ {
			c.Add(0, at, 1)
		}
		if hosts && entered > got { // the minimum of hosts rises, too, and that is not foreseen
			return
		}
		if got != entered {
			rt.Fatalf("%d pods entered, foreseen were %d", entered, got)
		}
	})
}

func TestSpreadOfOtherPodsAllOrNothing(t *testing.T) {
	top := newFixture(pod("web", spread(zone, "db", 1)), pod("db")).compile()
	c, r := top.NewCounts(nil), top.Rules(0, 0)
	c.Add(1, node(0), 2)
	wantRooms(t, c, r, 0, NoLimit, NoLimit, 0)
}

func TestSpreadOverHostsCountsNodesThatExist(t *testing.T) {
	top := newFixture(pod("web", spread(host, "web", 2))).compile()
	c, r := top.NewCounts(nil), top.Rules(0, 0)
	wantRooms(t, c, r, 2, 2, 2, 2)
	for n := range 3 {
		c.Add(0, node(n), 1)
	}
	wantRooms(t, c, r, 1, 1, 1, 2)
	c.Add(0, node(3), 1)
	wantRooms(t, c, r, 2, 2, 2, 2)
	c.Add(0, node(1), -1)
	wantRooms(t, c, r, 1, 2, 1, 1)
	c.Add(0, node(1), 1)
	if got := c.Room(r, Place{ID: -1, Node: -1}, Everything); got != 2 || r.PerNode() != 2 {
		t.Errorf("got room for %d on a new node and %d a node, want 2", got, r.PerNode())
	}
}

func TestMinDomainsHoldsMinimumAtZero(t *testing.T) {
	top := newFixture(pod("web", spread(zone, "web", 1, minDomains(4)))).compile()
	c, r := top.NewCounts(nil), top.Rules(0, 0)
	for n := range 3 {
		c.Add(0, node(n), 1)
	}
	if !c.Eligible.TooFew(&r.Spread[0]) || c.Minimum(&r.Spread[0]) != 0 {
		t.Error("three of four domains must give the minimum 0")
	}
	wantRooms(t, c, r, 0, 0, 0, 0)
	if f := c.Refusal(r, node(0)); f == nil || !strings.Contains(f.Have, "3 domains of at least 4") {
		t.Errorf("got %+v", f)
	}
}

func TestMinDomainsCountsFurtherDomains(t *testing.T) {
	top := newFixture(pod("web", spread(zone, "web", 1, minDomains(4)))).compile()
	s := &top.Rules(0, 0).Spread[0]
	fourth := Domain{Counter: s.Counter, Value: int32(top.space.Labels.Values(s.Key))}
	e := top.NewCounts([]Domain{fourth}).Eligible
	if e.TooFew(s) || !e.NeedsFurther(s, nil) || e.NeedsFurther(s, []Domain{fourth}) {
		t.Error("the fourth domain must be needed and be enough")
	}
}

// A domain that other pods' nodes add is eligible, and keeps the minimum down.
func TestFurtherDomainLowersMinimum(t *testing.T) {
	top := newFixture(pod("web", spread(zone, "web", 1))).compile()
	s := &top.Rules(0, 0).Spread[0]
	further := int32(3) // none of the three zones of the nodes
	c := top.NewCounts(nil)
	wider := top.NewCounts([]Domain{{Counter: s.Counter, Value: further}})
	for n := range 3 {
		c.Add(0, node(n), 2)
		wider.Add(0, node(n), 2)
	}
	if got := c.Minimum(s); got != 2 {
		t.Fatalf("minimum %d, want 2", got)
	}
	if got := c.Excess(s, node(0), further); got != 1 {
		t.Errorf("two pods next to an empty domain: excess %d, want 1", got)
	}
	if got := wider.Minimum(s); got != 0 {
		t.Errorf("minimum %d with an empty domain, want 0", got)
	}
	wantRooms(t, wider, top.Rules(0, 0), 0, 0, 0, 0)
}

func TestOutsideListsZonesThatOthersBuyIn(t *testing.T) {
	f := newFixture(pod("web", spread(zone, "web", 1)))
	f.sold, f.only = []string{"z0", "z3"}, "z0"
	top := f.compile()
	s, e := &top.Rules(0, 0).Spread[0], top.NewCounts(nil).Eligible
	all := bitset.Full(len(top.space.Options))
	if got := e.Outside(s, all); len(got) != 1 {
		t.Fatalf("got %v, want z3 alone", got)
	} else if in := top.In(Domain{s.Counter, got[0]}); !in.Has(optionIn(top.space, "z3")) || in.Count() != 1 {
		t.Errorf("got options %v in z3", in)
	}
	all.Remove(optionIn(top.space, "z3"))
	if got := e.Outside(s, all); got != nil {
		t.Errorf("got %v of options in eligible domains, want none", got)
	}
}

// A node counts for a pod's spread only if it has a domain for each of its spreads, as
// the scheduler has it.
func TestSpreadIgnoresNodesLackingAKey(t *testing.T) {
	for soft, want := range map[bool]int{false: 0, true: 3} {
		softly := func(s *model.SpreadConstraint) { s.Hard = !soft }
		top := newFixture(pod("web", spread(zone, "web", 1), spread("rack", "web", 9, softly))).compile()
		if got := len(top.Rules(0, 0).Spread[0].Domains); got != want {
			t.Errorf("no node has a rack, soft %v: %d zones count, want %d", soft, got, want)
		}
	}
}

func TestSpreadRefusalNamesUnreachableDomain(t *testing.T) {
	top := newFixture(pod("web", spread(zone, "web", 2))).compile()
	c, r := top.NewCounts(nil), top.Rules(0, 0)
	c.Add(0, node(0), 2)
	f := c.Refusal(r, node(0))
	if f == nil || f.Reason != model.ReasonSpread || f.Have != "2 pods in z0, and 0 in z1, which counts although no NodePool can buy for the pod there" {
		t.Errorf("got %+v", f)
	}
	if f := c.Refusal(r, node(3)); f == nil || f.Have != "no label "+zone {
		t.Errorf("got %+v", f)
	}
}

// Raising maxSkew does not help where no machine has the label.
func TestSpreadRefusalSaysThatNoMachineHasTheLabel(t *testing.T) {
	for key, want := range map[string]string{
		"rack":                        "Give the template of each NodePool the label rack, which no machine has, spread over another one, or use ScheduleAnyway.",
		"topology.kubernetes.io/rack": "Spread over another label, or use ScheduleAnyway: no machine has topology.kubernetes.io/rack.",
	} {
		top := newFixture(pod("web", spread(key, "web", 1))).compile()
		if f := top.NewCounts(nil).Refusal(top.Rules(0, 0), node(0)); f == nil || f.Have != "no label "+key || f.Fix != want {
			t.Errorf("%s: got %+v", key, f)
		}
	}
	top := newFixture(pod("web", spread(zone, "web", 1))).compile()
	if f := top.NewCounts(nil).Refusal(top.Rules(0, 0), node(3)); f == nil || f.Fix != "" {
		t.Errorf("others have a zone: got %+v", f)
	}
}

func TestAffinitySeedPodDecidesTheDomain(t *testing.T) {
	top := newFixture(pod("web", near(zone, "web"))).compile()
	c, r := top.NewCounts(nil), top.Rules(0, 0)
	wantRooms(t, c, r, 1, 1, 1, 0)
	c.Add(0, node(1), 1)
	wantRooms(t, c, r, 0, NoLimit, 0, 0)
}

func TestAffinityToOthersHasNoSeedPod(t *testing.T) {
	top := newFixture(pod("web", near(host, "db")), pod("db")).compile()
	c, r := top.NewCounts(nil), top.Rules(0, 0)
	wantRooms(t, c, r, 0, 0, 0, 0)
	if f := c.Refusal(r, node(0)); f == nil || f.Want != "such a pod in the same "+host {
		t.Errorf("got %+v", f)
	}
	c.Add(1, node(3), 1)
	wantRooms(t, c, r, 0, 0, 0, NoLimit)
}

// All terms together decide whether a pod is the first: one that a pod of another class
// meets already is enough to bind it.
func TestAffinityTermsShareTheSeedRule(t *testing.T) {
	top := newFixture(pod("web", near(zone, "web"), near(host, "web")), pod("web")).compile()
	c, r := top.NewCounts(nil), top.Rules(0, 0)
	wantRooms(t, c, r, 1, 1, 1, 0)
	c.Add(1, node(2), 1)
	wantRooms(t, c, r, 0, 0, NoLimit, 0)
}

func TestAntiAffinityToSelfAdmitsOne(t *testing.T) {
	top := newFixture(pod("web", apart(host, "web"))).compile()
	c, r := top.NewCounts(nil), top.Rules(0, 0)
	wantRooms(t, c, r, 1, 1, 1, 1)
	c.Add(0, node(3), 1)
	wantRooms(t, c, r, 1, 1, 1, 0)
	if got := rooms(c, r, Labels); slices.Contains(got, 0) {
		t.Errorf("a rule about hosts must not answer for labels: %v", got)
	}
	if r.PerNode() != 1 {
		t.Errorf("got %d pods a node, want 1", r.PerNode())
	}
}

func TestAntiAffinityBindsInBothDirections(t *testing.T) {
	top := newFixture(pod("web", apart(zone, "db")), pod("db")).compile()
	web, db := top.Rules(0, 0), top.Rules(1, 0)
	c := top.NewCounts(nil)
	c.Add(1, node(0), 1)
	wantRooms(t, c, web, 0, NoLimit, NoLimit, NoLimit)
	c = top.NewCounts(nil)
	c.Add(0, node(1), 1)
	wantRooms(t, c, db, NoLimit, 0, NoLimit, NoLimit)
	if f := c.Refusal(db, node(1)); f == nil || f.Have != "1 pod whose anti-affinity selects this one in z1" {
		t.Errorf("got %+v", f)
	}
	if db.Bound() || db.Free() {
		t.Error("db has no term of its own, but is not free")
	}
}

func TestRunningPodsCountFromTheStart(t *testing.T) {
	f := newFixture(pod("web", spread(zone, "web", 1)), pod("db"))
	f.shapes = []model.PodShape{{Namespace: "default", Labels: map[string]string{"app": "web"}}, {
		Namespace: "default", Labels: map[string]string{"app": "old"}, AntiAffinity: []model.AffinityTerm{affinityTo(zone, "db")},
	}}
	f.nodes[0].Bound = []model.BoundPods{{Shape: 0, Count: 1}, {Shape: 1, Count: 1}}
	f.nodes[1].Bound = []model.BoundPods{{Shape: 0, Count: 1}}
	f.nodes[1].State = model.NodeLeaving
	top := f.compile()
	c := top.NewCounts(nil)
	if got := c.Total(top.Rules(0, 0).Spread[0].Counter); got != 1 {
		t.Errorf("got %d pods, want 1: those of leaving nodes do not count", got)
	}
	if got := c.Room(top.Rules(1, 0), node(0), Everything); got != 0 {
		t.Errorf("got room for %d in the zone of a pod that refuses db, want none", got)
	}
}

func TestTermListsNamespacesInAnyOrder(t *testing.T) {
	few := []string{"z", "b", "m", "a", "default"}
	many := slices.Clone(few) // so many are looked up by number
	for n := range 2 * manyNamespaces {
		many = append(many, fmt.Sprintf("n%d", n))
	}
	for _, namespaces := range [][]string{few, many} {
		term := affinityTo(zone, "db")
		term.Namespaces = namespaces
		f := newFixture(pod("db"), pod("web", func(c *model.PodClass) { c.Affinity = append(c.Affinity, term) }))
		for _, namespace := range []string{"z", "a", "other", "", "zz", "aa"} {
			db := pod("db")
			db.Namespace = namespace
			f.classes = append(f.classes, db)
		}
		f.shapes = []model.PodShape{{Namespace: "only-runs", Labels: map[string]string{"app": "db"}}, {Namespace: "m", Labels: map[string]string{"app": "db"}}}
		f.nodes[0].Bound = []model.BoundPods{{Shape: 0, Count: 2}, {Shape: 1, Count: 3}}
		top := f.compile()
		counter := top.Rules(1, 0).Affinity[0].Counter
		for class, want := range []bool{true, false, true, true, false, false, false, false} {
			if got := slices.Contains(top.Adds(class), int32(counter)); got != want {
				t.Errorf("of %d namespaces the term selects pods of class %d: got %t, want %t", len(namespaces), class, got, want)
			}
		}
		if got := top.NewCounts(nil).Total(counter); got != 3 {
			t.Errorf("of %d namespaces the term counts %d running pods, want 3", len(namespaces), got)
		}
	}
}

func TestEqualTermsShareACounter(t *testing.T) {
	top := newFixture(pod("a", near(zone, "db"), spread(zone, "db", 1)), pod("b", near(zone, "db"), apart(zone, "db"))).compile()
	a, b := top.Rules(0, 0), top.Rules(1, 0)
	if one := a.Affinity[0].Counter; one != a.Spread[0].Counter || one != b.Affinity[0].Counter || one != b.AntiAffinity[0].Counter {
		t.Errorf("got %+v and %+v", a, b)
	}
	if len(top.counters) != 2 { // and the inverse one
		t.Errorf("got %d counters, want 2", len(top.counters))
	}
}

func TestUndecidedNodeCountsByKindOfTerm(t *testing.T) {
	f := newFixture(pod("a"), pod("near", near(zone, "a")), pod("far", apart(zone, "a")))
	f.sold = []string{"z0", "z1"}
	// Affinity and anti-affinity to one term would need the zone: two terms here.
	f.classes[2] = pod("far", apart(zone, "b"))
	f.classes = append(f.classes, pod("b"))
	top := f.compile()
	fresh := func(id int, zone string) Place { return Place{ID: id, Node: -1, Option: optionIn(top.space, zone)} }
	all := bitset.Full(len(top.space.Options))

	c := top.NewCounts(nil)
	c.AddUndecided(3, fresh(7, "z0"), 1, all)
	wantRooms(t, c, top.Rules(2, 0), 0, 0, NoLimit, NoLimit)

	c = top.NewCounts(nil)
	c.AddUndecided(0, fresh(7, "z0"), 1, all)
	wantRooms(t, c, top.Rules(1, 0), 0, 0, 0, 0)
	for id, want := range map[int]int{7: NoLimit, 8: 0} {
		if got := c.Room(top.Rules(1, 0), fresh(id, "z1"), Everything); got != want {
			t.Errorf("new node %d: got room for %d, want %d", id, got, want)
		}
	}
}

func TestKeepAdmittingDropsTakenZones(t *testing.T) {
	f := newFixture(pod("web", apart(zone, "web")))
	f.sold = []string{"z0", "z1"}
	top := f.compile()
	c, set := top.NewCounts(nil), bitset.Full(len(top.space.Options))
	c.Add(0, node(0), 1)
	c.KeepAdmitting(top.Rules(0, 0), -1, set)
	if set.Has(optionIn(top.space, "z0")) || !set.Has(optionIn(top.space, "z1")) {
		t.Errorf("got %v, want z1 alone", set)
	}
}

func TestOrderFreesPodsThatNoLaterClassReads(t *testing.T) {
	top := newFixture(pod("web", spread(zone, "web", 1)), pod("web")).compile()
	zoneKey := []int{top.space.Labels.KeyIndex(zone)}
	reader, plain := top.Rules(0, 0), top.Rules(1, 0)
	first, last := top.NewOrder([]int{0, 1}, false), top.NewOrder([]int{1, 0}, false)
	if got := first.Keys(plain); got != nil {
		t.Errorf("after the reader: got keys %v, want none", got)
	}
	if !first.ReadsEarly(reader) || last.ReadsEarly(reader) {
		t.Error("the reader reads early if and only if it comes first")
	}
	again := first.Reading(reader)
	for name, o := range map[string]*Order{"last": last, "repeated": first.Repeated(), "again": again} {
		if got := o.Keys(plain); !slices.Equal(got, zoneKey) || !slices.Equal(o.FixedKeys(plain), zoneKey) {
			t.Errorf("%s: got keys %v, want the zone", name, got)
		}
		if others := top.OtherSpreads(plain, o.Keys(plain)); len(others) != 1 || others[0] != reader.Spread[0].Counter {
			t.Errorf("%s: got other spreads %v", name, others)
		}
	}
	if first.Keys(plain) != nil {
		t.Error("an order that was altered must be another one")
	}
}

func TestFixedKeysLeaveAntiAffinityUndecided(t *testing.T) {
	top := newFixture(pod("web", apart(zone, "web"))).compile()
	o := top.NewOrder([]int{0}, false)
	if keys, fixed := o.Keys(top.Rules(0, 0)), o.FixedKeys(top.Rules(0, 0)); len(keys) != 1 || fixed != nil {
		t.Errorf("got keys %v, fixed %v", keys, fixed)
	}
}
