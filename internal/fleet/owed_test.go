package fleet

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Pods on nodes that go draw on their budgets until they have been asked to go. What nothing evicts
// owes nothing, so that it does not hold other nodes for ever.
func TestNodesThatGoOwePodBudgetsEvictions(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	leaves := func(since time.Duration) func(*Claim) {
		return func(c *Claim) { c.Leaving, c.LeavingSince = true, now.Add(-since) }
	}
	stays, one := func(*Claim) {}, map[string]bool{"a": true}
	everything := &PodSpec{Key: "web", PodRules: model.PodRules{Tolerations: []model.Toleration{{Exists: true}}}}
	for name, c := range map[string]struct {
		claim func(*Claim)
		pod   func(*Pod)
		opts  DisruptionOptions
		want  int
	}{
		"stays":                        {claim: stays},
		"in a move under way":          {claim: stays, opts: DisruptionOptions{Disrupting: one}, want: 1},
		"in a move that waits":         {claim: stays, opts: DisruptionOptions{Disrupting: one, Untouched: one}},
		"in the move that is asked":    {claim: leaves(time.Minute), opts: DisruptionOptions{Own: one}},
		"leaves":                       {claim: leaves(time.Minute), want: 1},
		"leaves, and its pod goes":     {claim: leaves(time.Minute), pod: func(p *Pod) { p.Terminating, p.Leaving = true, &Leaving{} }},
		"leaves, and its pod has gone": {claim: leaves(time.Minute), pod: func(p *Pod) { p.Terminal = true }},
		"leaves with a held pod":       {claim: leaves(time.Minute), pod: func(p *Pod) { p.KeepUntil = Forever }},
		"leaves with a tolerant pod":   {claim: leaves(time.Minute), pod: func(p *Pod) { p.Spec = everything }},
		"leaves with a DaemonSet pod":  {claim: leaves(time.Minute), pod: func(p *Pod) { p.Daemon = true }, want: 1},
		"is stuck":                     {claim: leaves(drainStalls)},
		"is slow": {claim: func(c *Claim) {
			leaves(time.Hour)(c)
			c.LastPodEvent = now.Add(-5 * time.Minute)
		}, want: 1},
		"its machine is deleted": {claim: func(c *Claim) {
			leaves(time.Minute)(c)
			c.Terminating = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			store := NewStore()
			for _, node := range []string{"a", "b"} {
				store.Put(&Node{
					Name: node, ProviderID: node, Registered: true, Initialized: true, Ready: true, Allocatable: Amounts{CPU: 1000, Pods: 10},
				})
				claim := &Claim{Name: "general-" + node, Pool: "general", ProviderID: node, NodeName: node}
				pod := &Pod{
					Ref: model.PodRef{Namespace: "default", Name: "web-" + node}, Node: node, EvictionCost: 1, Labels: &Labels{}, Spec: &PodSpec{Key: "web"},
				}
				if node == "a" {
					c.claim(claim)
					if c.pod != nil {
						c.pod(pod)
					}
				}
				store.Put(claim)
				store.Put(pod)
			}
			store.Put(&Pool{Name: "general"})
			store.Put(&Budget{Namespace: "default", Name: "web", Selector: &model.Selector{}, Allowed: 1})
			c.opts.Now = now
			in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			if len(in.Disruption.Budgets) != 1 || in.Disruption.Budgets[0].Allowed != 1 || in.Disruption.Budgets[0].Owed != c.want {
				t.Errorf("the budgets are %+v, want one that allows one eviction of which %d are owed", in.Disruption.Budgets, c.want)
			}
		})
	}
}
