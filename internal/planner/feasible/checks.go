package feasible

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Check is one condition for one class: the options that pass it.
type Check struct {
	Reason model.Reason
	// Pass is nil when every option passes.
	Pass Set
}

// Static returns the options that a class's labels, taints and ports allow,
// whatever its size and whatever can be bought at the moment.
func (s *Space) Static(c *model.PodClass) Set {
	out := s.Meeting(c)
	out.And(s.Tolerating(c.Tolerations, false))
	if ports := s.PortsFree(c.HostPorts); ports != nil {
		out.And(ports)
	}
	return out
}

// Checks returns everything that an option must pass to be bought for one pod
// of the class, in the order in which it is reported.
func (s *Space) Checks(c *model.PodClass, size []int64) []Check {
	checks := []Check{
		{model.ReasonTaint, s.Tolerating(c.Tolerations, false)},
		{model.ReasonPodRequirement, s.OptionsMeeting(c, false)},
		{model.ReasonVolumeTopology, s.anyOf(c.VolumeAlternatives)},
	}
	checks = append(checks, s.sizeChecks(size)...)
	checks = append(checks,
		Check{model.ReasonHostPort, s.PortsFree(c.HostPorts)},
		Check{model.ReasonUnavailable, s.sold},
	)
	for _, reason := range lineReasons {
		checks = append(checks, Check{reason, s.within[reason]})
	}
	return checks
}

// sizeChecks splits Holding by what is missing: the machine itself is too
// small, or daemons take the rest, or the pod slots, or the disk slots.
func (s *Space) sizeChecks(size []int64) []Check {
	n := len(s.Options)
	daemons, slots, disks := Full(n), Full(n), Full(n)
	axes := s.Dims - len(s.Drivers)
	for d, v := range size {
		switch {
		case d == model.Pods:
			s.keepAtLeast(slots, d, v)
		case d >= axes:
			s.keepAtLeast(disks, d, v)
		default:
			s.keepAtLeast(daemons, d, v)
		}
	}
	resources := daemons.Clone()
	if slices.ContainsFunc(s.DaemonSets, func(d DaemonSet) bool { return slices.Max(d.Requests) > 0 }) {
		for _, r := range s.Runs {
			if !daemons.Has(r.First) && s.holdsBare(r.First, size) {
				resources.AddRange(r.First, r.End)
			}
		}
	}
	return []Check{
		{model.ReasonResources, resources},
		{model.ReasonDaemonOverhead, daemons},
		{model.ReasonMaxPods, slots},
		{model.ReasonVolumeSlots, disks},
	}
}

// holdsBare reports whether a machine of an option without its daemons has the
// resources for a pod, but for slots of pods and disks.
func (s *Space) holdsBare(option int, size []int64) bool {
	o := &s.Options[option]
	overhead := s.DaemonSets[o.Daemons].Requests
	for d, v := range size[:s.Dims-len(s.Drivers)] {
		if d != model.Pods && v > o.Net[d]+overhead[d] {
			return false
		}
	}
	return true
}

// findAvailable asks for every option whether one machine of it can be bought.
func (s *Space) findAvailable() {
	n := len(s.Options)
	s.sold = NewSet(n)
	s.within = map[model.Reason]Set{}
	for _, reason := range lineReasons {
		s.within[reason] = Full(n)
	}
	s.most = make([]int64, len(s.Lines))
	for i := range s.Options {
		if _, o := s.Offering(i); o.Available {
			s.sold.Add(i)
		}
		for _, u := range s.Options[i].Uses {
			s.most[u.Line] = max(s.most[u.Line], u.Amount)
			if line := &s.Lines[u.Line]; u.Amount > line.Left {
				s.within[line.Reason].Remove(i)
			}
		}
	}
	s.Available = s.sold.Clone()
	for _, reason := range lineReasons {
		s.Available.And(s.within[reason])
	}
}
