package feasible

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// Absent is the value of a label that a node does not carry.
const Absent = int32(-1)

// valueAny is a label value that no rule asks for, where a pool does not say which ones the label
// has. No requirement can name it.
const valueAny = "\x00any"

// LabelIndex holds the labels of all options and existing nodes as numbers: of the
// keys that some rule of the problem looks at, and of the values that they have.
// It answers which options and nodes meet requirements on labels. Nothing changes it
// after compilation, so that any number of goroutines may read one.
type LabelIndex struct {
	// keys are the label keys, sorted. A key's number is its index here.
	keys []string
	// index is the number of a key by its name.
	index map[string]int
	// dicts number the values of each key.
	dicts []dict
	// varies says, per key, that the ways to buy one instance type differ in it,
	// apart from zone and capacity type, which always do.
	varies []bool
	// picked says, per key, that the value is left to the pool or the buyer.
	picked []bool
	// options and nodes are what carries the labels.
	options, nodes carriers
}

// carriers are the options of a space, or its existing nodes, by their labels.
type carriers struct {
	// count is how many there are.
	count int
	// values are the numbers of their values, per key, then per carrier; [Absent]
	// where one does not carry the label.
	values [][]int32
	// masks are the carriers that meet requirements, by the text of the requirements
	// ([AppendRequirements]). They cover what the problem's rules ask for.
	masks map[string]bitset.Set
	// lists are the carriers by value, of keys with many values of which rules ask for some.
	lists map[int]valueLists
}

// valueLists lists carriers by the value that they have of a key.
type valueLists struct {
	// order has all carriers that have the label, those with value v from starts[v] to starts[v+1].
	order, starts []int32
}

// count is how many carriers have one of some values. Ids are the numbers of values.
func (l valueLists) count(ids map[string]int32, values []string) int {
	n := 0
	for _, value := range values {
		if v, ok := ids[value]; ok {
			n += int(l.starts[v+1] - l.starts[v])
		}
	}
	return n
}

// manyValues is from how many values of a key on carriers are listed by them.
const manyValues = 32

// listed are the carriers by value of a key, which has so many values.
func (c *carriers) listed(key, values int) valueLists {
	l := valueLists{starts: make([]int32, values+1)}
	for _, v := range c.values[key] {
		if v != Absent {
			l.starts[v+1]++
		}
	}
	for v := range values {
		l.starts[v+1] += l.starts[v]
	}
	l.order = make([]int32, l.starts[values])
	next := slices.Clone(l.starts)
	for i, v := range c.values[key] {
		if v != Absent {
			l.order[next[v]] = int32(i)
			next[v]++
		}
	}
	return l
}

// dict numbers the values of one label key, from 0.
type dict struct {
	// names are the values by number.
	names []string
	// ids are the numbers by value.
	ids map[string]int32
}

// few is up to how many names looking at all of them beats a map.
const few = 8

// id returns the number of a value, and gives it the next one if it is new.
func (d *dict) id(name string) int32 {
	if len(d.names) <= few {
		if i := slices.Index(d.names, name); i >= 0 {
			return int32(i)
		}
	} else if id, ok := d.ids[name]; ok {
		return id
	}
	id := int32(len(d.names))
	d.names = append(d.names, name)
	d.ids[name] = id
	return id
}

// KeyIndex returns the number of a label key, or -1 when no rule mentions it.
func (l *LabelIndex) KeyIndex(key string) int {
	if k, ok := l.index[key]; ok {
		return k
	}
	return -1
}

// Varies reports whether options of one instance type may differ in the label:
// then a new machine's value is not settled by its type.
func (l *LabelIndex) Varies(key int) bool {
	name := l.keys[key]
	return l.varies[key] || name == model.LabelZone || name == model.LabelCapacityType
}

// LeftToChance are the options with a value of the label that no rule names: which
// one a machine gets, and which machines share it, is not known. It is nil if there
// are none.
func (l *LabelIndex) LeftToChance(key int) bitset.Set {
	chance, ok := l.chance(key)
	if !ok {
		return nil
	}
	out := bitset.New(l.options.count)
	for o, v := range l.options.values[key] {
		if v == chance {
			out.Add(o)
		}
	}
	return out
}

