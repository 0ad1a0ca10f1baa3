package fleet

import (
	"cmp"
	"slices"
	"time"
)

// announceFor is how long after a workload created its last pod the others are expected.
// It is also how long a node is held for pods that were expected and do not come.
const announceFor = 30 * time.Second

// silentFor is announceFor of workloads which do not say that they are refused pods: they are
// refused them where none has come for so long, and are at work where two have come within it,
// or two of their set. Times of creation are whole seconds, so that it is two seconds at least.
const silentFor = 3 * time.Second

// readyWithin is for how long the next pod of a workload that creates them one by one is expected
// while the one before it is not ready: machines boot, images are loaded and programs start in
// less, mostly. A node is held for it no longer.
const readyWithin = 10 * time.Minute

// longestReadyFor is for how long the pods of a workload that creates them one by one may have to
// be ready before the next one comes: a machine that stands empty so long is not worth it.
const longestReadyFor = announceFor / 2

// watchedWithin is how long before it is seen here that a workload wants more pods it may have
// created the first of them, by the clock of the API server.
const watchedWithin = 5 * time.Second

// creating keeps the announcements of workloads that are at work, and whose pods are like one
// another: of others none shows what those to come are like. At work are those that have begun
// to create pods, as once they were made or scaled up, and have not stopped since. One that
// replaces pods which it has lost creates one after the other as they go, and if it lacks more
// something keeps it from creating these.
func (s *Snapshot) creating(due []*announcement, now time.Time) []*announcement {
	of := map[string]*announcement{}
	for _, a := range due {
		if a.workload != nil {
			of[a.uid] = a
		}
	}
	created := map[string][]*Pod{}
	if len(of) > 0 { // it looks at all pods
		for _, p := range s.pods {
			a := of[p.OwnerUID]
			if a == nil || p.Created.Before(a.workload.Since.Add(-watchedWithin)) {
				continue
			}
			created[a.uid] = append(created[a.uid], p)
			a.mixed = a.mixed || p.Spec.Key != a.newest.Spec.Key
		}
	}
	return slices.DeleteFunc(due, func(a *announcement) bool {
		if a.mixed {
			return true
		}
		if a.workload == nil {
			return !a.goesOn()
		}
		return !a.creates(created[a.uid], now)
	})
}

// creates reports whether a workload is about to create the pods that it lacks, by those, in any
// order, that have come since it began.
func (a *announcement) creates(since []*Pod, now time.Time) bool {
	w := a.workload
	slices.SortFunc(since, func(x, y *Pod) int { // times of creation are whole seconds
		return cmp.Or(x.Created.Compare(y.Created), readySince(x).Compare(readySince(y)))
	})
	if len(since) == 0 {
		return false
	}
	last := w.Since
	for _, p := range since {
		if p.Created.Sub(last) > announceFor {
			return false // it had stopped, and has replaced pods since
		}
		last = p.Created
		if w.OneByOne {
			last = readySince(p)
		}
	}
	switch {
	case w.OneByOne:
		return w.ReadyFor <= longestReadyFor && nextIsDue(since[len(since)-1], now)
	case !w.Silent:
		return now.Sub(last) <= announceFor
	}
	second := len(since) > 1 && last.Sub(since[len(since)-2].Created) <= silentFor
	return now.Sub(last) <= silentFor && (second || a.inSet > 1)
}

// readySince is when a pod became ready, for the last time; while it is not, the end of time.
func readySince(p *Pod) time.Time {
	if p.Unready || p.ReadyAfter == 0 {
		return Forever
	}
	return p.Created.Add(time.Duration(p.ReadyAfter) * time.Second)
}

// nextIsDue reports whether the pod after this one is about to come, of a workload that creates
// them one by one: this one becomes ready, or has just done so.
func nextIsDue(p *Pod, now time.Time) bool {
	if ready := readySince(p); ready != Forever {
		return now.Sub(ready) <= announceFor
	}
	return now.Sub(p.Created) <= readyWithin
}

// goesOn reports whether the workloads of a set are being created: the newest has just come,
// and more than one pod with it or before it.
func (a *announcement) goesOn() bool {
	return a.inSet > 1 && a.newest.Created.Sub(a.since) <= announceFor
}
