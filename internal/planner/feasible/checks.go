package feasible

import "github.com/nodeautoprovision/nap/internal/model"

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
	resources, daemons := NewSet(len(s.Options)), NewSet(len(s.Options))
	slots, disks := NewSet(len(s.Options)), NewSet(len(s.Options))
	axes := s.Dims - len(s.Drivers)
	for _, r := range s.Runs {
		overhead := s.DaemonSets[s.Options[r.First].Daemons].Requests
		bare, net, pods, volumes := true, true, true, true
		for d, v := range size {
			switch {
			case d == model.Pods:
				pods = pods && v <= r.Net[d]
			case d >= axes:
				volumes = volumes && v <= r.Net[d]
			default:
				bare = bare && v <= r.Net[d]+overhead[d]
				net = net && v <= r.Net[d]
			}
		}
		for _, x := range []struct {
			set Set
			ok  bool
		}{{resources, bare}, {daemons, net}, {slots, pods}, {disks, volumes}} {
			if x.ok {
				x.set.AddRange(r.First, r.End)
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
