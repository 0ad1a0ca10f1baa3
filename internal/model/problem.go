package model

import "time"

// Problem is everything that a planning decision may look at. It is a value:
// the planner neither changes it nor reads anything else.
type Problem struct {
	Axes     Axes
	Catalogs []Catalog
	Pools    []Pool
	// LeftOut are the NodePools that buy nothing for now, by name. They are looked at for pods
	// without a place alone, to say which of them would take the pods.
	LeftOut []LeftOut
	Nodes   []Node
	// Shapes are the shapes of running pods that Node.Bound counts.
	Shapes  []PodShape
	Classes []PodClass
	// Quotas are the subscription limits that Offering.Quotas draws on. An
	// offering that names a quota missing here is not limited by it.
	Quotas []Quota
	// ByDriver are extended resources, sorted, that a driver may bring in place of a device
	// plugin. Kubelets do not report those.
	ByDriver []string
	Policy   Policy
}

// Policy is how to decide.
type Policy struct {
	// IgnorePreferences drops preferred terms and ScheduleAnyway from the start
	// (preference policy Ignore). Otherwise they are honoured while that costs no
	// pod its place.
	IgnorePreferences bool
	// RelaxMinValues gives minValues up when they cannot be met (BestEffort)
	// instead of refusing the pool (Strict).
	RelaxMinValues bool
	// Share caps what one node may hold.
	Share NodeShare
	// MaxInstanceTypes caps the ranked alternatives of a new node by distinct
	// instance types; zero means 600, as upstream.
	MaxInstanceTypes int
	// Budget is the time in which to improve the plan after the first feasible
	// one; zero means the first feasible plan only. Elapsed is how the planner
	// learns how much of it is used: it is called now and then, from two goroutines
	// at a time, and must be monotonic. With Elapsed nil the work is bounded by the
	// number of steps that a machine with two cores does in about Budget, which makes
	// the plan a pure function of the problem.
	Budget  time.Duration
	Elapsed func() time.Duration
	// Replay, if not nil, is the record of a plan that was made for the same problem
	// with a clock. It takes the place of Elapsed: with its budget and seed, the plan is
	// made again as it was.
	Replay *Replay
	// Seed breaks ties that names cannot.
	Seed uint64
}

// PodCount is the number of pods over all classes.
func (p *Problem) PodCount() int {
	n := 0
	for i := range p.Classes {
		n += len(p.Classes[i].Pods)
	}
	return n
}
