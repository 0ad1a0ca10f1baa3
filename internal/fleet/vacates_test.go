package fleet

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Pods that will be gone before a machine could be there leave their room to pods that wait. What
// is moved finds only what is free already.
func TestRoomOfPodsThatGoIsForPodsThatWait(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*Pod)
		free   bool
	}{
		"runs":                          {func(p *Pod) {}, false},
		"goes within its grace period":  {func(p *Pod) { p.Terminating, p.Leaving = true, &Leaving{GoneBy: now.Add(30 * time.Second)} }, true},
		"may take its time":             {func(p *Pod) { p.Terminating, p.Leaving = true, &Leaving{GoneBy: now.Add(10 * time.Minute)} }, false},
		"should be gone, any moment":    {func(p *Pod) { p.Terminating, p.Leaving = true, &Leaving{GoneBy: now.Add(-2 * time.Second)} }, true},
		"should be gone for a while":    {func(p *Pod) { p.Terminating, p.Leaving = true, &Leaving{GoneBy: now.Add(-6 * time.Second)} }, false},
		"is a DaemonSet's, others come": {func(p *Pod) { p.Terminating, p.Leaving, p.Daemon = true, &Leaving{GoneBy: now}, true }, false},
		"belongs to its node":           {func(p *Pod) { p.Terminating, p.Leaving, p.Static = true, &Leaving{GoneBy: now}, true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			store := NewStore()
			store.Put(&Node{
				Name: "node", Registered: true, Initialized: true, Ready: true, Allocatable: Amounts{CPU: 1000, Pods: 10},
			})
			p := &Pod{
				Ref: model.PodRef{Namespace: "default", Name: "web"}, Node: "node", EvictionCost: 1, Labels: &Labels{},
				Spec: &PodSpec{Key: "web", Requests: Amounts{CPU: 600, Pods: 1}, PodRules: model.PodRules{HostPorts: []model.HostPort{{Port: 80, Protocol: "TCP"}}}},
			}
			c.change(p)
			store.Put(p)
			opts := Options{Now: now}
			in, err := store.Snapshot().Problem(t.Context(), noCatalogs{}, opts)
			if err != nil {
				t.Fatal(err)
			}
			of := &in.Problem.Nodes[0]
			if free := of.Used.Get(model.CPU) == 0 && of.Used.Get(model.Pods) == 0 && len(of.HostPorts) == 0; free != c.free {
				t.Errorf("for pods that wait it is free %v (%+v), want %v", free, of, c.free)
			}
			if want := map[bool]int{true: 1}[c.free]; of.Vacating != want {
				t.Errorf("%d pods vacate it, want %d", of.Vacating, want)
			}
			moves, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{Options: opts})
			if err != nil {
				t.Fatal(err)
			}
			if of := &moves.Problem.Nodes[0]; of.Used.Get(model.CPU) != 600 {
				t.Errorf("for moves %d milli-cores are taken, want 600", of.Used.Get(model.CPU))
			}
		})
	}
}
