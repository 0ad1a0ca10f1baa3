package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// However many pods workloads want, no more are announced than are created soon.
func TestAnnouncedPodsAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	store := NewStore()
	spec, labels := &PodSpec{Requests: Amounts{CPU: 500}}, &Labels{}
	spec.SetKey()
	for i := range mostAnnounced/mostAhead + 2 {
		uid := fmt.Sprintf("rs-%02d", i)
		store.Put(&Workload{UID: uid, Namespace: "default", Name: uid, Pods: 1_000_000, Since: now})
		store.Put(&Pod{
			Ref: model.PodRef{Namespace: "default", Name: uid + "-a"}, UID: uid + "-a", Spec: spec, Labels: labels,
			OwnerUID: uid, Pattern: true, Created: now,
		})
	}
	pods, _ := store.Snapshot().announced(now)
	of := map[string]int{}
	for _, p := range pods {
		of[p.OwnerUID]++
	}
	if len(pods) != mostAnnounced || len(of) != mostAnnounced/mostAhead || of["rs-00"] != mostAhead {
		t.Errorf("%d pods of %d workloads are announced, %d of the first", len(pods), len(of), of["rs-00"])
	}
}

func TestAnnouncedPodsAreWhatOwnersStillCreate(t *testing.T) {
	now := time.Unix(1000, 0)
	store := NewStore()
	spec, labels := &PodSpec{Requests: Amounts{CPU: 500}}, &Labels{}
	spec.SetKey()
	pod := func(name string, age time.Duration, change func(*Pod)) {
		p := &Pod{
			Ref: model.PodRef{Namespace: "default", Name: name}, UID: name, Spec: spec, Labels: labels,
			Owner: Owner{Kind: "Deployment", Name: "web"}, OwnerUID: "rs", Pattern: true, Created: now.Add(-age),
		}
		change(p)
		store.Put(p)
	}
	first := 0
	step := func(what string, want, living int) {
		t.Helper()
		pods, had := store.Snapshot().announced(now)
		if len(pods) != want || had["rs"] != living {
			t.Errorf("%s: %d pods are announced beside %d, want %d beside %d", what, len(pods), had["rs"], want, living)
		}
		if store.Announcing(now)["rs"] != (want > 0) {
			t.Errorf("%s: announcing is %v", what, want <= 0)
		}
		for i, p := range pods {
			if p.Node != "" || !p.Wanted || !p.Unjudged || p.Announced != i+1 || p.UID != fmt.Sprintf("rs#%d", first+i) || p.Spec != spec {
				t.Errorf("%s: got pod %+v", what, p)
			}
		}
	}
	store.Put(&Workload{UID: "rs", Namespace: "default", Name: "web-1", Since: now, Pods: 10})
	step("no pod shows what they are like", 0, 0)
	pod("a", time.Second, func(p *Pod) { p.Node = "node" })
	step("the first pod is there", 9, 1)
	pod("b", 0, func(*Pod) {})
	step("the second pod is there", 8, 2)
	other := &PodSpec{Requests: Amounts{CPU: 500}, PodRules: model.PodRules{NodeRequirements: model.Requirements{{Key: "zone"}}}}
	other.SetKey()
	pod("b", 0, func(p *Pod) { p.Spec = other })
	step("the second pod is not like the first", 0, 0)
	pod("b", 0, func(p *Pod) { p.Terminating = true })
	step("a pod goes, and its successor comes when it is gone", 8, 2)
	pod("b", 0, func(p *Pod) { p.Terminal = true })
	step("a pod has ended", 9, 1)
	store.Put(&Quota{Namespace: "default", Name: "q", Hard: []Amount{{"cpu", 2000}}})
	store.Put(&Namespace{Name: "default", Deleting: true})
	step("the namespace goes", 0, 0)
	if store.Announces("default") {
		t.Error("a namespace that goes is waited for")
	}
	store.Put(&Namespace{Name: "default"})
	step("a quota leaves room for three", 3, 1)
	store.Put(&Quota{Namespace: "default", Name: "q", Hard: []Amount{{"pods", 2}}})
	step("a quota leaves room for one", 1, 1)
	store.Put(&Quota{Namespace: "default", Name: "q", Hard: []Amount{{CountPods, 5}}})
	step("a quota of objects counts the pod that has ended, too", 3, 1)
	store.Put(&Quota{Namespace: "default", Name: "q", Hard: []Amount{{"pods", 2}}})
	revision := store.Revision()
	store.Put(&Quota{Namespace: "default", Name: "q", Hard: []Amount{{"pods", 2}}})
	if store.Revision() != revision {
		t.Error("a quota that says the same as before counts as a change of the cluster")
	}
	store.Put(&Quota{Namespace: "default", Name: "q", Opaque: true})
	step("a quota limits what is not known", 0, 1)
	store.Remove(&Quota{Namespace: "default", Name: "q"})
	store.Put(&Workload{UID: "rs", Namespace: "default", Name: "web-1", Since: now, Pods: 10, OneByOne: true})
	first = 1
	step("they come one after the other", 1, 1)
	first = 0
	store.Put(&Workload{UID: "rs", Namespace: "default", Name: "web-1", Since: now, Pods: 10, OneByOne: true, ReadyFor: time.Minute})
	step("they come one after the other, slowly", 0, 0)
	store.Put(&Workload{UID: "rs", Namespace: "default", Name: "web-1", Since: now, Pods: 1})
	step("the owner is scaled back", 0, 0)
	store.Put(&Workload{UID: "rs", Namespace: "default", Name: "web-1", Since: now, Pods: 10})
	pod("c", 0, func(p *Pod) { p.Gated = true })
	step("some of them wait for a gate", 0, 0)
	store.Remove(&Pod{Ref: model.PodRef{Namespace: "default", Name: "c"}})
	pod("a", announceFor+time.Second, func(*Pod) {})
	pod("b", announceFor+time.Second, func(*Pod) {})
	step("none has come for long", 0, 0)
	pod("d", 0, func(p *Pod) { p.Pattern = false })
	step("the newest pod is left to another scheduler", 0, 0)
	store.Put(&Workload{UID: "rs"})
	if got := store.Wants("rs"); got != 0 {
		t.Errorf("an owner that wants nothing is kept, with %d pods", got)
	}
}
