package fleet

import (
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Amounts are quantities by resource name, independent of any problem's axes:
// milli-cores for cpu, bytes for memory and storage, counts for the rest.
type Amounts struct {
	CPU, Memory, Storage, Pods int64
	// Extended are all other resources that are not zero, sorted by name.
	Extended []Amount
}

// Amount is a quantity of one extended resource.
type Amount struct {
	Name  string
	Value int64
}

// Set stores a quantity under its Kubernetes resource name, keeping Extended
// sorted.
func (a *Amounts) Set(name string, value int64) {
	switch name {
	case "cpu":
		a.CPU = value
	case "memory":
		a.Memory = value
	case "ephemeral-storage":
		a.Storage = value
	case "pods":
		a.Pods = value
	default:
		i, found := a.search(name)
		switch {
		case found && value == 0:
			a.Extended = slices.Delete(a.Extended, i, i+1)
		case found:
			a.Extended[i].Value = value
		case value != 0:
			a.Extended = slices.Insert(a.Extended, i, Amount{name, value})
		}
	}
}

// Get returns the quantity under a Kubernetes resource name, zero when absent.
func (a *Amounts) Get(name string) int64 {
	switch name {
	case "cpu":
		return a.CPU
	case "memory":
		return a.Memory
	case "ephemeral-storage":
		return a.Storage
	case "pods":
		return a.Pods
	}
	if i, found := a.search(name); found {
		return a.Extended[i].Value
	}
	return 0
}

func (a *Amounts) search(name string) (int, bool) {
	return slices.BinarySearchFunc(a.Extended, name, func(e Amount, n string) int { return strings.Compare(e.Name, n) })
}

// IsZero reports whether nothing is set.
func (a *Amounts) IsZero() bool {
	return a.CPU == 0 && a.Memory == 0 && a.Storage == 0 && a.Pods == 0 && len(a.Extended) == 0
}

// Names lists the resources that are not zero, fixed ones first.
func (a *Amounts) Names() []string {
	var names []string
	for _, name := range model.NewAxes() {
		if a.Get(name) != 0 {
			names = append(names, name)
		}
	}
	for _, e := range a.Extended {
		names = append(names, e.Name)
	}
	return names
}

// Vector places the amounts on the axes of a problem. Resources that no axis
// names are left out.
func (a *Amounts) Vector(axes model.Axes) model.Resources {
	v := make(model.Resources, len(axes))
	a.addTo(v, axes)
	return v
}

// addTo adds the amounts to a vector in place, saturating.
func (a *Amounts) addTo(v model.Resources, axes model.Axes) {
	v[model.CPU] = saturatingAdd(v[model.CPU], a.CPU)
	v[model.Memory] = saturatingAdd(v[model.Memory], a.Memory)
	v[model.EphemeralStorage] = saturatingAdd(v[model.EphemeralStorage], a.Storage)
	v[model.Pods] = saturatingAdd(v[model.Pods], a.Pods)
	for _, e := range a.Extended {
		if i := axes.Index(e.Name); i >= 0 {
			v[i] = saturatingAdd(v[i], e.Value)
		}
	}
}

// fill returns a with the zero quantities replaced by those of o: a kubelet that
// has not reported a device yet will.
func (a Amounts) fill(o Amounts) Amounts {
	out := a
	out.Extended = slices.Clone(a.Extended)
	for _, name := range o.Names() {
		if out.Get(name) == 0 {
			out.Set(name, o.Get(name))
		}
	}
	return out
}

// with is a copy with another value of one resource.
func (a Amounts) with(name string, value int64) Amounts {
	a.Extended = slices.Clone(a.Extended)
	a.Set(name, value)
	return a
}

// reaxis carries a vector from one set of axes to another.
func reaxis(v model.Resources, from, to model.Axes) model.Resources {
	if len(from) >= len(to) && slices.Equal(from[:len(to)], to) {
		return v[:min(len(v), len(to)):min(len(v), len(to))]
	}
	out := make(model.Resources, len(to))
	for i, name := range to {
		if j := from.Index(name); j >= 0 {
			out[i] = v.Get(j)
		}
	}
	return out
}

func saturatingAdd(a, b int64) int64 {
	const maxInt64 = 1<<63 - 1
	if s := a + b; a <= 0 || b <= 0 || s > 0 {
		return s
	}
	return maxInt64
}