// ByChance reports whether an option is one of those of [LabelIndex.LeftToChance].
func (l *LabelIndex) ByChance(key, option int) bool {
	chance, ok := l.chance(key)
	return ok && l.options.values[key][option] == chance
}

// chance is the value of a label that no rule names, if there is one.
func (l *LabelIndex) chance(key int) (int32, bool) {
	if key < 0 || !l.picked[key] {
		return 0, false
	}
	chance, ok := l.dicts[key].ids[valueAny]
	return chance, ok
}

// Offered reports whether the label's value is part of what the cloud offers,
// rather than picked by the pool or the buyer.
func (l *LabelIndex) Offered(key int) bool { return !l.picked[key] }

// Keys are the label keys that rules mention, sorted.
func (l *LabelIndex) Keys() []string { return l.keys }

// OptionValue returns the number of an option's value for a key, or [Absent].
func (l *LabelIndex) OptionValue(key, option int) int32 { return l.options.values[key][option] }

// NodeValue returns the number of a node's value for a key, or [Absent].
func (l *LabelIndex) NodeValue(key, node int) int32 { return l.nodes.values[key][node] }

// Values is how many different values the key has; ValueName names one.
func (l *LabelIndex) Values(key int) int { return len(l.dicts[key].names) }

// ValueName returns the text of a value, and whether it is a value that can be
// written down rather than a stand-in.
func (l *LabelIndex) ValueName(key int, value int32) (string, bool) {
	name, present := l.text(key, value)
	return name, present && name != valueAny && name != noderules.NewHostname
}

// text is a value as requirements see it, and whether there is one.
func (l *LabelIndex) text(key int, value int32) (string, bool) {
	if value == Absent {
		return "", false
	}
	return l.dicts[key].names[value], true
}

// Matching returns the options whose labels meet all requirements; nil means
// every option. The result is shared: do not change it. Precondition: some rule of
// the problem mentions the keys.
func (l *LabelIndex) Matching(rs model.Requirements) bitset.Set { return l.matching(&l.options, rs) }

// NodesMatching is Matching for existing nodes.
func (l *LabelIndex) NodesMatching(rs model.Requirements) bitset.Set { return l.matching(&l.nodes, rs) }

// matching looks the answer up. Requirements that are not the problem's own, such as
// those of a class that a caller made up, are answered without being remembered:
// reading never changes the index.
func (l *LabelIndex) matching(of *carriers, rs model.Requirements) bitset.Set {
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
	} else if key := l.index[rs[0].Key]; l.Values(key) >= manyValues {
		if _, known := of.lists[key]; !known {
			of.lists[key] = of.listed(key, l.Values(key))
		}
		if rs[0].Operator == model.In && of.lists[key].count(l.dicts[key].ids, rs[0].Values) < of.count/manyValues {
			return // soon found, and with many values there may be as many such masks
		}
	}
	of.masks[string(id)] = l.matching(of, rs)
}

