package fleet

import "time"

// returnsWithin is for how long after its last pod has ended a node is kept for those that a Job is
// about to create in their place. The Job controller creates the pods of a Job that go on within
// moments, and those that have failed 10 s later at first, then 20 s, then twice as long each time; a
// machine boots in a minute or two.
const returnsWithin = 30 * time.Second

// jobKind is the kind of owner whose pods end by themselves.
const jobKind = "Job"

// endedPods are the pods of a Job that have ended, and those that have not.
type endedPods struct {
	announcement
	// on counts those that have ended, by the node that they ran on.
	on map[string]int
}

// returningTo counts the pods that Jobs have still to create, by the node on which as many of them
// have ended. Those are looked at that Kubernetes still has.
func returningTo(s *Snapshot) map[string]int {
	jobs := map[string]*endedPods{}
	for _, p := range s.pods {
		if p.Owner.Kind != jobKind {
			continue
		}
		w := s.coming.workloads[p.OwnerUID]
		if w == nil {
			continue
		}
		job := jobs[w.UID]
		if job == nil {
			job = &endedPods{announcement: announcement{workload: w}, on: map[string]int{}}
			jobs[w.UID] = job
		}
		switch {
		case !p.Terminal:
			job.living++
		case p.Node != "":
			job.on[p.Node]++
		}
		if p.Uncounted {
			job.uncounted++
		}
	}
	out := map[string]int{}
	for _, job := range jobs {
		if missing := job.wants() - job.living; missing > 0 && !s.ending(job.workload.Namespace) {
			for node, ended := range job.on {
				out[node] += min(ended, missing)
			}
		}
	}
	return out
}
