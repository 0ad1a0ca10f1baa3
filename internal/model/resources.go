package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The first axes of every resource vector. Extended resources (GPUs and the
// like) follow in the order of [Axes].
const (
	CPU              = iota // milli-cores
	Memory                  // bytes
	EphemeralStorage        // bytes
	Pods                    // pod slots
	fixedAxes
)

// Axes names the dimensions of the resource vectors of one problem. The first
// four are always cpu, memory, ephemeral-storage and pods.
type Axes []string

// NewAxes returns the four fixed axes followed by the extended resource names,
// sorted and without repetition.
func NewAxes(extended ...string) Axes {
	extra := slices.Clone(extended)
	slices.Sort(extra)
	axes := Axes{"cpu", "memory", "ephemeral-storage", "pods"}
	for _, name := range slices.Compact(extra) {
		if !slices.Contains(axes, name) {
			axes = append(axes, name)
		}
	}
	return axes
}

// Index returns the axis of a resource name, or -1.
func (a Axes) Index(name string) int { return slices.Index(a, name) }

// Resources is an amount along every axis of a problem: milli-cores for cpu,
// bytes for memory and storage, plain counts for pods and extended resources.
// A vector shorter than the axes means zero for the rest.
type Resources []int64

// Get returns the amount on one axis, zero when the vector is shorter.
func (r Resources) Get(axis int) int64 {
	if axis < len(r) {
		return r[axis]
	}
	return 0
}

// Add returns r+o as a new vector. Sums that would overflow stick at the
// largest int64, so that an absurd request stays absurd instead of turning
// negative.
func (r Resources) Add(o Resources) Resources {
	out := make(Resources, max(len(r), len(o)))
	for i := range out {
		out[i] = saturatingAdd(r.Get(i), o.Get(i))
	}
	return out
}

// Sub returns r-o as a new vector; the result may be negative.
func (r Resources) Sub(o Resources) Resources {
	out := make(Resources, max(len(r), len(o)))
	for i := range out {
		out[i] = r.Get(i) - o.Get(i)
	}
	return out
}

// Fits reports whether r is at most capacity on every axis.
func (r Resources) Fits(capacity Resources) bool {
	for i, amount := range r {
		if amount > capacity.Get(i) {
			return false
		}
	}
	return true
}

// ShareOf is the largest part that r takes of a capacity on any axis which that has.
func (r Resources) ShareOf(capacity Resources) float64 {
	most := 0.0
	for i, amount := range r {
		if all := capacity.Get(i); all > 0 {
			most = max(most, float64(amount)/float64(all))
		}
	}
	return most
}

// IsZero reports whether every amount is zero.
func (r Resources) IsZero() bool {
	return !slices.ContainsFunc(r, func(v int64) bool { return v != 0 })
}

// Format prints the non-zero amounts as a person would write them, in the
// order of the axes: "cpu 2.5, memory 2Gi, nvidia.com/gpu 1".
func (r Resources) Format(axes Axes) string {
	var parts []string
	for i, name := range axes {
		if v := r.Get(i); v != 0 {
			parts = append(parts, name+" "+axes.Amount(i, v))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// Amount prints an amount on an axis in the unit in which people write it.
func (a Axes) Amount(axis int, v int64) string {
	if axis < len(a) && strings.HasPrefix(a[axis], "hugepages-") {
		return formatBytes(v)
	}
	return FormatAmount(axis, v)
}

// FormatAmount prints one amount in the unit that its axis is written in.
func FormatAmount(axis int, v int64) string {
	switch axis {
	case CPU:
		return formatCores(v)
	case Memory, EphemeralStorage:
		return formatBytes(v)
	}
	return fmt.Sprintf("%d", v)
}

// formatCores prints millicores as such below one core, and as cores from there on, exactly.
func formatCores(v int64) string {
	if -1000 < v && v < 1000 && v != 0 {
		return fmt.Sprintf("%dm", v)
	}
	return strconv.FormatFloat(float64(v)/1000, 'f', -1, 64)
}

func formatBytes(v int64) string {
	sign := ""
	if v < 0 {
		sign, v = "-", -max(v, -math.MaxInt64)
	}
	units := []struct {
		size int64
		name string
	}{{1 << 40, "Ti"}, {1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}}
	for _, u := range units {
		if v < u.size {
			continue
		}
		whole, tenth := v/u.size, (v%u.size)*10/u.size
		if tenth == 0 || whole >= 1000 {
			return fmt.Sprintf("%s%d%s", sign, whole, u.name)
		}
		return fmt.Sprintf("%s%d.%d%s", sign, whole, tenth, u.name)
	}
	return fmt.Sprintf("%s%d", sign, v)
}

func saturatingAdd(a, b int64) int64 {
	s := a + b
	if a > 0 && b > 0 && s < 0 {
		return math.MaxInt64
	}
	if a < 0 && b < 0 && s >= 0 {
		return math.MinInt64
	}
	return s
}
