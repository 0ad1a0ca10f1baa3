package feasible

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Matching returns the options whose labels meet all requirements; nil means
// every option. The result is shared: do not change it.
func (s *Space) Matching(rs model.Requirements) Set {
	return s.cached(s.masks, rs, len(s.Options), s.labels.ofOption)
}

// NodesMatching is Matching for existing nodes.
func (s *Space) NodesMatching(rs model.Requirements) Set {
	return s.cached(s.nodeMasks, rs, len(s.Problem.Nodes), s.labels.ofNode)
}

func (s *Space) cached(cache map[string]Set, rs model.Requirements, n int, values [][]int32) Set {
	if len(rs) == 0 {
		return nil
	}
	var buffer [128]byte
	id := AppendRequirements(buffer[:0], rs)
	if set, ok := cache[string(id)]; ok {
		return set
	}
	key := string(id)
	var set Set
	if len(rs) == 1 {
		set = s.match(rs[0], n, values)
	} else {
		set = s.cached(cache, rs[:1], n, values).Clone()
		for i := 1; i < len(rs); i++ {
			set.And(s.cached(cache, rs[i:i+1], n, values))
		}
	}
	cache[key] = set
	return set
}

func (s *Space) match(r model.Requirement, n int, values [][]int32) Set {
	key, table := s.labels.table(r)
	set := NewSet(n)
	column := values[key]
	for i := range n {
		if table[column[i]+1] {
			set[i>>6] |= 1 << (i & 63)
		}
	}
	return set
}

// RequirementsKey is a text that is equal for equal requirements in equal order.
func RequirementsKey(rs model.Requirements) string { return string(AppendRequirements(nil, rs)) }

// AppendRequirements appends the text of [RequirementsKey].
func AppendRequirements(key []byte, rs model.Requirements) []byte {
	for i := range rs {
		key = append(append(key, rs[i].Key...), 0)
		key = append(key, rs[i].Operator...)
		for _, v := range rs[i].Values {
			key = append(append(key, 1), v...)
		}
		key = append(key, 2)
	}
	return key
}

// anyOf returns the options that meet at least one alternative; nil means every
// option.
func (s *Space) anyOf(alternatives []model.Requirements) Set {
	return union(alternatives, s.Matching)
}

func (s *Space) nodesAnyOf(alternatives []model.Requirements) Set {
	return union(alternatives, s.NodesMatching)
}

func union(alternatives []model.Requirements, matching func(model.Requirements) Set) Set {
	if len(alternatives) == 0 {
		return nil
	}
	var out Set
	for i, rs := range alternatives {
		set := matching(rs)
		if set == nil {
			return nil
		}
		if i == 0 {
			out = set
			continue
		}
		if i == 1 {
			out = out.Clone()
		}
		out.Or(set)
	}
	return out
}

// NodeAffinity are a pod's own rules on the labels of its node.
type NodeAffinity struct {
	// All must hold: the nodeSelector.
	All model.Requirements
	// Any are the required node affinity terms, of which one must hold; empty means
	// no such rule.
	Any []model.Requirements
}

// NodeAffinityOf returns the rules of a class. The places of its volumes are not
// part of them: spread counting does not look at those.
func NodeAffinityOf(c *model.PodClass) NodeAffinity {
	return NodeAffinity{c.NodeRequirements, c.NodeAlternatives}
}

// OptionsMeeting returns the options whose labels meet the rules. The caller owns
// the set.
func (s *Space) OptionsMeeting(a NodeAffinity) Set {
	return conjunction(len(s.Options), s.Matching(a.All), s.anyOf(a.Any))
}

// NodesMeeting is OptionsMeeting for existing nodes.
func (s *Space) NodesMeeting(a NodeAffinity) Set {
	return conjunction(len(s.Problem.Nodes), s.NodesMatching(a.All), s.nodesAnyOf(a.Any))
}

func conjunction(n int, sets ...Set) Set {
	out := Full(n)
	for _, set := range sets {
		if set != nil {
			out.And(set)
		}
	}
	return out
}

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

// Intern numbers a set of options; equal sets get the same number. The space
// keeps the set: do not change it afterwards.
func (s *Space) Intern(set Set) int {
	h := set.Hash()
	for _, i := range s.internedBy[h] {
		if slices.Equal(s.interned[i], set) {
			return i
		}
	}
	i := len(s.interned)
	s.interned = append(s.interned, set)
	s.internedBy[h] = append(s.internedBy[h], i)
	return i
}

// Interned returns the set with a number given by Intern.
func (s *Space) Interned(i int) Set { return s.interned[i] }
