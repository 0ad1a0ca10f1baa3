package instance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Followers are what a look at every class finds: a chain of apps in which each has to be near the
// one before, every third in its zone, with one class that has to be near one of three and one that
// only prefers it.
func TestFollowersAreClassesNearOnHosts(t *testing.T) {
	near := func(key string, apps ...string) model.AffinityTerm {
		selector := &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: apps}}}
		return model.AffinityTerm{TopologyKey: key, Selector: selector, Namespaces: []string{"default"}}
	}
	p := &model.Problem{Axes: model.NewAxes(), Pools: []model.Pool{{Name: "default", NodeLimit: -1}}}
	add := func(app string, terms ...model.AffinityTerm) {
		c := model.PodClass{Owner: app, Requests: model.Resources{100, 100, 0, 1}, Pods: make([]model.PodRef, 2), Affinity: terms}
		c.Namespace, c.Labels = "default", map[string]string{"app": app}
		p.Classes = append(p.Classes, c)
	}
	add("d0")
	for i := 1; i < 9; i++ {
		key := model.LabelHostname
		if i%3 == 0 {
			key = model.LabelZone
		}
		add(fmt.Sprint("d", i), near(key, fmt.Sprint("d", i-1)))
	}
	add("any", near(model.LabelHostname, "d0", "d5", "any"))
	add("prefers")
	p.Classes[10].Preferences = []model.AffinityPreference{{Weight: 1, Term: near(model.LabelHostname, "d0")}}
	in := New(feasible.New(p, nil))
	want := [][]int{{1, 9, 10}, {2}, nil, {4}, {5}, {9}, {7}, {8}, nil, {9}, nil}
	for i := range in.Classes {
		if got := in.Followers(i); !slices.Equal(got, want[i]) {
			t.Errorf("%s is followed by %v, want %v", in.Classes[i].Spec.Owner, got, want[i])
		}
	}
}
