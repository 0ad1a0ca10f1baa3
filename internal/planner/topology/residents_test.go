package topology

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
)

// apps are the values by which the pods of these tests tell each other apart.
var apps = []string{"a", "b", "c"}

// hostTerms draws anti-affinity over hosts: to some apps, or to all others.
func hostTerms(rt *rapid.T) []model.AffinityTerm {
	var out []model.AffinityTerm
	for range rapid.IntRange(0, 2).Draw(rt, "terms") {
		t := affinityTo(host, rapid.SampledFrom(apps).Draw(rt, "selected"))
		t.Selector.Requirements[0].Operator = rapid.SampledFrom([]model.Operator{model.In, model.NotIn}).Draw(rt, "operator")
		out = append(out, t)
	}
	return out
}

// refuseEachOther states the rule on two pods plainly.
func refuseEachOther(a, b *model.PodShape) bool {
	selects := func(own, other *model.PodShape) bool {
		return slices.ContainsFunc(own.AntiAffinity, func(t model.AffinityTerm) bool { return t.Selector.Matches(other.Labels) })
	}
	return selects(a, b) || selects(b, a)
}

// TestHostsAdmitWhoRefusesNoOther holds anti-affinity over hosts against the pods that are
// there, one by one, whether spread constraints count the same pods or not.
func TestHostsAdmitWhoRefusesNoOther(t *testing.T) {
	var admitted, refused int
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture()
		for i := range rapid.IntRange(1, 4).Draw(rt, "classes") {
			c := pod(rapid.SampledFrom(apps).Draw(rt, "app"))
			c.AntiAffinity = hostTerms(rt)
			if i == 0 && rapid.Bool().Draw(rt, "spread") {
				spread(host, "a", 1_000)(&c)
			}
			f.classes = append(f.classes, c)
		}
		on := map[int][]*model.PodShape{} // the pods by place
		for i := range rapid.IntRange(0, 3).Draw(rt, "shapes") {
			s := model.PodShape{Namespace: "default", Labels: map[string]string{"app": rapid.SampledFrom(apps).Draw(rt, "app")}}
			if i == 0 { // some run already
				s = f.classes[0].PodShape
			} else {
				s.AntiAffinity = hostTerms(rt)
			}
			f.shapes = append(f.shapes, s)
		}
		for i := range f.shapes {
			n := rapid.IntRange(0, 3).Draw(rt, "node")
			f.nodes[n].Bound = append(f.nodes[n].Bound, model.BoundPods{Shape: i, Count: 1})
			on[n] = append(on[n], &f.shapes[i])
		}
		c := f.compile().NewCounts(nil)
		if len(f.shapes) > 0 && rapid.Bool().Draw(rt, "one leaves") {
			for n, pods := range on {
				if at := slices.Index(pods, &f.shapes[0]); at >= 0 {
					on[n] = slices.Delete(pods, at, at+1)
					c.Add(0, node(n), -1)
				}
			}
		}
		for range rapid.IntRange(0, 6).Draw(rt, "added") {
			class, n := rapid.IntRange(0, len(f.classes)-1).Draw(rt, "class"), rapid.IntRange(0, 6).Draw(rt, "place")
			if c = c.Fork(); n < 4 {
				c.Add(class, node(n), 1)
			} else {
				c.AddHost(class, Place{ID: n, Node: -1, Option: -1}, 1)
			}
			on[n] = append(on[n], &f.classes[class].PodShape)
		}
		for class := range f.classes {
			own := &f.classes[class].PodShape
			for n := range 7 {
				p := node(n)
				if n >= 4 {
					p = Place{ID: n, Node: -1, Option: -1}
				}
				want := NoLimit
				switch {
				case slices.ContainsFunc(on[n], func(other *model.PodShape) bool { return refuseEachOther(own, other) }):
					want = 0
					refused++
				case refuseEachOther(own, own):
					want = 1
				default:
					admitted++
				}
				r := c.t.Rules(class, 0)
				got := c.Room(r, p, Hosts)
				if len(r.Spread) > 0 {
					got, want = min(got, 1), min(want, 1)
				}
				if reason := c.Refuses(r, p); got != want || (reason == model.ReasonAntiAffinity) != (want == 0) {
					rt.Fatalf("class %d on place %d: got room %d and reason %q, want %d", class, n, got, reason, want)
				}
			}
		}
	})
	if admitted == 0 || refused == 0 {
		t.Errorf("pods were admitted %d times and refused %d times, want both", admitted, refused)
	}
}

// Where as many classes as one likes refuse each other, a pod that is added costs as little
// as one of two.
func TestResidentsOfClassesThatRefuseAllOthers(t *testing.T) {
	f := newFixture()
	for i := range 200 {
		c := pod(fmt.Sprint("app", i), apart(host, fmt.Sprint("app", i)))
		c.AntiAffinity[0].Selector.Requirements[0].Operator = model.NotIn
		f.classes = append(f.classes, c)
	}
	top := f.compile()
	c := top.NewCounts(nil)
	for i := range f.classes {
		if n := len(top.counts[i].tallied); n != 0 {
			t.Fatalf("%d tallies count class %d, want none", n, i)
		}
		if n := len(top.Rules(i, 0).Inverse); n != 0 {
			t.Fatalf("class %d has %d inverse terms, want none", i, n)
		}
	}
	c.Add(7, node(1), 2)
	if f := c.Refusal(top.Rules(8, 0), node(1)); f == nil || f.Have != "2 pods that the anti-affinity selects on that node" {
		t.Errorf("got %+v", f)
	}
	wantRooms(t, c, top.Rules(7, 0), NoLimit, NoLimit, NoLimit, NoLimit)
}

func TestRefusalByPodsWhoseTermIsOverHosts(t *testing.T) {
	top := newFixture(pod("web", apart(host, "db")), pod("db")).compile()
	c := top.NewCounts(nil)
	c.Add(0, node(1), 2)
	db := top.Rules(1, 0)
	wantRooms(t, c, db, NoLimit, 0, NoLimit, NoLimit)
	if f := c.Refusal(db, node(1)); f == nil || f.Have != "2 pods whose anti-affinity selects this one on that node" || f.Want != "none in the same "+host {
		t.Errorf("got %+v", f)
	}
	if db.Bound() || db.Free() {
		t.Error("db has no term of its own, but is not free")
	}
}
