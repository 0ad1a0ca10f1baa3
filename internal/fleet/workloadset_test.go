package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// setWorld is a store with pods of workloads that belong to a set.
type setWorld struct {
	t     *testing.T
	store *Store
	now   time.Time
	spec  *PodSpec
}

func newSetWorld(t *testing.T) *setWorld {
	t.Helper()
	w := &setWorld{t: t, store: NewStore(), now: time.Unix(1000, 0), spec: &PodSpec{Requests: Amounts{CPU: 500}}}
	w.spec.SetKey()
	return w
}

func (w *setWorld) pod(owner string, number int, age time.Duration) {
	name := fmt.Sprintf("%s-%d", owner, number)
	w.store.Put(&Pod{
		Ref: model.PodRef{Namespace: "default", Name: name}, UID: name, Spec: w.spec, Labels: &Labels{},
		OwnerUID: owner, Pattern: true, Created: w.now.Add(-age),
	})
}

// want states how many pods are announced, of them so many of the set itself.
func (w *setWorld) want(what string, all, ofSet int, set string) {
	w.t.Helper()
	pods, living := w.store.Snapshot().announced(w.now)
	names, own := map[model.PodRef]bool{}, 0
	for _, p := range pods {
		if names[p.Ref] {
			w.t.Errorf("%s: two pods have the name %s", what, p.Ref)
		}
		names[p.Ref] = true
		if owner, _ := AnnouncedFor(p.UID); owner == set {
			own++
			if p.OwnerUID != set || p.Announced+living[set] > w.store.Wants(set) {
				w.t.Errorf("%s: pod %d of owner %q beside %d, where %d are wanted", what, p.Announced, p.OwnerUID, living[set], w.store.Wants(set))
			}
		}
	}
	if len(pods) != all || own != ofSet {
		w.t.Errorf("%s: %d pods are announced, %d of the set, want %d and %d", what, len(pods), own, all, ofSet)
	}
}

func TestJobsOfJobSetAreAnnouncedBeforeTheyExist(t *testing.T) {
	const set = "JobSet/default/train/workers"
	w := newSetWorld(t)
	job := func(name string, pods int) {
		w.store.Put(&Workload{UID: name, Namespace: "default", Name: name, Pods: pods, Silent: true, Since: w.now, WorkloadSet: WorkloadSet{Set: set, Siblings: 4, CountedAs: "jobs.batch"}})
	}
	job("job-0", 3)
	w.want("no pod shows what they are like", 0, 0, set)
	w.pod("job-0", 0, 0)
	w.want("one pod does not show that there may be more", 0, 0, set)
	w.pod("job-0", 1, 0)
	w.want("two pods are there", 1+9, 9, set)
	job("job-1", 3)
	w.want("a Job without pods is still announced by its set", 1+9, 9, set)
	w.pod("job-1", 0, 0)
	w.want("it announces its own pods once it has one", 1+2+6, 6, set)
	job("job-2", 0)
	w.want("a Job that has ended wants no more", 1+2+3, 3, set)
	w.store.Remove(&Workload{UID: "job-2"})
	w.want("a Job that is gone comes again", 1+2+6, 6, set)
	w.store.Put(&Quota{Namespace: "default", Name: "q", Hard: []Amount{{"pods", 7}}})
	w.want("a quota bounds all of them together", 4, 1, set)
	w.store.Remove(&Quota{Namespace: "default", Name: "q"})
	w.store.Put(&Quota{Namespace: "default", Name: "q", Objects: []Amount{{"jobs.batch", 1}}})
	w.want("a quota leaves room for one of the Jobs that do not exist", 1+2+3, 3, set)
	w.store.Put(&Quota{Namespace: "default", Name: "q", Objects: []Amount{{"jobs.batch", 0}, {"statefulsets.apps", 5}}})
	w.want("a quota leaves room for none of them", 1+2, 0, set)
	job("job-2", 3)
	w.want("a Job that exists creates its pods", 1+2+3, 3, set)
	w.store.Remove(&Workload{UID: "job-2"})
	w.store.Remove(&Quota{Namespace: "default", Name: "q"})
	w.want("nothing is limited", 1+2+6, 6, set)
	w.now = w.now.Add(announceFor + time.Second)
	w.want("none has come for long", 0, 0, set)
}

