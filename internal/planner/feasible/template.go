package feasible

import (
	"slices"
	"strconv"

	"github.com/nodeautoprovision/nap/internal/model"
)

// maxChoices bounds the combinations of open labels per pool and instance
// type; beyond it the later combinations are not offered.
const maxChoices = 256

// unset says that a label is not fixed by a pool or a choice: the instance type and
// the offering decide its value.
const unset = int32(-2)

// choice fixes the labels that a pool or an instance type leaves to the buyer,
// and holds the pool's requirements on all the others.
type choice struct {
	// set are the values by key, unset where the type and offering decide.
	set []int32
	// template is that of the pool. Its requirements hold where set is unset.
	template *template
}

// admits reports whether an offering's labels meet the pool's requirements.
func (c *choice) admits(values []int32) bool {
	for _, t := range c.template.tables {
		if c.set[t.key] == unset && !t.table[values[t.key]+1] {
			return false
		}
	}
	return true
}

// template is what a pool says about labels.
type template struct {
	// tables answer the pool's requirements, one each, for the values known so far.
	tables []keyTable
	// open are the labels of the pool's own of which it may pick the value.
	open []openKey
	// fixed are the values by key that every node of the pool has, else unset.
	fixed []int32
	// reqs are the pool's requirements, and its labels as requirements.
	reqs model.Requirements
	// common are the combinations of the labels that the pool leaves open, once
	// they are known.
	common []choice
}

// keyTable is one requirement on a key, answered for every value: entry 0 is the answer
// for an absent label, entry v+1 that for value v.
type keyTable struct {
	key   int
	table []bool
}

// openKey is a label whose value may be picked.
type openKey struct {
	key int
	// values may be picked, [Absent] for no label at all.
	values []int32
}

// forPool splits the pool's requirements into those on labels that the cloud
// sets, which filter, and those on labels of its own, which leave a choice.
func (l *labelCompiler) forPool(pool *model.Pool, cat *catalog) *template {
	t := &template{fixed: make([]int32, len(l.labels.keys))}
	for k := range t.fixed {
		t.fixed[k] = unset
	}
	t.reqs = slices.Clone(pool.Requirements)
	for k, key := range l.labels.keys {
		if v, ok := pool.Labels[key]; ok && !mentions(pool.Requirements, key) {
			t.reqs = append(t.reqs, model.Requirement{Key: key, Operator: model.In, Values: []string{v}})
		}
		switch key {
		case model.LabelNodePool:
			t.fixed[k] = l.labels.dicts[k].id(pool.Name)
		case model.LabelHostname:
			t.fixed[k] = l.labels.dicts[k].id(valueNew)
		case labelRegistered, labelInitialized:
			t.fixed[k] = l.labels.dicts[k].id("true")
		}
	}
	for k, key := range l.labels.keys {
		if t.fixed[k] == unset && !cat.sets[k] && mentions(t.reqs, key) {
			t.open = append(t.open, openKey{k, l.openValues(k, t.reqs)})
			l.labels.picked[k] = true
			l.labels.varies[k] = l.labels.varies[k] || len(t.open[len(t.open)-1].values) > 1
		}
	}
	for _, r := range t.reqs {
		k, table := l.labels.table(r)
		t.tables = append(t.tables, keyTable{k, table})
	}
	return t
}

// mentions reports whether one of the requirements is on the key.
func mentions(rs model.Requirements, key string) bool {
	return slices.ContainsFunc(rs, func(r model.Requirement) bool { return r.Key == key })
}

// openValues lists the values that a pool's own label may take: those that
// some rule names and the pool allows, and one that no rule names.
func (l *labelCompiler) openValues(k int, reqs model.Requirements) []int32 {
	key := l.labels.keys[k]
	allowed := func(v string, present bool) bool {
		for _, r := range reqs {
			if r.Key == key && !r.Matches(v, present) {
				return false
			}
		}
		return true
	}
	var values []int32
	for _, v := range l.named[k] {
		if allowed(v, true) {
			values = append(values, l.labels.dicts[k].id(v))
		}
	}
	if allowed("", false) {
		return append(values, Absent)
	}
	if allowed(valueAny, true) {
		return append(values, l.labels.dicts[k].id(valueAny))
	}
	if len(values) == 0 {
		// Only comparisons are left: the integer next to a bound, if any fits.
		for _, r := range reqs {
			if r.Key != key || len(r.Values) != 1 {
				continue
			}
			bound, err := strconv.ParseInt(r.Values[0], 10, 64)
			if err != nil {
				continue
			}
			for _, v := range []int64{bound, bound + 1, bound - 1} {
				if text := strconv.FormatInt(v, 10); allowed(text, true) {
					return append(values, l.labels.dicts[k].id(text))
				}
			}
		}
	}
	return values
}

// choices lists the combinations of open labels for one instance type.
func (l *labelCompiler) choices(t *template, ct *catalogType) []choice {
	if t.common == nil {
		t.common = t.combine([]choice{{set: t.fixed, template: t}}, t.open)
	}
	var open []openKey
	for _, o := range ct.open {
		if t.fixed[o.key] != unset {
			continue
		}
		var allowed []int32
		for _, v := range o.values {
			if tablesAdmit(t.tables, o.key, v) {
				allowed = append(allowed, v)
			}
		}
		open = append(open, openKey{o.key, allowed})
	}
	return t.combine(t.common, open)
}

// combine is every choice with every value of the open labels.
func (t *template) combine(out []choice, open []openKey) []choice {
	for _, o := range open {
		var next []choice
		for _, c := range out {
			for _, v := range o.values {
				set := slices.Clone(c.set)
				set[o.key] = v
				next = append(next, choice{set: set, template: t})
			}
		}
		out = next[:min(len(next), maxChoices)]
	}
	return out
}

// tablesAdmit reports whether a value meets the requirements on its key.
func tablesAdmit(tables []keyTable, key int, value int32) bool {
	for _, t := range tables {
		if t.key == key && !t.table[value+1] {
			return false
		}
	}
	return true
}

// options is how many options of a catalogue a pool has, if its types leave nothing
// to the buyer.
func (t *template) options(cat *catalog) int {
	n, ways, c := 0, 1, choice{set: slices.Clone(t.fixed), template: t}
	for _, o := range t.open {
		c.set[o.key] = Absent // whatever it is, it is one that the pool admits
		ways = min(ways*len(o.values), maxChoices)
	}
	for i := range cat.types {
		for o := range cat.types[i].offerings {
			if co := &cat.types[i].offerings[o]; !co.invalid && c.admits(co.values) {
				n++
			}
		}
	}
	return n * ways
}
