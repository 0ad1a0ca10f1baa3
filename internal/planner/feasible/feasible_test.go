package feasible

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

func TestLevelsKeepOptionsWithEnoughResources(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var options []int64 // what each has
		var grouped runBuilder
		for range rapid.IntRange(1, 300).Draw(rt, "runs") {
			net := int64(rapid.IntRange(0, 99).Draw(rt, "net"))
			for i := range rapid.IntRange(1, 9).Draw(rt, "options") {
				run := grouped.add(len(options), []int64{net}, i == 0)
				if r := grouped.runs[run]; r.Net[0] != net || r.End != len(options)+1 {
					rt.Fatalf("option %d with %d is in run %v", len(options), net, r)
				}
				options = append(options, net)
			}
		}
		x := newCapacityIndex(grouped.runs, 1)
		from := rapid.IntRange(0, len(x.Runs)-1).Draw(rt, "from")
		first := x.Runs[from].First
		l := x.NewLevels(0, first, len(options))
		amount := int64(rapid.IntRange(0, 101).Draw(rt, "amount"))
		for range rapid.IntRange(0, 2*fewQuestions).Draw(rt, "questions before") {
			l.Keep(bitset.Full(len(options))[l.From:], amount)
		}
		kept := bitset.New(len(options))
		kept.AddRange(first, len(options))
		l.Keep(kept[l.From:], amount)
		for range rapid.IntRange(0, 2*fewQuestions).Draw(rt, "questions of all before") {
			x.keepAtLeast(bitset.Full(len(options)), 0, amount)
		}
		all := bitset.Full(len(options))
		x.keepAtLeast(all, 0, amount)
		for o := range options {
			enough := options[o] >= amount
			if kept.Has(o) != (enough && o >= first) || all.Has(o) != enough {
				rt.Fatalf("option %d with %d of %d asked: kept %t and %t", o, options[o], amount, kept.Has(o), all.Has(o))
			}
		}
	})
}

// space is a problem with two types in two zones, one of which lets the buyer
// choose a label, and a pool with a label of its own.
func space(classes ...model.PodClass) *Space {
	offerings := []model.Offering{
		{Zone: "z1", CapacityType: model.OnDemand, Price: 10, Available: true},
		{Zone: "z2", CapacityType: model.Spot, Price: 4, Available: true, Labels: map[string]string{"tier": "low"}},
	}
	return New(&model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{
			{Name: "a", Labels: map[string]string{"gen": "3"}, Capacity: model.Resources{2000, 8, 0, 10}, Offerings: offerings},
			{Name: "b", Labels: map[string]string{"gen": "5"}, Choices: map[string][]string{"ultra": {"true", "false"}}, Capacity: model.Resources{4000, 16, 0, 10}, Offerings: offerings},
		}}},
		Pools: []model.Pool{{
			Name: "p", NodeLimit: -1,
			Requirements: model.Requirements{{Key: "team", Operator: model.In, Values: []string{"x", "y"}}},
			Daemons: []model.Daemon{{
				Name: "agent", Requests: model.Resources{500, 1, 0, 1},
				Requirements: []model.Requirements{{{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}}}},
			}},
		}},
		Classes: classes,
	}, nil)
}

// requiring is a class with a nodeSelector.
func requiring(rs ...model.Requirement) model.PodClass {
	return model.PodClass{PodRules: model.PodRules{NodeRequirements: rs}}
}

// labelsOf spells an option's labels out again.
func labelsOf(s *Space, o int) map[string]string {
	out := map[string]string{}
	for k, key := range s.Labels.Keys() {
		if v := s.Labels.OptionValue(k, o); v != Absent {
			out[key] = s.Labels.dicts[k].names[v]
		}
	}
	return out
}

func TestSpaceMatchesAgreeWithFullLabels(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var rs model.Requirements
		for range rapid.IntRange(1, 3).Draw(rt, "count") {
			r := model.Requirement{
				Key:      rapid.SampledFrom([]string{"gen", "ultra", "team", "tier", "none", model.LabelZone, model.LabelCapacityType, model.LabelHostname}).Draw(rt, "key"),
				Operator: rapid.SampledFrom(model.Operators()).Draw(rt, "operator"),
			}
			switch r.Operator {
			case model.In, model.NotIn:
				r.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"3", "5", "true", "x", "y", "z1", "spot", "low"}), 1, 2).Draw(rt, "values")
			case model.Gt, model.Gte, model.Lt, model.Lte:
				r.Values = []string{rapid.SampledFrom([]string{"3", "4", "5"}).Draw(rt, "bound")}
			}
			rs = append(rs, r)
		}
		s := space(requiring(rs...))
		set := s.Labels.Matching(rs)
		for o := range s.Options {
			if want := rs.MatchLabels(labelsOf(s, o)); set.Has(o) != want {
				rt.Fatalf("%s on %v: got %v", rs, labelsOf(s, o), set.Has(o))
			}
		}
	})
}

