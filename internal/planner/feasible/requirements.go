package feasible

import "github.com/nodeautoprovision/nap/internal/model"

// Matching returns the options whose labels meet all requirements; nil means
// every option. The result is shared: do not change it. Precondition: some rule of
// the problem mentions the keys.
func (l *LabelIndex) Matching(rs model.Requirements) Set { return l.matching(&l.options, rs) }

// NodesMatching is Matching for existing nodes.
func (l *LabelIndex) NodesMatching(rs model.Requirements) Set { return l.matching(&l.nodes, rs) }

// matching looks the answer up. Requirements that are not the problem's own, such as
// those of a class that a caller made up, are answered without being remembered:
// reading never changes the index.
func (l *LabelIndex) matching(of *carriers, rs model.Requirements) Set {
	if len(rs) == 0 {
		return nil
	}
	var buffer [128]byte
	if set, ok := of.masks[string(AppendRequirements(buffer[:0], rs))]; ok {
		return set
	}
	if len(rs) == 1 {
		return l.match(of, rs[0])
	}
	set := l.matching(of, rs[:1]).Clone()
	for i := 1; i < len(rs); i++ {
		set.And(l.matching(of, rs[i:i+1]))
	}
	return set
}

// remember stores the answers for requirements and for each of them alone, which
// explanations ask for. Only the compiler calls it.
func (l *LabelIndex) remember(of *carriers, rs model.Requirements) {
	if len(rs) == 0 {
		return
	}
	var buffer [128]byte
	id := AppendRequirements(buffer[:0], rs)
	if _, known := of.masks[string(id)]; known {
		return
	}
	if len(rs) > 1 {
		for i := range rs {
			l.remember(of, rs[i:i+1])
		}
	}
	of.masks[string(id)] = l.matching(of, rs)
}

// match asks every carrier for one requirement.
func (l *LabelIndex) match(of *carriers, r model.Requirement) Set {
	key, table := l.table(r)
	set := NewSet(of.count)
	column := of.values[key]
	for i := range of.count {
		if table[column[i]+1] {
			set[i>>6] |= 1 << (i & 63)
		}
	}
	return set
}

// table answers one requirement for every value of its key; entry 0 is the
// answer for an absent label, entry v+1 that for value v.
func (l *LabelIndex) table(r model.Requirement) (key int, table []bool) {
	key = l.index[r.Key]
	names := l.dicts[key].names
	table = make([]bool, len(names)+1)
	table[0] = r.Matches("", false)
	if r.Operator == model.In || r.Operator == model.NotIn {
		for i := range names {
			table[i+1] = r.Operator == model.NotIn
		}
		for _, v := range r.Values {
			if id, ok := l.dicts[key].ids[v]; ok {
				table[id+1] = r.Operator == model.In
			}
		}
		return key, table
	}
	for i, name := range names {
		table[i+1] = r.Matches(name, true)
	}
	return key, table
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
// option. The result is shared: do not change it.
func (l *LabelIndex) anyOf(alternatives []model.Requirements) Set {
	return l.union(&l.options, alternatives)
}

// nodesAnyOf is anyOf for existing nodes.
func (l *LabelIndex) nodesAnyOf(alternatives []model.Requirements) Set {
	return l.union(&l.nodes, alternatives)
}

// union returns those that meet at least one alternative, nil for all. An alternative
// without requirements admits all.
func (l *LabelIndex) union(of *carriers, alternatives []model.Requirements) Set {
	var out Set
	for i, rs := range alternatives {
		set := l.matching(of, rs)
		if set == nil {
			return nil
		}
		switch i {
		case 0:
			out = set
			continue
		case 1:
			out = out.Clone() // the first one is shared
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
func (l *LabelIndex) OptionsMeeting(a NodeAffinity) Set {
	return conjunction(l.options.count, l.Matching(a.All), l.anyOf(a.Any))
}

// NodesMeeting is OptionsMeeting for existing nodes.
func (l *LabelIndex) NodesMeeting(a NodeAffinity) Set {
	return conjunction(l.nodes.count, l.NodesMatching(a.All), l.nodesAnyOf(a.Any))
}

// conjunction intersects sets of n members; a nil one has all of them. The caller owns
// the result.
func conjunction(n int, sets ...Set) Set {
	out := Full(n)
	for _, set := range sets {
		if set != nil {
			out.And(set)
		}
	}
	return out
}
