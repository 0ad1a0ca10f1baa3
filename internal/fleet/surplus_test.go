package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// In a rollout the pods of the new ReplicaSet that are still to come take the room of those of the
// old ones that are about to go.
func TestPodsThatGoMakeRoomForTheirSuccessors(t *testing.T) {
	now := time.Unix(1000, 0)
	store := NewStore()
	labels := &Labels{}
	store.Put(&Node{Name: "node"})
	pods := func(set string, n int, cpu int64, change func(*Pod)) {
		spec := &PodSpec{Requests: Amounts{CPU: cpu}}
		spec.SetKey()
		for i := range n {
			name := fmt.Sprintf("%s-%d", set, i)
			p := &Pod{
				Ref: model.PodRef{Namespace: "default", Name: name}, UID: name, Spec: spec, Labels: labels, Node: "node",
				Owner: Owner{Kind: "Deployment", Name: "web"}, OwnerUID: set, Pattern: true, Created: now,
			}
			change(p)
			store.Put(p)
		}
	}
	wants := func(set string, n int) {
		store.Put(&Workload{UID: set, Namespace: "default", Name: set, Since: now, Pods: n})
	}
	step := func(what string, want int) {
		t.Helper()
		if got, _ := store.Snapshot().announced(now); len(got) != want {
			t.Errorf("%s: %d pods are announced, want %d", what, len(got), want)
		}
	}
	waits := func(p *Pod) { p.Node = "" }
	pods("old", 6, 500, func(*Pod) {})
	pods("new", 1, 500, waits)
	wants("old", 6)
	wants("new", 10)
	step("the old ones stay", 9)
	wants("old", 4)
	step("two of the old ones are about to go", 7)
	wants("old", 0)
	step("all of them are", 3)
	pods("old", 2, 500, func(p *Pod) { p.Terminating = true })
	step("two of them go, and plans count their room by themselves", 5)
	pods("old", 2, 500, waits)
	step("two of them have no node and leave no room", 5)
	pods("new", 1, 600, waits)
	step("the new ones ask for more", 9)
	pods("new", 1, 400, waits)
	step("the new ones ask for less, and something else may keep them off", 9)
	pods("new", 1, 500, func(p *Pod) { p.Node, p.Owner.Name = "", "other" })
	step("the new ones are of another Deployment", 9)
	pods("new", 1, 500, waits)
	for what, node := range map[string]Node{
		"is cordoned":   {Taints: []model.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: model.NoSchedule}}},
		"is deleted":    {Deleting: true},
		"is taken back": {Evicted: true},
		"is disrupted":  {Disrupted: true},
	} {
		node.Name = "node"
		store.Put(&node)
		step("the node "+what, 9)
	}
	store.Put(&Node{Name: "node"})
	wants("new", 3)
	step("there is more room than they need", 0)
	pods("old", 6, 500, func(p *Pod) { p.Terminal = true })
	step("all of the old ones have ended", 2)
}
