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
		passes := name == "budget without room for a moment"
		if (got[0].Waits != "") != passes || passes && (len(got[0].Evicting) != 1 || got[0].Evicting[0] != ref) {
			t.Errorf("%s: it waits for %q with %v to evict", name, got[0].Waits, got[0].Evicting)
		}
	}
}