func TestWorkersOfLeadersAreAnnounced(t *testing.T) {
	const set = "LeaderWorkerSet/default/serve"
	w := newSetWorld(t)
	w.store.Put(&Workload{UID: "serve", Namespace: "default", Name: "serve", Pods: 4, Silent: true, Since: w.now, WorkloadSet: WorkloadSet{Leads: set}})
	workers := func(name string) {
		w.store.Put(&Workload{UID: name, Namespace: "default", Name: name, Pods: 2, Silent: true, Since: w.now, WorkloadSet: WorkloadSet{Set: set}})
	}
	w.pod("serve", 0, 0)
	w.pod("serve", 1, 0)
	w.want("leaders alone do not show what workers are like", 2, 0, set)
	workers("serve-0")
	w.pod("serve-0", 1, 0)
	w.want("one worker does not show that there may be more", 2, 0, set)
	w.pod("serve-0", 2, 0)
	w.want("the first workers are there", 2+6, 6, set)
	w.pod("serve", 1, followWithin+time.Second)
	w.pod("serve", 2, 0)
	w.want("a leader that has none after a while is waited for", 1+4, 4, set)
}

// Where the workers of the first leaders came once these were ready, those of later leaders do, too.
func TestWorkersThatWaitForLeadersAreNotAnnounced(t *testing.T) {
	const set = "LeaderWorkerSet/default/serve"
	w := newSetWorld(t)
	w.store.Put(&Workload{UID: "serve", Namespace: "default", Name: "serve", Pods: 4, Silent: true, Since: w.now, WorkloadSet: WorkloadSet{Leads: set}})
	for i := range 2 {
		name := fmt.Sprint("serve-", i)
		w.pod("serve", i, followWithin+time.Second)
		w.store.Put(&Workload{UID: name, Namespace: "default", Name: name, Pods: 2, Silent: true, Since: w.now, WorkloadSet: WorkloadSet{Set: set}})
	}
	w.pod("serve-0", 1, 0)
	w.pod("serve-0", 2, 0)
	w.want("the workers of the second leader come", 2+2, 2, set)
	w.pod("serve", 2, 0)
	w.pod("serve", 3, 0)
	w.want("two leaders more have come", 2, 2, set)
	w.pod("serve", 0, followWithin)
	w.want("one was followed at once", 6, 6, set)
}

func TestRulesOnOwnLabelsAreNoPattern(t *testing.T) {
	selector := func(key string) *model.Selector {
		return &model.Selector{Requirements: model.Requirements{model.Requirement{Key: key}}}
	}
	for name, c := range map[string]struct {
		spec *PodSpec
		want bool
	}{
		"no rules":                    {&PodSpec{}, false},
		"a spread over the JobSet":    {&PodSpec{Spread: []model.SpreadConstraint{{Selector: selector("jobset.sigs.k8s.io/jobset-name")}}}, false},
		"a spread over the Job":       {&PodSpec{Spread: []model.SpreadConstraint{{Selector: selector("batch.kubernetes.io/job-name")}}}, true},
		"affinity to its group":       {&PodSpec{Affinity: []Term{{Selector: selector("leaderworkerset.sigs.k8s.io/group-key")}}}, true},
		"anti-affinity to other Jobs": {&PodSpec{AntiAffinity: []Term{{Selector: selector("jobset.sigs.k8s.io/job-key")}}}, true},
		"a node per Job": {&PodSpec{PodRules: model.PodRules{
			NodeRequirements: model.Requirements{model.Requirement{Key: "alpha.jobset.sigs.k8s.io/namespaced-job"}}}}, true},
		"an application's own label": {&PodSpec{AntiAffinity: []Term{{Selector: selector("app")}}}, false},
	} {
		if got := rulesName(c.spec, ownLabel); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
