package fleet

import (
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
	created := map[string][]time.Time{}
	if len(of) > 0 { // it looks at all pods
		for _, p := range s.pods {
			a := of[p.OwnerUID]
			if a == nil || p.Created.Before(a.workload.Since.Add(-watchedWithin)) {
				continue
			}
			created[a.uid] = append(created[a.uid], p.Created)
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

// creates reports whether a workload is about to create the pods that it lacks, by when those
// were created, in any order, that have come since it began.
func (a *announcement) creates(created []time.Time, now time.Time) bool {
	w := a.workload
	slices.SortFunc(created, time.Time.Compare)
	if len(created) == 0 {
		return false
	}
	last := w.Since
	for _, at := range created {
		if at.Sub(last) > announceFor {
			return false // it had stopped, and has replaced pods since
		}
		last = at
	}
	if !w.Silent {
		return now.Sub(last) <= announceFor
	}
	second := len(created) > 1 && last.Sub(created[len(created)-2]) <= silentFor
	return now.Sub(last) <= silentFor && (second || a.inSet > 1)
}

// goesOn reports whether the workloads of a set are being created: the newest has just come,
// and more than one pod with it or before it.
func (a *announcement) goesOn() bool {
	return a.inSet > 1 && a.newest.Created.Sub(a.since) <= announceFor
}