func TestSpaceOptionsHaveNoOpenLabel(t *testing.T) {
	s := space(requiring(model.Requirement{Key: "ultra", Operator: model.Exists}, in("team", "x", "y")))
	// a: 2 offerings x 2 teams; b: 2 offerings x 2 teams x 2 values of ultra.
	if len(s.Options) != 4+8 {
		t.Errorf("got %d options, want 12", len(s.Options))
	}
}

func TestSpaceSubtractsDaemonsWhereTheyRun(t *testing.T) {
	s := space()
	for o := range s.Options {
		instanceType, offering := s.Offering(o)
		want := instanceType.Capacity[model.CPU]
		if offering.Zone == "z1" {
			want -= 500
		}
		if got := s.Net(o)[model.CPU]; got != want {
			t.Errorf("option %d in %s: got %d free, want %d", o, offering.Zone, got, want)
		}
	}
}

func TestConstraintChecksAgreeWithMasks(t *testing.T) {
	c := requiring(model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}})
	c.Requests = model.Resources{3000, 1, 0, 1}
	s := space(c)
	pod := s.Pod(&c)
	want := s.Allowed(ForClass, pod)
	want.And(s.Allowed(ForSize, pod))
	want.And(s.Supply.Available)
	got := bitset.Full(len(s.Options))
	for _, check := range s.Checks(pod, s.NewLedger()) {
		if check.Pass != nil {
			got.And(check.Pass)
		}
	}
	if !slices.Equal(got, want) || !got.Any() {
		t.Errorf("got %v, want %v", slices.Collect(got.All), slices.Collect(want.All))
	}
}

// TestReadingASpaceFromManyGoroutines is for the race detector, also with requirements
// that the problem does not have.
func TestReadingASpaceFromManyGoroutines(t *testing.T) {
	c := requiring(model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}})
	c.Requests = model.Resources{3000, 1, 0, 1}
	s := space(c)
	other := requiring(model.Requirement{Key: "gen", Operator: model.NotIn, Values: []string{"4"}}, c.NodeRequirements[0])
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, class := range []*model.PodClass{&c, &other} {
				pod := s.Pod(class)
				for _, check := range s.Checks(pod, s.NewLedger()) {
					for o := range s.Options {
						if check.Pass != nil && !check.Pass.Has(o) {
							check.Figures(o)
						}
					}
				}
				s.AllowedNodes(pod)
			}
		})
	}
	group.Wait()
}

// Options that take the same of the limits of a NodePool share one list, however many there are.
func TestOptionsThatTakeTheSameShareIt(t *testing.T) {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: make([]model.Catalog, 1)}
	for _, cores := range []int64{2, 4} {
		for _, family := range []string{"d", "e"} {
			size := model.InstanceType{Name: fmt.Sprint(family, cores), Capacity: model.Resources{cores * 1000, cores << 30, 0, 110}}
			for _, zone := range []string{"z1", "z2", "z3"} {
				size.Offerings = append(size.Offerings, model.Offering{Zone: zone, CapacityType: model.OnDemand, Price: 1, Available: true})
			}
			p.Catalogs[0].InstanceTypes = append(p.Catalogs[0].InstanceTypes, size)
		}
	}
	for _, name := range []string{"a", "b"} {
		p.Pools = append(p.Pools, model.Pool{Name: name, NodeLimit: -1, Limits: []model.Limit{{Axis: model.CPU, Value: 8_000}}})
	}
	s := New(p, nil)
	if got := len(s.Supply.uses); got != 1+2*2 {
		t.Errorf("%d options have %d lists of what they take, want two for each NodePool and an empty one", len(s.Options), got)
	}
	for o := range s.Options {
		uses := s.Uses(o)
		if it, _ := s.Offering(o); len(uses) != 1 || uses[0].Amount != it.Capacity.Get(model.CPU) {
			t.Errorf("%s takes %v", it.Name, uses)
		}
	}
}
