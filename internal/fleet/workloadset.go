package fleet

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// WorkloadSet says to which set of workloads of one template a workload belongs: the Jobs of
// a replicated job of a JobSet, or the StatefulSets with the workers of a LeaderWorkerSet.
// After the first pod of one of them, those of all are planned. It is zero for a workload by
// itself.
type WorkloadSet struct {
	// Set is the set's name, KIND/NAMESPACE/NAME with what more tells sets of one object
	// apart, which no other set has.
	Set string
	// Siblings is how many workloads the set has when it is complete; 0 where it has one for
	// each pod of the workload that leads it.
	Siblings int
	// CountedAs is how quotas name the workloads of the set, as in [Quota.Objects].
	CountedAs string
	// Leads is the name of the set that has a workload for each pod of this one, empty for
	// none.
	Leads string
}

// workloadSet is a set with those of its workloads that exist.
type workloadSet struct {
	name    string
	members []*Workload
	// leader is nil where none has been seen, or none is needed.
	leader *Workload
}

// setsOf returns the sets of which a workload exists, by name.
func setsOf(workloads map[string]*Workload) map[string]*workloadSet {
	sets := map[string]*workloadSet{}
	leaders := map[string]*Workload{}
	for _, w := range workloads {
		if w.Leads != "" {
			leaders[w.Leads] = w
		}
		if w.Set == "" {
			continue
		}
		if sets[w.Set] == nil {
			sets[w.Set] = &workloadSet{name: w.Set}
		}
		sets[w.Set].members = append(sets[w.Set].members, w)
	}
	for name, set := range sets {
		set.leader = leaders[name]
	}
	return sets
}

// podName begins the names of the set's announced pods. No workload's announced pods have
// it: those have a single mark.
func (s *workloadSet) podName() string {
	_, name, _ := strings.Cut(s.name, "/")
	_, name, _ = strings.Cut(name, "/")
	return strings.ReplaceAll(name, "/", "-") + numberMark
}

// size is how many workloads the set has when it is complete.
func (s *workloadSet) size() int {
	n := 0
	for _, w := range s.members {
		n = max(n, w.Siblings)
	}
	if n == 0 && s.leader != nil {
		n = s.leader.Pods
	}
	return n
}

// each is how many pods a workload of the set creates at the beginning.
func (s *workloadSet) each() int {
	n := 0
	for _, w := range s.members {
		if w.OneByOne {
			n = max(n, min(w.Pods, 1))
		} else {
			n = max(n, w.Pods)
		}
	}
	return n
}

// followWithin is how long after a leading pod its workload is expected. One that takes
// longer waits until the leader is ready, or is bound.
const followWithin = 2 * time.Second

// dueOfSets are the announcements of the workloads that are still to come, or have still to
// create their first pod; of has what is known of the pods of each workload.
func (s *Snapshot) dueOfSets(of map[string]*announcement, now time.Time) []*announcement {
	var due []*announcement
	sets, room := setsOf(s.coming.workloads), s.objectRoom()
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		set := sets[name]
		a := &announcement{uid: set.name, name: set.podName()}
		begun := 0
		for _, w := range set.members {
			known := of[w.UID]
			if known != nil || w.Pods == 0 {
				begun++
			}
			if w.Since.After(a.since) {
				a.since = w.Since
			}
			if known == nil {
				continue
			}
			a.gated = a.gated || known.gated
			a.inSet += known.living
			a.mixed = a.mixed || a.newest != nil && a.newest.Spec.Key != known.newest.Spec.Key
			if newerPod(known.newest, a.newest) {
				a.namespace, a.newest = w.Namespace, known.newest
			}
		}
		if a.newest == nil || rulesName(a.newest.Spec, ownLabel) {
			continue
		}
		each, lacking := set.each(), set.size()-begun-s.waitingLeaders(set, now)
		if set.followsReadiness(s.pods) {
			lacking = min(lacking, len(set.members)-begun)
		}
		if without := lacking - (len(set.members) - begun); without > 0 {
			lacking -= without - room.take(a.namespace, set.members[0].CountedAs, without)
		}
		a.living, a.missing = begun*each, lacking*each
		due = append(due, a)
	}
	return due
}

