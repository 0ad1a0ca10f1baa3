package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

const gi = 1 << 30

// problem has two sizes in two zones, of which the larger may be bought twice, two
// existing nodes, and classes that spread over zones, keep apart on hosts, share a disk
// and take a host port.
func problem() *model.Problem {
	p := &model.Problem{Axes: model.NewAxes(), Pools: []model.Pool{{Name: "default", NodeLimit: 6}}}
	var c model.Catalog
	for _, cores := range []int64{4, 8} {
		t := model.InstanceType{Name: fmt.Sprint("d", cores), Capacity: model.Resources{cores * 1000, cores * 4 * gi, 100 * gi, 110}, VolumeSlots: map[string]int{"disk": 4}}
		for _, z := range []string{"z1", "z2"} {
			t.Offerings = append(t.Offerings, model.Offering{Zone: z, CapacityType: model.OnDemand, Price: model.USD(float64(cores) / 10), Available: true})
		}
		c.InstanceTypes = append(c.InstanceTypes, t)
	}
	p.Catalogs = []model.Catalog{c}
	for i := range 2 {
		p.Nodes = append(p.Nodes, model.Node{
			Name: fmt.Sprint("n", i), State: model.NodeReady, Labels: map[string]string{model.LabelZone: fmt.Sprint("z", i+1)},
			Allocatable: model.Resources{4000, 16 * gi, 100 * gi, 110},
		})
	}
	web := &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"web"}}}}
	for _, name := range []string{"web", "apart", "disk", "port"} {
		class := model.PodClass{Owner: name, Requests: model.Resources{500, gi, 0, 1}, Pods: make([]model.PodRef, 20)}
		class.Namespace, class.Labels = "default", map[string]string{"app": name}
		switch name {
		case "web":
			class.Spread = []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 2, Selector: web, Hard: true}}
		case "apart":
			class.AntiAffinity = []model.AffinityTerm{{TopologyKey: model.LabelHostname, Selector: web, Namespaces: []string{"default"}}}
		case "disk":
			class.Volumes = []model.Volume{{Driver: "disk", ID: "shared"}}
		case "port":
			class.HostPorts = []model.HostPort{{Port: 80, Protocol: "TCP"}}
		}
		p.Classes = append(p.Classes, class)
	}
	return p
}

func newState(t require) *placement.State {
	in := instance.New(feasible.New(problem(), nil))
	for i := range in.Classes {
		if in.Classes[i].Invalid != "" {
			t.Fatalf("class %d: %s", i, in.Classes[i].Invalid)
		}
	}
	nodes, rejected := placement.Existing(in.Space)
	if len(nodes) != 2 || len(rejected) > 0 {
		t.Fatalf("%d nodes, rejected %v", len(nodes), rejected)
	}
	return placement.New(in, nodes, placement.Decision{}, []int{0, 1, 2, 3}, false)
}

type require interface{ Fatalf(string, ...any) }

// step changes a state by one random step that its rules allow.
func step(t *rapid.T, s *placement.State) {
	class := &s.Instance.Classes[rapid.IntRange(0, 3).Draw(t, "class")]
	places := append(append([]*placement.Place(nil), s.Nodes...), s.NewNodes...)
	switch at := rapid.IntRange(0, len(places)+1).Draw(t, "place"); {
	case at < len(places):
		put(s, class, places[at])
	case at == len(places):
		if o := rapid.IntRange(0, len(s.Instance.Space.Options)-1).Draw(t, "option"); s.Ledger.Admits(o) {
			pl := s.NewNode(o)
			s.Buy(pl)
			put(s, class, pl)
		}
	default:
		if len(s.NewNodes) == 0 {
			return
		}
		pl := s.NewNodes[rapid.IntRange(0, len(s.NewNodes)-1).Draw(t, "node")]
		// The same zone in the other size.
		for o := range pl.Options.All {
			same := s.Instance.Topology.Domain(s.Instance.Space.Labels.KeyIndex(model.LabelZone), topology.Place{ID: -1, Node: -1, Option: o}) ==
				s.Instance.Topology.Domain(s.Instance.Space.Labels.KeyIndex(model.LabelZone), pl.Place)
			if o != pl.Option && same && s.Affords(pl.Option, o) && feasible.Fits(s.Used(pl), s.Instance.Space.Net(o)) {
				s.Exchange(pl, o)
				return
			}
		}
	}
}