// match are the carriers that meet one requirement.
func (l *LabelIndex) match(of *carriers, r model.Requirement) bitset.Set {
	key, table := l.table(r)
	set := bitset.New(of.count)
	if lists, known := of.lists[key]; known && !table[0] {
		for v, meets := range table[1:] {
			if meets {
				for _, i := range lists.order[lists.starts[v]:lists.starts[v+1]] {
					set.Add(int(i))
				}
			}
		}
		return set
	}
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
func (l *LabelIndex) anyOf(alternatives []model.Requirements) bitset.Set {
	return l.union(&l.options, alternatives)
}

// nodesAnyOf is anyOf for existing nodes.
func (l *LabelIndex) nodesAnyOf(alternatives []model.Requirements) bitset.Set {
	return l.union(&l.nodes, alternatives)
}

// union returns those that meet at least one alternative, nil for all. An alternative
// without requirements admits all.
func (l *LabelIndex) union(of *carriers, alternatives []model.Requirements) bitset.Set {
	var out bitset.Set
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

// contradicts reports whether the rules name values of a label of which none meets all of them,
// whatever machines have.
func (a NodeAffinity) contradicts(key string) bool {
	named := false
	possible := func(value string) bool {
		meets := func(rs model.Requirements) bool {
			return !slices.ContainsFunc(rs, func(r model.Requirement) bool { return r.Key == key && !r.Matches(value, true) })
		}
		return meets(a.All) && (len(a.Any) == 0 || slices.ContainsFunc(a.Any, meets))
	}
	for _, rs := range append([]model.Requirements{a.All}, a.Any...) {
		for _, r := range rs {
			if r.Key != key || r.Operator != model.In {
				continue
			}
			named = true
			if slices.ContainsFunc(r.Values, possible) {
				return false
			}
		}
	}
	return named
}

// NodeAffinityOf returns the rules of a class. The places of its volumes are not
// part of them: spread counting does not look at those.
func NodeAffinityOf(c *model.PodClass) NodeAffinity {
	return NodeAffinity{c.NodeRequirements, c.NodeAlternatives}
}

// keepOptionsMeeting keeps the options whose labels meet the rules.
func (l *LabelIndex) keepOptionsMeeting(left bitset.Set, a NodeAffinity) {
	left.Keep(l.Matching(a.All))
	left.Keep(l.anyOf(a.Any))
}

// keepNodesMeeting is keepOptionsMeeting for existing nodes.
func (l *LabelIndex) keepNodesMeeting(left bitset.Set, a NodeAffinity) {
	left.Keep(l.NodesMatching(a.All))
	left.Keep(l.nodesAnyOf(a.Any))
}

// OptionsMeeting returns the options whose labels meet the rules. The caller owns
// the set.
func (l *LabelIndex) OptionsMeeting(a NodeAffinity) bitset.Set {
	out := bitset.Full(l.options.count)
	l.keepOptionsMeeting(out, a)
	return out
}

// NodesMeeting is OptionsMeeting for existing nodes.
func (l *LabelIndex) NodesMeeting(a NodeAffinity) bitset.Set {
	out := bitset.Full(l.nodes.count)
	l.keepNodesMeeting(out, a)
	return out
}

// tolerationsMissing are, for n = 1, 2, ..., the options of NodePools with fewer than n taints
// that the pod does not tolerate.
func (s *Space) tolerationsMissing(tolerations []model.Toleration) []bitset.Set {
	var out []bitset.Set
	for _, p := range s.Pools {
		missing := 0
		for _, taint := range s.Problem.Pools[p.Index].Taints {
			if model.Untolerated([]model.Taint{taint}, tolerations) == nil {
				continue
			}
			if missing++; missing > len(out) {
				out = append(out, bitset.Full(len(s.Options)))
			}
			for o := p.First; o < p.End; o++ {
				out[missing-1].Remove(o)
			}
		}
	}
	return out
}

// requirementsMissing are the options that meet each of the pod's requirements on labels. Of
// several alternatives one has to be met, which counts as one change.
func (s *Space) requirementsMissing(a NodeAffinity) []bitset.Set {
	all := a.All
	if len(a.Any) == 1 {
		all = append(all[:len(all):len(all)], a.Any[0]...)
	}
	var out []bitset.Set
	for i := range all {
		if set := s.Labels.Matching(all[i : i+1]); set != nil {
			out = append(out, set)
		}
	}
	if len(a.Any) > 1 {
		if set := s.Labels.anyOf(a.Any); set != nil {
			out = append(out, set)
		}
	}
	return out
}

// resourcesMissing are, per resource, the options that have enough of it beside their daemons.
func (s *Space) resourcesMissing(size []int64) []bitset.Set {
	var out []bitset.Set
	for d, v := range size[:s.Dims.Axes] {
		if d != model.Pods && v > 0 {
			set := bitset.Full(len(s.Options))
			s.Capacity.keepAtLeast(set, d, v)
			out = append(out, set)
		}
	}
	return out
}
