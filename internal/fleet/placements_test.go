package fleet

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// TestCommandPodsReserveRoomAtDestination has a pod on a node that leaves and
// a place for it on another.
func TestCommandPodsReserveRoomAtDestination(t *testing.T) {
	web := model.PodRef{Namespace: "default", Name: "web"}
	for name, c := range map[string]struct {
		to                  string
		evicted             bool
		waiting, cpu, lives int
		nominated           bool
		// others is what other pods and a DaemonSet without a pod yet take of the 300 milli-cores
		// of node-2, half each.
		others int64
		keep   bool
	}{
		"by the node's name":                 {to: "node-2", cpu: 100, nominated: true},
		"by the claim's name":                {to: "general-2", cpu: 100, nominated: true},
		"to a node that is gone":             {to: "node-3", waiting: 1},
		"to a node that leaves":              {to: "node-1", waiting: 1},
		"already evicted":                    {to: "node-2", evicted: true},
		"beside other pods":                  {to: "node-2", others: 200, cpu: 300, nominated: true, lives: 1},
		"to a place that is taken":           {to: "node-2", others: 202, cpu: 202, lives: 1, waiting: 1},
		"to a place that is taken, it stays": {to: "node-2", others: 202, keep: true, cpu: 202, lives: 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := NewStore()
			store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
			for _, i := range []string{"1", "2"} {
				store.Put(&Claim{Name: "general-" + i, Pool: "general", ProviderID: i, NodeName: "node-" + i, Leaving: i == "1"})
				store.Put(&Node{Name: "node-" + i, ProviderID: i, Registered: true, Initialized: true, Ready: true})
			}
			if half := c.others / 2; half > 0 {
				store.Put(&Node{
					Name: "node-2", ProviderID: "2", Registered: true, Initialized: true, Ready: true, Allocatable: Amounts{CPU: 300, Pods: 10},
				})
				store.Put(&Pod{
					Ref: model.PodRef{Namespace: "default", Name: "other"}, Node: "node-2", EvictionCost: 1,
					Spec: &PodSpec{Key: "other", Requests: Amounts{CPU: half, Pods: 1}}, Labels: &Labels{},
				})
				store.Put(&Daemon{Namespace: "default", Name: "agent", Spec: &PodSpec{Key: "agent", Requests: Amounts{CPU: half, Pods: 1}}})
			}
			store.Put(&Pod{
				Ref: web, Node: "node-1", EvictionCost: 1, Terminating: c.evicted,
				Spec: &PodSpec{Key: "web", Requests: Amounts{CPU: 100, Pods: 1}}, Labels: &Labels{},
			})
			in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{Placements: map[model.PodRef]string{web: c.to}, KeepDisplaced: c.keep})
			if err != nil {
				t.Fatal(err)
			}
			home, tenancy := &in.Problem.Nodes[1], &in.Disruption.Usages[1]
			if got := in.Problem.PodCount(); got != c.waiting {
				t.Errorf("%d pods wait, want %d", got, c.waiting)
			}
			if got := home.Used.Get(model.CPU); got != int64(c.cpu) {
				t.Errorf("%s has %d milli-cores taken, want %d", home.Name, got, c.cpu)
			}
			if tenancy.Nominated != c.nominated || len(in.Movable(tenancy.Pods)) != c.lives {
				t.Errorf("%s: nominated %v, residents %v", home.Name, tenancy.Nominated, in.Movable(tenancy.Pods))
			}
		})
	}
}
