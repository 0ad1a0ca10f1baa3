package fleet

import (
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

func TestNominatedPodsWithoutRoomAreOverbooked(t *testing.T) {
	gpu := Amounts{CPU: 100, Pods: 1}
	gpu.Set("nvidia.com/gpu", 1)
	pod := func(name string, cpu int64, node, nominated string) *Pod {
		return &Pod{
			Ref: model.PodRef{Namespace: "default", Name: name}, UID: name, Node: node, Nominated: nominated, Wanted: node == "",
			Spec: &PodSpec{Requests: Amounts{CPU: cpu, Memory: 1 << 30, Pods: 1}},
		}
	}
	node := func(name string, initialized bool) *Node {
		return &Node{Name: name, Initialized: initialized, Allocatable: Amounts{CPU: 4000, Memory: 16 << 30, Pods: 110}}
	}
	device := pod("device", 0, "", "ready")
	device.Spec = &PodSpec{Requests: gpu}
	finished := pod("finished", 4000, "ready", "")
	finished.Terminal = true
	s := &Snapshot{nodes: map[string]*Node{"ready": node("ready", true), "starting": node("starting", false)}, pods: map[model.PodRef]*Pod{}}
	for _, p := range []*Pod{
		pod("bound", 1500, "ready", ""), finished, device,
		pod("large", 2000, "", "ready"), // 500 are left
		pod("half", 600, "", "ready"),
		pod("small", 400, "", "ready"),
		pod("waits", 8000, "", "starting"), // its node may still report more
		pod("lost", 1000, "", "gone"),
	} {
		s.pods[p.Ref] = p
	}
	var got []string
	for _, p := range s.Overbooked() {
		got = append(got, p.Ref.Name)
	}
	if want := []string{"device", "half"}; !slices.Equal(got, want) {
		t.Errorf("overbooked are %v, want %v", got, want)
	}
	s.pods = map[model.PodRef]*Pod{}
	if got := s.Overbooked(); got != nil {
		t.Errorf("overbooked without pods are %v", got)
	}
}
