package feasible

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// askedLabel is what pods and daemons ask of a label.
type askedLabel struct {
	// values are those that they name. All others are alike to them, unless compared is set:
	// they compare values with a number, or count pods by them.
	values   map[string]bool
	compared bool
	// demands are what classes demand of it, once something has asked for it.
	demands *labelDemands
}

// labelDemands are what classes demand of a label.
type labelDemands struct {
	// none says that some class demands nothing, so that it may use any value.
	none bool
	// named are the values of which a class demands one, others what classes demand otherwise.
	named  map[string]bool
	others map[string]model.Requirements
}

// domain collects a key by which pods are counted.
func (l *labelCompiler) domain(key string) { l.ask(key).compared = true }

// ask collects a key that pods or daemons ask for.
func (l *labelCompiler) ask(key string) *askedLabel {
	l.key(key)
	if l.asked[key] == nil {
		l.asked[key] = &askedLabel{values: map[string]bool{}}
	}
	return l.asked[key]
}

// useful are those of the values of a label that some class may use, or the first where no
// class may use any. Values by which pods are counted stay.
func (l *labelCompiler) useful(k int, values []int32) []int32 {
	asked := l.asked[l.labels.keys[k]]
	if len(values) < 2 || asked == nil || asked.compared {
		return values
	}
	if asked.demands == nil {
		asked.demands = l.demandsOn(l.labels.keys[k])
	}
	if asked.demands.none {
		return values
	}
	out := slices.DeleteFunc(slices.Clone(values), func(v int32) bool {
		name, present := "", v != Absent
		if present {
			name = l.labels.dicts[k].names[v]
		}
		return !asked.demands.meets(name, present)
	})
	if len(out) == 0 {
		return values[:1]
	}
	return out
}

// demandsOn collects what classes demand of a label.
func (l *labelCompiler) demandsOn(key string) *labelDemands {
	d := &labelDemands{named: map[string]bool{}, others: map[string]model.Requirements{}}
	for _, rs := range l.demands {
		var own model.Requirements
		for _, r := range rs {
			if r.Key == key {
				own = append(own, r)
			}
		}
		switch {
		case len(own) == 0:
			d.none = true
			return d
		case len(own) == 1 && own[0].Operator == model.In:
			for _, v := range own[0].Values {
				d.named[v] = true
			}
		default:
			d.others[RequirementsKey(own)] = own
		}
	}
	return d
}

// meets reports whether some class may use a value.
func (d *labelDemands) meets(value string, present bool) bool {
	if present && d.named[value] {
		return true
	}
	for _, rs := range d.others { // order does not matter
		if !slices.ContainsFunc(rs, func(r model.Requirement) bool { return !r.Matches(value, present) }) {
			return true
		}
	}
	return false
}
