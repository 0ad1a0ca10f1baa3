package construct

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

const gi = 1 << 30

// drawn is a random catalogue of sizes in up to three zones with random prices, and
// classes of random sizes that spread over zones.
func drawn(t *rapid.T) *instance.Instance {
	p := &model.Problem{Axes: model.NewAxes(), Pools: []model.Pool{{Name: "default", NodeLimit: -1}}}
	var c model.Catalog
	for i := range rapid.IntRange(1, 8).Draw(t, "types") {
		cores, ratio := int64(rapid.IntRange(1, 16).Draw(t, "cores")), int64(rapid.IntRange(1, 8).Draw(t, "memory per core"))
		it := model.InstanceType{Name: fmt.Sprint("t", i), Capacity: model.Resources{cores * 1000, cores * ratio * gi, 100 * gi, 110}}
		for z := range rapid.IntRange(1, 3).Draw(t, "zones") {
			price := model.Money(rapid.IntRange(1, 1000).Draw(t, "price")) * 1000
			it.Offerings = append(it.Offerings, model.Offering{Zone: fmt.Sprint("z", z), CapacityType: model.OnDemand, Price: price, Available: true})
		}
		c.InstanceTypes = append(c.InstanceTypes, it)
	}
	p.Catalogs = []model.Catalog{c}
	for i := range 3 {
		name := fmt.Sprint("app", i)
		class := model.PodClass{Owner: name, Requests: model.Resources{
			int64(rapid.IntRange(1, 40).Draw(t, "cpu")) * 100, int64(rapid.IntRange(1, 16).Draw(t, "memory")) * gi / 2, 0, 1,
		}, Pods: make([]model.PodRef, 5)}
		class.Namespace, class.Labels = "default", map[string]string{"app": name}
		selector := &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{name}}}}
		class.Spread = []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 1, Selector: selector, Hard: true}}
		p.Classes = append(p.Classes, class)
	}
	return instance.New(feasible.New(p, nil))
}

// The parts of a set are its members by zone: disjoint, together the set, and each in
// one zone.
func TestIndexPartitionsByDomain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawn(rt)
		x := newOptionIndex(in, nil)
		s := placement.New(in, nil, placement.Decision{}, []int{0, 1, 2}, false)
		zone := in.Space.Labels.KeyIndex(model.LabelZone)
		for i := range in.Classes {
			set := in.Classes[i].Levels[0].Options
			if !set.Any() {
				continue
			}
			union := bitset.New(len(in.Space.Options))
			for _, p := range x.divide(s.Domains, &in.Classes[i], set, s.Domains.Keys(i, 0)) {
				if union.Intersects(p.options) {
					rt.Fatal("two parts share an option")
				}
				union.Or(p.options)
				for o := range p.options.All {
					if in.Space.Labels.OptionValue(zone, o) != in.Space.Labels.OptionValue(zone, p.first) {
						rt.Fatalf("options %d and %d of one part are in different zones", o, p.first)
					}
				}
			}
			if !slices.Equal(union, set) {
				rt.Fatalf("the parts of %v make %v", set, union)
			}
		}
	})
}

// The lists and the shortcuts find what a look at every option finds.
func TestIndexCheapestOfAllOptions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawn(rt)
		x := newOptionIndex(in, nil)
		s := placement.New(in, nil, placement.Decision{}, []int{0, 1, 2}, false)
		most := rapid.SampledFrom([]int{1, 2, 3, topology.NoLimit}).Draw(rt, "most per node")
		n := pods{most: most, counted: most == topology.NoLimit && rapid.Bool().Draw(rt, "counted")}
		for i := range in.Classes {
			c := &in.Classes[i]
			set := c.Levels[0].Options
			if !set.Any() {
				continue
			}
			parts := x.divide(s.Domains, c, set, s.Domains.Keys(i, 0))
			for at := range parts {
				want := math.Inf(1)
				for o := range parts[at].options.All {
					switch {
					case !in.Menu.Has(o):
					case n.counted || n.most < topology.NoLimit:
						want = min(want, x.countedCost(c, o, n.most))
					default:
						want = min(want, x.fluidCost(c, o))
					}
				}
				if got := x.cheapest(c, &parts[at], in.Sets.Set(c.Levels[0].Static), n, s.Ledger); got != want {
					rt.Fatalf("class %d, part %d: got %g, want %g", i, at, got, want)
				}
			}
		}
	})
}

// One of the efficient options is the cheapest for pods of any size.
func TestIndexEfficientOptionsIncludeCheapest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawn(rt)
		x := newOptionIndex(in, nil)
		list := x.byPrice(in.Space.Supply.Available)
		if !slices.IsSortedFunc(list, func(a, b int) int {
			return cmp.Compare(in.Space.Options[a].Price, in.Space.Options[b].Price)
		}) {
			rt.Fatalf("%v is not sorted by price", list)
		}
		all := bitset.Full(len(in.Space.Options))
		for i := range in.Classes {
			got, _ := x.leastOf(&in.Classes[i], x.efficient(list), all)
			if want, _ := x.leastOf(&in.Classes[i], list, all); got != want {
				rt.Fatalf("class %d: got %g, want %g", i, got, want)
			}
		}
	})
}

// A fork sees other options as worth buying, and the original does not.
func TestIndexForkIsIndependent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawn(rt)
		x := newOptionIndex(in, nil)
		f := x.fork()
		before := slices.Clone(x.ratesOf(0))
		f.setWorth(bitset.New(len(in.Space.Options)))
		if slices.Max(f.ratesOf(0)) != 0 {
			rt.Fatal("the fork has prices for options that are not worth buying")
		}
		if !slices.Equal(x.ratesOf(0), before) || !slices.Equal(x.Worth(), in.Menu) {
			rt.Fatal("the fork changed the original")
		}
	})
}

func TestIndexQueueYieldsCandidatesInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var q queue
		for id := range rapid.IntRange(1, 20).Draw(rt, "candidates") {
			q = append(q, candidate{
				pl:    &placement.Place{Place: topology.Place{ID: id}},
				ready: rapid.Bool().Draw(rt, "ready"), roomy: rapid.Bool().Draw(rt, "roomy"), slack: float64(rapid.IntRange(0, 3).Draw(rt, "slack")),
			})
		}
		want := slices.SortedFunc(slices.Values(q), better)
		q.order()
		for i := range want {
			if q[0].pl != want[i].pl {
				rt.Fatalf("candidate %d is place %d, want %d", i, q[0].pl.ID, want[i].pl.ID)
			}
			if q.drop(); len(q) == 0 && i < len(want)-1 {
				rt.Fatal("too few candidates")
			}
		}
	})
}
