package fleet

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// TestLeavingNodesSayWhatBlocksThem: a node that leaves is billed until it is gone.
func TestLeavingNodesSayWhatBlocksThem(t *testing.T) {
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	ref := model.PodRef{Namespace: "shop", Name: "web"}
	budget := func(allowed int32, blocking bool) *Budget {
		return &Budget{Namespace: "shop", Name: "pdb", Selector: &model.Selector{}, Allowed: allowed, Blocking: blocking}
	}
	ignored := &Pod{
		Ref: model.PodRef{Namespace: "shop", Name: "agent"}, Node: "a", KeepUntil: Forever, Daemon: true, Labels: &Labels{},
		Spec: &PodSpec{PodRules: model.PodRules{Tolerations: []model.Toleration{{Exists: true}}}},
	}
	ends := func(name string, in time.Duration) *Pod {
		return &Pod{
			Ref: model.PodRef{Namespace: "shop", Name: name}, Node: "a", KeepUntil: Forever, Labels: &Labels{}, Spec: &PodSpec{},
			Terminating: true, Leaving: &Leaving{GoneBy: now.Add(in)},
		}
	}
	for name, tt := range map[string]struct {
		claim Claim
		since time.Duration // an hour unless given
		keep  time.Time
		pdbs  []*Budget
		pods  []*Pod
		want  string
	}{
		"nothing is in the way":                  {want: ""},
		"annotated pod":                          {keep: Forever, want: "pod shop/web must not be disrupted (karpenter.sh/do-not-disrupt)"},
		"annotation that ended":                  {keep: now.Add(-time.Minute), want: ""},
		"annotation that ends":                   {keep: now.Add(time.Minute), want: "pod shop/web must not be disrupted before 2026-11-25T08:01:00Z"},
		"budget that never does":                 {pdbs: []*Budget{budget(0, true)}, want: "PodDisruptionBudget shop/pdb never allows an eviction of pod shop/web"},
		"budget without room":                    {pdbs: []*Budget{budget(0, false)}, want: "PodDisruptionBudget shop/pdb allows no eviction of pod shop/web now"},
		"budget with room":                       {pdbs: []*Budget{budget(1, false)}, want: ""},
		"volumes":                                {claim: Claim{Detaching: true, DetachingSince: now.Add(-usuallyWithin)}, want: "waits for its VolumeAttachments to be gone"},
		"volumes that take no longer than usual": {claim: Claim{Detaching: true, DetachingSince: now.Add(-usuallyWithin + time.Second)}, want: ""},
		"budget without room for a moment":       {since: usuallyWithin - time.Second, pdbs: []*Budget{budget(0, false)}, want: ""},
		"budget without room since usual":        {since: usuallyWithin, pdbs: []*Budget{budget(0, false)}, want: "allows no eviction of pod shop/web now"},
		"budget that never does, at once":        {since: time.Second, pdbs: []*Budget{budget(0, true)}, want: "never allows an eviction of pod shop/web"},
		"two budgets, at once": {
			since: time.Second, pdbs: []*Budget{budget(1, false), {Namespace: "shop", Name: "other", Selector: &model.Selector{}, Allowed: 1}},
			want: "speak of pod shop/web, which the eviction API refuses",
		},
		"machine is deleted":         {claim: Claim{Terminating: true}, keep: Forever, want: ""},
		"pod that the drain ignores": {pods: []*Pod{ignored}, want: ""},
		"pod that the drain ignores before one that it waits for": {
			pods: []*Pod{ignored}, keep: Forever, want: "pod shop/web must not be disrupted",
		},
		"pod past its time": {
			pods: []*Pod{ends("db", -overdue-time.Second), ends("agent", -stuckAfter)},
			want: "pod shop/db had until 2026-11-25T07:59:54Z to end and is still there: its finalizers or the kubelet hold it",
		},
		"pod past its time, and one that takes longer": {pods: []*Pod{ends("db", -time.Minute), ends("queue", time.Hour)}, want: ""},
		"annotated pod beside one that ends": {
			pods: []*Pod{ends("db", time.Hour)}, keep: Forever,
			want: "pod shop/web must not be disrupted",
		},
		"drain that ends by time": {claim: Claim{GracePeriod: true}, keep: Forever, want: "its terminationGracePeriod ends that by force"},
	} {
		store := NewStore()
		claim := tt.claim
		claim.Name, claim.NodeName, claim.Leaving, claim.LeavingSince = "general-a", "a", true, now.Add(-cmp.Or(tt.since, time.Hour))
		store.Put(&claim)
		claim.Command = &Command{ID: "xyz"}
		store.Put(&Claim{Name: "general-b", NodeName: "b"})
		store.Put(&Node{Name: "a"})
		store.Put(&Pod{Ref: ref, Node: "a", KeepUntil: tt.keep, Labels: &Labels{}, Spec: &PodSpec{}})
		for _, b := range tt.pdbs {
			store.Put(b)
		}
		for _, p := range tt.pods {
			store.Put(p)
		}
		got := store.Snapshot().LeavingNodes(now)
		if len(got) != 1 || got[0].Claim != "general-a" || got[0].Command != "xyz" || tt.want == "" && got[0].Blocks != "" || !strings.Contains(got[0].Blocks, tt.want) ||
			(got[0].Blocks == "") != (got[0].Fix == "") {
			t.Errorf("%s: %+v, want one that is blocked by %q", name, got, tt.want)
		}
		passes := name == "budget without room for a moment" || strings.HasSuffix(name, "takes longer")
		if (got[0].Waits != "") != passes || passes && (len(got[0].Evicting) != 1 || got[0].Evicting[0] != ref) {
			t.Errorf("%s: it waits for %q with %v to evict", name, got[0].Waits, got[0].Evicting)
		}
	}
}