func put(s *placement.State, class *instance.Class, pl *placement.Place) {
	n := min(3, s.Left[class.Index], s.Domains.Counts.Room(class.Levels[0].Rules, pl.Place, topology.Everything))
	if n > 0 {
		n = s.RoomOn(class, 0, n, pl)
	}
	if n > 0 {
		s.Put(class, 0, n, pl)
		s.Left[class.Index] -= n
	}
}

// picture is everything that can be seen of a state.
func picture(s *placement.State) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.Left, s.Unplaced(), s.Cost(), s.PlacedCounts(), s.Bought(), s.GivenUp(), s.Rounds, s.Steps)
	for _, list := range [2][]*placement.Place{s.Nodes, s.NewNodes} {
		for _, pl := range list {
			fmt.Fprintln(&b, pl.Place, pl.Free, pl.Ports, pl.Attached, pl.Options, pl.Pods, pl.Open)
			for i := range s.Instance.Classes {
				class := &s.Instance.Classes[i]
				fmt.Fprint(&b, s.Domains.Counts.Room(class.Levels[0].Rules, pl.Place, topology.Everything), s.Capacity(class, pl, pl.Free), s.Domains.Keys(i, 0), " ")
			}
		}
	}
	for line := range s.Instance.Space.Supply.Lines {
		fmt.Fprint(&b, s.Ledger.Left(line), " ")
	}
	return b.String()
}

func TestForkIsIndependent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newState(rt)
		for range rapid.IntRange(0, 8).Draw(rt, "before") {
			step(rt, s)
		}
		f := s.Fork()
		if rapid.Bool().Draw(rt, "detach") {
			f = s.Detach()
		}
		want := picture(s)
		if got := picture(f); got != want {
			rt.Fatalf("the fork is\n%s\nwant\n%s", got, want)
		}
		for range rapid.IntRange(1, 8).Draw(rt, "on the fork") {
			step(rt, f)
		}
		if got := picture(s); got != want { // to keep the original is to undo the trial
			rt.Fatalf("steps on the fork changed the original to\n%s\nfrom\n%s", got, want)
		}
		want = picture(f)
		for range rapid.IntRange(1, 8).Draw(rt, "on the original") {
			step(rt, s)
		}
		if got := picture(f); got != want {
			rt.Fatalf("steps on the original changed the fork to\n%s\nfrom\n%s", got, want)
		}
	})
}

func TestExchangeAndReverseRestoresState(t *testing.T) {
	s := newState(t)
	small, large := 0, 0
	for o := range s.Instance.Space.Options {
		switch cpu := s.Instance.Space.Net(o)[model.CPU]; {
		case cpu < 5000 && s.Instance.Space.Options[o].Price > 0:
			small = o
		case cpu > 5000:
			large = o
		}
	}
	pl := s.NewNode(small)
	s.Buy(pl)
	put(s, &s.Instance.Classes[0], pl)
	want := picture(s)
	s.Exchange(pl, large)
	if picture(s) == want {
		t.Fatal("the exchange changed nothing")
	}
	s.Exchange(pl, small)
	if got := picture(s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFittingCountsWholePods(t *testing.T) {
	for _, c := range []struct {
		name             string
		own, extra, free []int64
		want             int
	}{
		{"scarcest dimension", []int64{2, 5}, nil, []int64{9, 11}, 2},
		{"extra is taken once", []int64{2}, []int64{5}, []int64{9}, 2},
		{"extra leaves nothing", []int64{0}, []int64{5}, []int64{4}, 0},
		{"no room", []int64{2}, nil, []int64{1}, 0},
		{"overcommitted", []int64{0, 1}, nil, []int64{-1, 5}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := placement.Fitting(c.own, c.extra, c.free); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
