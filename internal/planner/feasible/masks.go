package feasible

import "github.com/nodeautoprovision/nap/internal/model"

// Tolerating returns the options of pools whose taints the pods tolerate; with
// soft, PreferNoSchedule taints repel too.
func (s *Space) Tolerating(tolerations []model.Toleration, soft bool) Set {
	out := NewSet(len(s.Options))
	for _, p := range s.Pools {
		if tolerates(s.Problem.Pools[p.Index].Taints, tolerations, soft) {
			out.AddRange(p.First, p.End)
		}
	}
	return out
}

// NodesTolerating is Tolerating for existing nodes.
func (s *Space) NodesTolerating(tolerations []model.Toleration, soft bool) Set {
	out := NewSet(len(s.Problem.Nodes))
	for n := range s.Problem.Nodes {
		if tolerates(s.Problem.Nodes[n].Taints, tolerations, soft) {
			out.Add(n)
		}
	}
	return out
}

// tolerates reports whether pods may go where these taints are. With soft, they must also
// tolerate PreferNoSchedule taints: those are tested as NoSchedule ones, against the
// tolerations that name no effect or PreferNoSchedule.
func tolerates(taints []model.Taint, tolerations []model.Toleration, soft bool) bool {
	if model.Untolerated(taints, tolerations) != nil {
		return false
	}
	if !soft {
		return true
	}
	for _, t := range taints {
		if t.Effect != model.PreferNoSchedule {
			continue
		}
		t.Effect = model.NoSchedule
		ok := false
		for _, tol := range tolerations {
			if tol.Effect == model.PreferNoSchedule {
				tol.Effect = model.NoSchedule
			} else if tol.Effect == model.NoSchedule {
				continue
			}
			ok = ok || tol.Tolerates(t)
		}
		if !ok {
			return false
		}
	}
	return true
}

// keepPortsFree removes from left the options on which a daemon takes one of the
// ports.
func (s *Space) keepPortsFree(left Set, ports []model.HostPort) {
	if len(ports) == 0 {
		return
	}
	taken := make([]bool, len(s.DaemonSets))
	for i := range s.DaemonSets {
		taken[i] = PortsClash(ports, s.DaemonSets[i].Ports)
	}
	for i := range s.Options {
		if taken[s.Options[i].Daemons] {
			left.Remove(i)
		}
	}
}

// PortsClash reports whether any two of the ports conflict.
func PortsClash(a, b []model.HostPort) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Conflicts(y) {
				return true
			}
		}
	}
	return false
}