// objectRoom is what quotas leave of objects, by namespace and [Quota.Objects]. What is absent is
// not limited.
type objectRoom map[objectKey]int

func (s *Snapshot) objectRoom() objectRoom {
	room := objectRoom{}
	for _, q := range s.coming.quotas {
		for _, o := range q.Objects {
			key := objectKey{q.Namespace, o.Name}
			if left, limited := room[key]; !limited || int(o.Value) < left {
				room[key] = int(o.Value)
			}
		}
	}
	return room
}

// take returns how many of n objects there may be, and counts these.
func (r objectRoom) take(namespace, object string, n int) int {
	key := objectKey{namespace, object}
	if left, limited := r[key]; limited {
		n = max(0, min(n, left))
		r[key] -= n
	}
	return n
}

// waitingLeaders is how many pods lead no workload yet although they have been there for a
// while. A workload has the name of the pod that leads it.
func (s *Snapshot) waitingLeaders(set *workloadSet, now time.Time) int {
	if set.leader == nil {
		return 0
	}
	led := map[string]bool{}
	for _, w := range set.members {
		led[w.Name] = true
	}
	n := 0
	for _, p := range s.pods {
		if p.OwnerUID == set.leader.UID && !p.Terminal && !led[p.Ref.Name] && now.Sub(p.Created) > followWithin {
			n++
		}
	}
	return n
}

// followsReadiness reports whether no workload of the set followed its leading pod at once: each
// waits until the leader is ready, and those of other leaders will, too. Times are whole seconds.
func (s *workloadSet) followsReadiness(pods map[model.PodRef]*Pod) bool {
	if s.leader == nil {
		return false
	}
	late := false
	for _, w := range s.members {
		leader := pods[model.PodRef{Namespace: w.Namespace, Name: w.Name}]
		if leader == nil || leader.OwnerUID != s.leader.UID {
			continue
		}
		if w.Since.Sub(leader.Created) <= followWithin {
			return false
		}
		late = true
	}
	return late
}

// rulesName reports whether a pod's rules name one of some labels. Where these differ between
// pods, or between the workloads of a set, it does not show what the others are like.
func rulesName(s *PodSpec, own func(model.Requirement) bool) bool {
	if slices.ContainsFunc(s.NodeRequirements, own) ||
		slices.ContainsFunc(s.NodeAlternatives, func(r model.Requirements) bool { return slices.ContainsFunc(r, own) }) {
		return true
	}
	var selectors []*model.Selector
	for i := range s.Spread {
		selectors = append(selectors, s.Spread[i].Selector)
	}
	for _, terms := range [][]Term{s.Affinity, s.AntiAffinity} {
		for i := range terms {
			selectors = append(selectors, terms[i].Selector)
		}
	}
	for i := range s.Preferences {
		selectors = append(selectors, s.Preferences[i].Term.Selector)
	}
	return slices.ContainsFunc(selectors, func(s *model.Selector) bool {
		return s != nil && slices.ContainsFunc(s.Requirements, own)
	})
}

// ownLabel reports whether a label's value may be a workload's own. The names of JobSet and
// LeaderWorkerSet itself are the same for all their workloads.
func ownLabel(r model.Requirement) bool {
	switch r.Key {
	case "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/replicatedjob-name", "leaderworkerset.sigs.k8s.io/name":
		return false
	case "job-name", "controller-uid":
		return true
	}
	group, _, _ := strings.Cut(r.Key, "/")
	switch group {
	case "batch.kubernetes.io", "jobset.sigs.k8s.io", "alpha.jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io":
		return true
	}
	return false
}

// podLabel reports whether a label's value is each pod's own within its workload.
func podLabel(r model.Requirement) bool {
	switch r.Key {
	case "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index":
		return true
	}
	return false
}
