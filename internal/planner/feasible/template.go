package feasible

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// maxChoices is how many combinations of open labels are offered per pool and instance
// type. Beyond it those are that pods ask for, and others up to so many.
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

// picks reports whether the choice agrees with what the offering itself decides, as regional
// machines are sold without the ultra disks that the size has in zones.
func (c *choice) picks(o *catalogOffering) bool {
	for _, key := range o.decided {
		if c.set[key] != unset && c.set[key] != o.values[key] {
			return false
		}
	}
	return true
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
	// last are the combinations of the labels that were open last, which most instance types
	// share; commonly those that the pool leaves open.
	last struct {
		open    []openKey
		choices []choice
	}
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
			t.fixed[k] = l.labels.dicts[k].id(noderules.NewHostname)
		case noderules.LabelRegistered, noderules.LabelInitialized:
			t.fixed[k] = l.labels.dicts[k].id("true")
		}
	}
	for k, key := range l.labels.keys {
		if t.fixed[k] == unset && !cat.sets[k] && mentions(t.reqs, key) {
			values := l.openValues(k, t.reqs)
			t.open = append(t.open, openKey{k, l.useful(k, values)})
			l.labels.picked[k] = true
			l.labels.varies[k] = l.labels.varies[k] || len(values) > 1
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
// some rule names and the pool allows, those next to them where numbers are compared, and one
// that no rule names. Of values that NodePools
// alone name, which are alike to all pods, there is the first.
func (l *labelCompiler) openValues(k int, reqs model.Requirements) []int32 {
	key := l.labels.keys[k]
	var meet []func(value string, present bool) bool
	for _, r := range reqs {
		if r.Key == key {
			meet = append(meet, matcherFor(r, len(l.named[k].names)))
		}
	}
	allowed := func(v string, present bool) bool {
		return !slices.ContainsFunc(meet, func(meets func(string, bool) bool) bool { return !meets(v, present) })
	}
	var names []string
	for _, v := range l.named[k].names {
		if allowed(v, true) {
			names = append(names, v)
		}
	}
	asked := l.asked[key]
	if asked == nil || !asked.compared {
		names = append(names, l.unasked(k, reqs, allowed)...)
		slices.Sort(names)
	}
	for _, v := range l.neighbours(k, reqs) {
		if asked == nil && len(names) > 0 {
			break // one value is as good as another
		}
		if allowed(v, true) && !slices.Contains(names, v) {
			names = append(names, v)
		}
	}
	var values []int32
	for _, v := range names {
		values = append(values, l.labels.dicts[k].id(v))
	}
	without := allowed("", false)
	if without {
		values = append(values, Absent)
	}
	if allowed(valueAny, true) && (!without || l.wantsAny(k, values)) {
		values = append(values, l.labels.dicts[k].id(valueAny))
	}
	return values
}

// wantsAny reports whether some class wants a value of a label, whichever it is, that none of
// these is.
func (l *labelCompiler) wantsAny(k int, values []int32) bool {
	for _, rs := range l.demandsFor(l.labels.keys[k]).others { // order does not matter
		meets := func(value string, present bool) bool {
			return !slices.ContainsFunc(rs, func(r model.Requirement) bool { return !r.Matches(value, present) })
		}
		if meets(valueAny, true) && !slices.ContainsFunc(values, func(v int32) bool { return meets(l.labels.text(k, v)) }) {
			return true
		}
	}
	return false
}

// neighbours are the integers that rules name for a label, and those next to them, ascending,
// where pods or the pool compare its values with numbers: whatever comparisons and exceptions
// leave of the integers, one of these is in it. There are none for other labels.
func (l *labelCompiler) neighbours(k int, reqs model.Requirements) []string {
	key := l.labels.keys[k]
	asked := l.asked[key]
	named, numbers := slices.Clone(l.named[k].names), asked != nil && asked.numbers
	for _, r := range reqs {
		if r.Key == key {
			named, numbers = append(named, r.Values...), numbers || comparesNumbers(r.Operator)
		}
	}
	if !numbers {
		return nil
	}
	var around []int64
	for _, text := range named {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < math.MaxInt64 {
			around = append(around, max(0, n-1), n, n+1)
		}
	}
	slices.Sort(around)
	around = slices.Compact(around)
	out := make([]string, len(around))
	for i, n := range around {
		out[i] = strconv.FormatInt(n, 10)
	}
	return out
}

// comparesNumbers reports whether an operator compares a value with a number.
func comparesNumbers(o model.Operator) bool {
	return o == model.Gt || o == model.Gte || o == model.Lt || o == model.Lte
}

// matcherFor answers a requirement for so many values.
func matcherFor(r model.Requirement, values int) func(value string, present bool) bool {
	if values <= few {
		return r.Matches
	}
	return r.Matcher()
}

// unasked is the first value that requirements name for a label and that is allowed, of those for
// which pods do not ask.
func (l *labelCompiler) unasked(k int, reqs model.Requirements, allowed func(string, bool) bool) []string {
	for _, r := range reqs {
		if r.Key != l.labels.keys[k] || r.Operator != model.In {
			continue
		}
		for _, v := range r.Values {
			if _, asked := l.named[k].ids[v]; !asked && allowed(v, true) {
				return []string{v}
			}
		}
	}
	return nil
}

// choices lists the combinations of open labels for one instance type.
func (l *labelCompiler) choices(t *template, ct *catalogType) []choice {
	open := slices.Clip(t.open)
	for _, o := range ct.open {
		if t.fixed[o.key] != unset {
			continue
		}
		allowed := openKey{key: o.key}
		for _, v := range o.values {
			if tablesAdmit(t.tables, o.key, v) {
				allowed.values = append(allowed.values, v)
			}
		}
		open = append(open, allowed)
	}
	same := func(a, b openKey) bool { return a.key == b.key && slices.Equal(a.values, b.values) }
	if t.last.choices == nil || !slices.EqualFunc(t.last.open, open, same) {
		t.last.open, t.last.choices = open, l.combine(t, open)
	}
	return t.last.choices
}

// combine lists the combinations of open labels: all of them, or where these are too many
// those that pods ask for, and as many others as may be.
func (l *labelCompiler) combine(t *template, open []openKey) []choice {
	ways := waysOf(open)
	if ways <= maxChoices {
		return t.product(open, ways)
	}
	var out []choice
	seen := map[string]bool{}
	add := func(c choice) {
		if key := fmt.Sprint(c.set); !seen[key] {
			seen[key] = true
			out = append(out, c)
		}
	}
	for _, rs := range l.demands {
		if c, met := l.meeting(t, open, rs); met {
			add(c)
		}
	}
	for _, c := range t.product(open, maxChoices) {
		if len(out) < maxChoices {
			add(c)
		}
	}
	return out
}

// waysOf is how many combinations open labels have; beyond a number that no machine has it is
// that number.
func waysOf(open []openKey) int {
	ways := 1
	for _, o := range open {
		ways = min(ways*len(o.values), 1<<40)
	}
	return ways
}

// product is the first combinations of open labels, at most so many.
func (t *template) product(open []openKey, most int) []choice {
	out := []choice{{set: t.fixed, template: t}}
	for _, o := range open {
		var next []choice
		for _, c := range out {
			for _, v := range o.values[:min(len(o.values), most-len(next))] {
				next = append(next, c.with(o.key, v))
			}
		}
		out = next
	}
	return out
}

// with is the choice with another label fixed.
func (c choice) with(key int, value int32) choice {
	set := slices.Clone(c.set)
	set[key] = value
	return choice{set: set, template: c.template}
}

// meeting is the first combination of open labels that meets requirements.
func (l *labelCompiler) meeting(t *template, open []openKey, rs model.Requirements) (choice, bool) {
	out := choice{set: slices.Clone(t.fixed), template: t}
	for _, o := range open {
		name := l.labels.keys[o.key]
		meets := func(v int32) bool {
			text, present := l.labels.text(o.key, v)
			return !slices.ContainsFunc(rs, func(r model.Requirement) bool { return r.Key == name && !r.Matches(text, present) })
		}
		i := slices.IndexFunc(o.values, meets)
		if i < 0 {
			return out, false
		}
		out.set[o.key] = o.values[i]
	}
	return out, true
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
func (l *labelCompiler) options(t *template, cat *catalog) int {
	n, c := 0, choice{set: slices.Clone(t.fixed), template: t}
	for _, o := range t.open {
		c.set[o.key] = Absent // whatever it is, it is one that the pool admits
	}
	ways := min(waysOf(t.open), max(maxChoices, len(l.demands)))
	for i := range cat.types {
		for o := range cat.types[i].offerings {
			if co := &cat.types[i].offerings[o]; !co.invalid && c.admits(co.values) {
				n++
			}
		}
	}
	return n * ways
}
