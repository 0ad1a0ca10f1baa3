package fleet

import (
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

func TestZonesThatVolumesAndAffinityLeaveToAPod(t *testing.T) {
	in := func(zones ...string) model.Requirements {
		return model.Requirements{{Key: model.LabelZone, Operator: model.In, Values: zones}}
	}
	either := func(alternatives ...model.Requirements) model.PodRules {
		return model.PodRules{NodeAlternatives: alternatives}
	}
	arm := model.Requirements{{Key: "kubernetes.io/arch", Operator: model.In, Values: []string{"arm64"}}}
	s := &Snapshot{
		vclaims: map[objectKey]*VolumeClaim{
			{"default", "one"}: {Volume: "one"}, {"default", "two"}: {Volume: "two"}, {"default", "any"}: {Volume: "any"}, {"default", "new"}: {},
		},
		volumes: map[string]*Volume{
			"one": {Alternatives: []model.Requirements{in("eastus-1")}},
			"two": {Alternatives: []model.Requirements{in("eastus-2"), in("eastus-1")}},
			"any": {},
		},
	}
	for name, test := range map[string]struct {
		claims []string
		rules  model.PodRules
		// volumes are the zones that volumes leave, all those that affinity leaves, too.
		volumes, all []string
	}{
		"nothing bound":     {claims: []string{"new", "any", "missing"}},
		"a volume":          {claims: []string{"new", "one"}, volumes: []string{"eastus-1"}, all: []string{"eastus-1"}},
		"of two zones":      {claims: []string{"two"}, volumes: []string{"eastus-1", "eastus-2"}, all: []string{"eastus-1", "eastus-2"}},
		"two volumes":       {claims: []string{"two", "one"}, volumes: []string{"eastus-1"}, all: []string{"eastus-1"}},
		"a selector":        {rules: model.PodRules{NodeRequirements: in("eastus-3")}, all: []string{"eastus-3"}},
		"affinity":          {rules: either(in("eastus-3"), in("eastus-2")), all: []string{"eastus-2", "eastus-3"}},
		"one names no zone": {rules: either(in("eastus-3"), arm)},
		"a volume and a choice": {
			claims: []string{"two"}, rules: model.PodRules{NodeRequirements: in("eastus-2", "eastus-3")},
			volumes: []string{"eastus-1", "eastus-2"}, all: []string{"eastus-2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Pod{Ref: model.PodRef{Namespace: "default", Name: "p"}, Claims: test.claims, Spec: &PodSpec{PodRules: test.rules}}
			if got := VolumeZones(s, p); !slices.Equal(got, test.volumes) {
				t.Errorf("volumes leave %v, want %v", got, test.volumes)
			}
			if got := Zones(p.Spec, test.volumes); !slices.Equal(got, test.all) {
				t.Errorf("volumes and affinity leave %v, want %v", got, test.all)
			}
		})
	}
}
