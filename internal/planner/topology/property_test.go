package topology

import (
	"reflect"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// world is a fixture with all kinds of rules, for properties.
func world() *Topology {
	f := newFixture(
		pod("web", spread(zone, "web", 1), spread(host, "web", 2)), pod("db", near(zone, "web"), apart(host, "db")),
		pod("web", spread(zone, "web", 3, minDomains(3)), apart(zone, "job")), pod("job", near(host, "web")))
	f.sold, f.only = []string{"z0", "z1", "z3"}, "z0"
	f.shapes = []model.PodShape{{Namespace: "default", Labels: map[string]string{"app": "web"}}}
	f.nodes[1].Bound = []model.BoundPods{{Shape: 0, Count: 2}}
	return f.compile()
}

// answers are what can be asked of counts.
func answers(c *Counts) []any {
	var out []any
	var all []int
	for i := range c.t.counters {
		out = append(out, c.Total(i))
		all = append(all, i)
	}
	for _, p := range places(c.t) {
		out = append(out, c.Sum(all, p))
		for class := range c.t.rules {
			r := c.t.Rules(class, 0)
			out = append(out, c.Room(r, p, Everything), c.SpreadRoom(r, p), c.Refuses(r, p))
			for i := range r.Spread {
				out = append(out, c.Minimum(&r.Spread[i]))
			}
		}
	}
	return out
}

// places are the nodes and two new nodes of each option.
func places(t *Topology) []Place {
	var out []Place
	for n := range 4 {
		out = append(out, node(n))
	}
	for o := range t.space.Options {
		out = append(out, Place{ID: 10 + 2*o, Node: -1, Option: o}, Place{ID: 11 + 2*o, Node: -1, Option: o})
	}
	return out
}

// change is one addition that can be taken back.
func change(rt *rapid.T, c *Counts) func(sign int) {
	p := rapid.SampledFrom(places(c.t)).Draw(rt, "place")
	class, n := rapid.IntRange(0, len(c.t.rules)-1).Draw(rt, "class"), rapid.IntRange(1, 3).Draw(rt, "pods")
	switch how := rapid.IntRange(0, 2).Draw(rt, "how"); {
	case how == 0 && p.Node < 0:
		return func(sign int) { c.AddUndecided(class, p, sign*n, bitset.Full(len(c.t.space.Options))) }
	case how == 1:
		return func(sign int) { c.AddHost(class, p, sign*n) }
	}
	return func(sign int) { c.Add(class, p, sign*n) }
}

func TestTakingBackEqualsNeverAdded(t *testing.T) {
	top := world()
	rapid.Check(t, func(rt *rapid.T) {
		c := top.NewCounts(nil)
		for range rapid.IntRange(0, 5).Draw(rt, "kept") {
			change(rt, c)(1)
		}
		before := answers(c)
		var back []func(int)
		for range rapid.IntRange(1, 8).Draw(rt, "taken back") {
			do := change(rt, c)
			do(1)
			back = append(back, do)
		}
		for _, i := range rapid.Permutation(indexes(len(back))).Draw(rt, "order") {
			back[i](-1)
		}
		if after := answers(c); !reflect.DeepEqual(before, after) {
			rt.Fatalf("before %v, after %v", before, after)
		}
	})
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestForkIsIndependent(t *testing.T) {
	top := world()
	untouched := answers(top.NewCounts(nil))
	rapid.Check(t, func(rt *rapid.T) {
		c := top.NewCounts(nil)
		for range rapid.IntRange(1, 5).Draw(rt, "before the fork") {
			change(rt, c)(1)
		}
		f, before := c.Fork(), answers(c)
		if got := answers(f); !reflect.DeepEqual(got, before) {
			rt.Fatalf("the fork answers %v, want %v", got, before)
		}
		change(rt, f)(1)
		if got := answers(c); !reflect.DeepEqual(got, before) {
			rt.Fatal("a change of the fork shows in what it was forked from")
		}
		forked := answers(f)
		change(rt, c)(1)
		if got := answers(f); !reflect.DeepEqual(got, forked) {
			rt.Fatal("a change shows in the fork")
		}
		if got := answers(top.NewCounts(nil)); !reflect.DeepEqual(got, untouched) {
			rt.Fatal("a change shows in counts that begin later")
		}
	})
}

// The minima that are kept up to date are those that counting again would give.
func TestMinimaMatchRecount(t *testing.T) {
	top := world()
	s := &top.Rules(0, 0).Spread[0]
	further := top.NewCounts(nil).Eligible.Outside(s, bitset.Full(len(top.space.Options)))
	if len(further) != 1 {
		t.Fatalf("got further domains %v, want z3 alone", further)
	}
	rapid.Check(t, func(rt *rapid.T) {
		c := top.NewCounts([]Domain{{Counter: s.Counter, Value: further[0]}})
		var done []func(int)
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			if len(done) > 0 && rapid.Bool().Draw(rt, "take back") {
				done[len(done)-1](-1)
				done = done[:len(done)-1]
			} else {
				done = append(done, change(rt, c))
				done[len(done)-1](1)
			}
			for g := range c.minima {
				if got, want := c.minima[g], c.minimum(g); got != want {
					rt.Fatalf("group %d: got %+v, want %+v", g, got, want)
				}
			}
		}
	})
}

// One topology serves many goroutines, and so do counts that no one changes. The race
// detector sees whether that is true.
func TestSharedByGoroutines(t *testing.T) {
	top := world()
	shared := top.NewCounts(nil)
	want := answers(shared)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			own := top.NewCounts(nil)
			own.Add(0, node(0), 1)
			top.NewOrder([]int{3, 2, 1, 0}, false).Keys(top.Rules(0, 0))
			if got := answers(shared); !reflect.DeepEqual(got, want) {
				t.Error("a change of other counts shows")
			}
		})
	}
	wg.Wait()
}
