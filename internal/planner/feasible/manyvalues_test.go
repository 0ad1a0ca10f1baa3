package feasible

import (
	"fmt"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A label with many values is looked up by lists, which answer as looking at all options does.
func TestLabelWithManyValuesIsAnsweredByLists(t *testing.T) {
	var teams []string
	for i := range 2 * manyValues {
		teams = append(teams, fmt.Sprint("team-", i))
	}
	zone := model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}}
	var classes []model.PodClass
	for _, r := range []model.Requirement{in("team", teams[3]), in("team", teams[5], "none"), in("team", teams...),
		{Key: "team", Operator: model.NotIn, Values: teams[:2]}, {Key: "team", Operator: model.Exists}, {Key: "team", Operator: model.DoesNotExist}} {
		classes = append(classes, requiring(r), requiring(r, zone))
	}
	p := space(classes...).Problem
	p.Pools[0].Requirements[0].Values = teams
	p.Pools = append(p.Pools, model.Pool{Name: "other", NodeLimit: -1})
	s := New(p, nil)
	if len(s.Labels.options.lists) == 0 {
		t.Fatal("no lists")
	}
	for i := range classes {
		set := s.Allowed(ForClass, s.Pod(&p.Classes[i]))
		for o := range s.Options {
			if want := p.Classes[i].NodeRequirements.MatchLabels(labelsOf(s, o)); set.Has(o) != want {
				t.Fatalf("%v on %v: %t", p.Classes[i].NodeRequirements, labelsOf(s, o), set.Has(o))
			}
		}
	}
}
