package provisioning

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// newStatefulPods are so many pods of a StatefulSet that is spread over zones, promised to one
// machine of zone 1. Their volumes are bound in a zone, or not yet where that is empty.
func newStatefulPods(pods int, zone func(i int) string) *nominations {
	n := newNominations(Clients{}, nil, clock.RealClock{}, 100)
	store := fleet.NewStore()
	for i := range pods {
		name := fmt.Sprintf("db-%02d", i)
		claim := &fleet.VolumeClaim{Namespace: "default", Name: name}
		if z := zone(i); z != "" {
			claim.Volume, claim.Bound = name, true
			store.Put(&fleet.Volume{Name: name, Alternatives: []model.Requirements{
				{{Key: model.LabelZone, Operator: model.In, Values: []string{z}}},
			}})
		}
		store.Put(claim)
	}
	for i := range pods {
		pod := spreadPod(fmt.Sprintf("db-%02d", i), "web", corev1.LabelTopologyZone, 1, true)
		pod.OwnerUID, pod.Claims = "db", []string{pod.Ref.Name}
		n.promise(store.Snapshot(), pod, "claim")
	}
	n.arrived("claim", promisedNode("node", "64", "256Gi"), true)
	return n
}

// One whose volume has still to be made would have it made in the zone, for ever, and the one
// whose volume is there would find no other.
func TestPodWhoseVolumeIsInAZoneIsNominatedFirst(t *testing.T) {
	n := newStatefulPods(3, func(i int) string { return []string{"", "", "eastus-1"}[i] })
	if got := namesOf(n.next(10)); !slices.Equal(got, []string{"db-02 to node"}) {
		t.Errorf("nominated are %v, want db-02, which can go to this zone alone", got)
	}
}

func TestPodsWithVolumesInDifferentZonesAreNotAlike(t *testing.T) {
	for name, test := range map[string]struct {
		zone func(i int) string
		want int
	}{
		"no volume yet": {func(int) string { return "" }, 0},
		"one zone":      {func(int) string { return "eastus-1" }, 0},
		"two zones":     {func(i int) string { return fmt.Sprint("eastus-", 1+i%2) }, 1},
		"some have one": {func(i int) string { return []string{"", "eastus-1"}[i%2] }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newStatefulPods(few+1, test.zone).next(100); len(got) != test.want {
				t.Errorf("nominated are %v, want %d", namesOf(got), test.want)
			}
		})
	}
}

// Pods that name a zone and have no rule over zones stand in no other pod's way: the large ones
// have to come first.
func TestZoneOfPodsWithoutRulesOverZonesComesNotFirst(t *testing.T) {
	zone := model.Requirements{{Key: model.LabelZone, Operator: model.In, Values: []string{"eastus-1"}}}
	term := []fleet.Term{{TopologyKey: model.LabelZone}}
	for name, test := range map[string]struct {
		change func(spec *fleet.PodSpec)
		want   string
	}{
		"no rule": {func(*fleet.PodSpec) {}, "large to node"},
		"spread": {func(s *fleet.PodSpec) {
			s.Spread = []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 1, Hard: true, Selector: &model.Selector{}}}
		}, "small to node"},
		"preferred spread": {func(s *fleet.PodSpec) {
			s.Spread = []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 1, Selector: &model.Selector{}}}
		}, "large to node"},
		"affinity":      {func(s *fleet.PodSpec) { s.Affinity = term }, "small to node"},
		"anti-affinity": {func(s *fleet.PodSpec) { s.AntiAffinity = term }, "small to node"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNominations(Clients{}, nil, clock.RealClock{}, 100)
			small := &fleet.PodSpec{Key: "small", Requests: fleet.Amounts{CPU: 100}}
			small.NodeRequirements = zone
			test.change(small)
			for _, spec := range []*fleet.PodSpec{small, {Key: "large", Requests: fleet.Amounts{CPU: 8000}}} {
				pod := &fleet.Pod{Ref: model.PodRef{Namespace: "default", Name: spec.Key}, UID: spec.Key, Spec: spec}
				n.promise(fleet.NewStore().Snapshot(), pod, "claim")
			}
			n.arrived("claim", promisedNode("node", "64", "256Gi"), true)
			if got := namesOf(n.next(1)); !slices.Equal(got, []string{test.want}) {
				t.Errorf("nominated first is %v, want %s", got, test.want)
			}
		})
	}
}
