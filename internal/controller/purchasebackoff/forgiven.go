package purchasebackoff

import (
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// mostForgiven is how many purchases in a row may say nothing about their workload. What
// others do to machines by hand they do once or twice; what goes on is a program that
// would have machines bought for ever, and counts.
const mostForgiven = 2

// forgiven counts purchases in a row, by workload, whose outcome says nothing about it.
type forgiven struct {
	clock     clock.PassiveClock
	workloads map[Workload]*inRow
}

func newForgiven(clk clock.PassiveClock) *forgiven {
	return &forgiven{clock: clk, workloads: map[Workload]*inRow{}}
}

// forgive reports whether such a purchase of a workload, made at some time, is no failure, and
// counts it. Those that were made before the last one was decided count with that: one hand
// ended them all.
func (f *forgiven) forgive(w Workload, made time.Time) bool {
	now := f.clock.Now()
	maps.DeleteFunc(f.workloads, func(_ Workload, in *inRow) bool { return now.Sub(in.last) > forgetAfter })
	in := f.workloads[w]
	if in == nil {
		in = &inRow{first: now}
		f.workloads[w] = in
	}
	if in.count > 0 && made.Before(in.last) {
		return in.count <= mostForgiven
	}
	in.count++
	in.last = now
	return in.count <= mostForgiven
}

// end forgets what is known of a workload, a pod of which runs.
func (f *forgiven) end(w Workload) { delete(f.workloads, w) }

// speaks reports whether what became of a purchase, of which no pod is known to have run, says
// anything about its workload. It does not where pods may have run unseen, and where none of
// its machines says anything.
func (p *Purchases) speaks(of *purchase, s *fleet.Snapshot) bool {
	speaks := false
	for name, b := range of.claims {
		if b.missed {
			return false
		}
		speaks = speaks || p.machineSpeaks(name, b, s)
	}
	return speaks
}

// premature reports whether a purchase says nothing about the pods that wait: these have come
// after it, and all its machines have gone to disruption commands. It was made for pods which did
// not exist yet, and its machines were given back before these came.
func (of *purchase) premature(waiting []*fleet.Pod) bool {
	for _, b := range of.claims {
		if !b.gone || !b.disrupted {
			return false
		}
	}
	return !slices.ContainsFunc(waiting, func(p *fleet.Pod) bool { return !p.Created.After(of.made) })
}

// machineSpeaks reports whether what became of a claim says anything about its workload. It does
// not where others have ended it: by their NodePool, or before there was a machine, which
// is so unless the cloud has refused it; or where they have cordoned the node. A node that
// was never seen without that is one that came so.
func (p *Purchases) machineSpeaks(name string, b *bought, s *fleet.Snapshot) bool {
	if _, unsold := p.unsold[name]; unsold {
		return true
	}
	switch {
	case b.orphaned:
		return false
	case b.gone:
		return b.launched || b.unbootable || b.troubled
	}
	c := s.Claim(name)
	if c == nil {
		return true
	}
	node := s.Node(c.NodeName)
	return node == nil || !b.open || !cordoned(node)
}