// TestLeavingNodesNamePodsThatAreTerminating: a drain waits for them until a minute after their time.
func TestLeavingNodesNamePodsThatAreTerminating(t *testing.T) {
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	const waits = "it waits for pod shop/db, which is terminating and has until "
	for name, tt := range map[string]struct {
		change        func(*Pod)
		in            time.Duration
		waits, blocks string
	}{
		"time left":                {in: time.Hour, waits: waits + "2026-11-25T09:00:00Z to end"},
		"listed a moment longer":   {in: -overdue, waits: waits + "2026-11-25T07:59:55Z to end"},
		"time over":                {in: -overdue - time.Second, blocks: "pod shop/db had until 2026-11-25T07:59:54Z to end"},
		"last moment":              {in: -stuckAfter, blocks: "pod shop/db had until 2026-11-25T07:59:00Z to end"},
		"stuck":                    {in: -stuckAfter - time.Second},
		"it has ended":             {in: time.Hour, change: func(p *Pod) { p.Terminal = true }},
		"it belongs to its node":   {in: time.Hour, change: func(p *Pod) { p.Static = true }},
		"it tolerates the taint":   {in: time.Hour, change: func(p *Pod) { p.Spec.Tolerations = []model.Toleration{{Exists: true}} }},
		"it runs on another node":  {in: time.Hour, change: func(p *Pod) { p.Node = "b" }},
		"it must not be disrupted": {in: time.Hour, change: func(p *Pod) { p.KeepUntil = Forever }, waits: waits},
	} {
		pod := &Pod{
			Ref: model.PodRef{Namespace: "shop", Name: "db"}, Node: "a", Labels: &Labels{}, Spec: &PodSpec{},
			Terminating: true, Leaving: &Leaving{GoneBy: now.Add(tt.in)},
		}
		if tt.change != nil {
			tt.change(pod)
		}
		store := NewStore()
		store.Put(&Claim{Name: "general-a", NodeName: "a", Leaving: true, LeavingSince: now.Add(-time.Minute), GracePeriod: true})
		store.Put(&Node{Name: "a"})
		store.Put(pod)
		n := store.Snapshot().LeavingNodes(now)[0]
		holds := tt.waits != "" || tt.blocks != ""
		if !strings.HasPrefix(n.Waits, tt.waits) || !strings.HasPrefix(n.Blocks, tt.blocks) || (n.Waits != "") != (tt.waits != "") ||
			(n.Blocks != "") != (tt.blocks != "") || n.Overdue != (tt.blocks != "") ||
			strings.Contains(n.Blocks, "by force") || (len(n.Ending) == 1) != holds || len(n.Evicting) > 0 {
			t.Errorf("%s: %+v, want that it waits for %q or is blocked by %q", name, n, tt.waits, tt.blocks)
		}
	}
}
