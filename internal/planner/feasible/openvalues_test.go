package feasible

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
)

// valuesOf are the values of a label of the options of a problem with one size and one
// offering, in order.
func valuesOf(key string, pool model.Pool, classes ...model.PodClass) []string {
	s := New(&model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
			Name: "a", Capacity: model.Resources{2000, 8, 0, 10}, Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Available: true}},
		}}}},
		Pools: []model.Pool{pool}, Classes: classes,
	}, nil)
	var out []string
	for o := range s.Options {
		out = append(out, labelsOf(s, o)[key])
	}
	slices.Sort(out)
	return out
}

// A NodePool's own label has those values that make a difference to pods.
func TestOpenLabelHasTheValuesThatMatter(t *testing.T) {
	exists := named("p", model.Requirement{Key: "team", Operator: model.Exists})
	many := named("p", in("team", "a", "b", "c", "d"))
	numbers := named("p", in("team", "1", "2", "3"))
	counted := many
	counted.Requirements = slices.Clone(many.Requirements)
	counted.Requirements[1].MinValues = 2
	spread := asking()
	spread.Spread = []model.SpreadConstraint{{TopologyKey: "team", MaxSkew: 1, Hard: true}}
	for name, c := range map[string]struct {
		pool    model.Pool
		classes []model.PodClass
		want    []string
	}{
		"pods name none":                  {many, []model.PodClass{asking()}, []string{"a"}},
		"pods name one":                   {many, []model.PodClass{asking(in("team", "c"))}, []string{"c"}},
		"pods name two":                   {many, []model.PodClass{asking(in("team", "c")), asking(in("team", "d"))}, []string{"c", "d"}},
		"some pods name one":              {many, []model.PodClass{asking(in("team", "c")), asking()}, []string{"a", "c"}},
		"pods name what is not there":     {many, []model.PodClass{asking(in("team", "z"))}, []string{"a"}},
		"pods exclude one":                {many, []model.PodClass{asking(model.Requirement{Key: "team", Operator: model.NotIn, Values: []string{"a"}})}, []string{"b"}},
		"pods compare values":             {numbers, []model.PodClass{asking(model.Requirement{Key: "team", Operator: model.Gt, Values: []string{"1"}})}, []string{"1", "2", "3"}},
		"minValues":                       {counted, []model.PodClass{asking()}, []string{"a", "b", "c", "d"}},
		"pods spread over values":         {many, []model.PodClass{spread}, []string{"a", "b", "c", "d"}},
		"any value, pods name one":        {exists, []model.PodClass{asking(in("team", "c"))}, []string{"c"}},
		"any value, some pods name one":   {exists, []model.PodClass{asking(in("team", "c")), asking()}, []string{valueAny, "c"}},
		"any value, pods ask for another": {exists, []model.PodClass{asking(model.Requirement{Key: "team", Operator: model.NotIn, Values: []string{"c"}})}, []string{valueAny}},
	} {
		if got := valuesOf("team", c.pool, c.classes...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A NodePool that counts values of a label leaves one before it its own.
func TestValuesAreCountedForAllNodePools(t *testing.T) {
	first, second := named("first", in("team", "a", "b")), named("second", in("team", "c"))
	second.Requirements[1].MinValues = 1
	s := New(&model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
			Name: "a", Capacity: model.Resources{2000, 8, 0, 10}, Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Available: true}},
		}}}},
		Pools: []model.Pool{first, second}, Classes: []model.PodClass{asking()},
	}, nil)
	if len(s.Options) != 3 {
		t.Errorf("%d options, want one for each value", len(s.Options))
	}
}

// However many values pods name, each class has a machine.
func TestEveryClassHasItsValueOfOpenLabels(t *testing.T) {
	exists := func(key string) model.Requirement { return model.Requirement{Key: key, Operator: model.Exists} }
	var classes []model.PodClass
	for team := range 40 {
		for env := range 10 {
			classes = append(classes, asking(in("team", fmt.Sprint(team)), in("env", fmt.Sprint("e", env))))
		}
	}
	classes = append(classes, asking(), asking(in("env", "e3")))
	s := New(&model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
			Name: "a", Choices: map[string][]string{"disk": {"fast", "slow"}}, Capacity: model.Resources{2000, 8, 0, 10},
			Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Available: true}},
		}}}},
		Pools: []model.Pool{named("p", exists("team"), exists("env"))}, Classes: append(classes, asking(in("disk", "slow"))),
	}, nil)
	for i := range s.Problem.Classes {
		c := &s.Problem.Classes[i]
		if set := s.Labels.OptionsMeeting(NodeAffinityOf(c)); !set.Any() {
			t.Errorf("class %d has no option: %s", i, c.NodeRequirements)
		}
	}
	if n := len(s.Options); n < maxChoices || n > len(s.Problem.Classes) {
		t.Errorf("%d options for %d classes", n, len(s.Problem.Classes))
	}
}

// Whatever NodePools and pods say of a label of a NodePool's own, compare it with numbers and
// make exceptions: a class that some value would suit has an option with one that does.
func TestOpenLabelHasAValueForEveryClassThatOneSuits(t *testing.T) {
	const key, most = "gen", 12
	requirement := func(rt *rapid.T) model.Requirement {
		r := model.Requirement{Key: key, Operator: rapid.SampledFrom([]model.Operator{
			model.In, model.NotIn, model.Exists, model.Gt, model.Gte, model.Lt, model.Lte,
		}).Draw(rt, "operator")}
		values := 1
		switch r.Operator {
		case model.Exists:
			values = 0
		case model.In, model.NotIn:
			values = rapid.IntRange(1, 3).Draw(rt, "values")
		default: // the others take one value
		}
		for range values {
			r.Values = append(r.Values, strconv.Itoa(rapid.IntRange(0, most).Draw(rt, "value")))
		}
		return r
	}
	suited := 0
	rapid.Check(t, func(rt *rapid.T) {
		some := func(what string) model.Requirements {
			return rapid.SliceOfN(rapid.Custom(requirement), 1, 3).Draw(rt, what)
		}
		pool := named("p", some("pool")...)
		var classes []model.PodClass
		for range rapid.IntRange(1, 3).Draw(rt, "classes") {
			classes = append(classes, asking(some("class")...))
		}
		meets := func(value string, lists ...model.Requirements) bool {
			return !slices.ContainsFunc(slices.Concat(lists...), func(r model.Requirement) bool {
				return r.Key == key && !r.Matches(value, value != "") // an option without the label has ""
			})
		}
		values := valuesOf(key, pool, classes...)
		for i := range classes {
			one := -1
			for n := range most + 3 {
				if meets(strconv.Itoa(n), pool.Requirements, classes[i].NodeRequirements) {
					one = n
					break
				}
			}
			if one < 0 {
				continue
			}
			suited++
			if !slices.ContainsFunc(values, func(v string) bool { return meets(v, pool.Requirements, classes[i].NodeRequirements) }) {
				rt.Fatalf("value %d suits class %d, and the options have %q", one, i, values)
			}
		}
	})
	if suited == 0 {
		t.Error("no class was suited by any value")
	}
}
