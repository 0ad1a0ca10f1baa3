package feasible

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/validate"
)

// Unlimited is the capacity of a dimension that limits no pod: more than any amount that the
// planner accepts. Sums of two such amounts do not overflow.
const Unlimited = validate.AmountLimit

// Dimensions lays amounts of resources and numbers of disks out as vectors. Every
// vector of a [Space] has Count entries: first the axes of the problem, each in the
// unit of its axis (see [model.Resources]), then one per volume driver that limits
// some pod, in disks. Nothing changes it after compilation.
type Dimensions struct {
	// Count is the length of every vector, Axes plus one per driver.
	Count int
	// Axes is how many of the dimensions are axes of the problem. They come first.
	Axes int
	// Drivers are the volume drivers that pods use and that an instance type or node
	// limits, sorted. Driver i is dimension Axes+i.
	Drivers []string
	// names are those of the problem's axes. There may be fewer than Axes: a problem
	// that names no axes has still the four that every pod uses.
	names model.Axes
}

// newDimensions finds the dimensions of a problem.
func newDimensions(p *model.Problem) Dimensions {
	d := Dimensions{Axes: max(len(p.Axes), model.Pods+1), Drivers: limitedDrivers(p), names: p.Axes}
	d.Count = d.Axes + len(d.Drivers)
	return d
}

// limitedDrivers lists the volume drivers that pods use and that an instance type or
// node limits. A driver without any limit needs no dimension.
func limitedDrivers(p *model.Problem) []string {
	if !slices.ContainsFunc(p.Classes, func(c model.PodClass) bool { return len(c.Volumes) > 0 }) {
		return nil
	}
	limited := map[string]bool{}
	for c := range p.Catalogs {
		for t := range p.Catalogs[c].InstanceTypes {
			for d := range p.Catalogs[c].InstanceTypes[t].VolumeSlots {
				limited[d] = true
			}
		}
	}
	for n := range p.Nodes {
		for d := range p.Nodes[n].VolumeSlots {
			limited[d] = true
		}
	}
	var drivers []string
	for c := range p.Classes {
		for _, v := range p.Classes[c].Volumes {
			if limited[v.Driver] && !slices.Contains(drivers, v.Driver) {
				drivers = append(drivers, v.Driver)
			}
		}
	}
	slices.Sort(drivers)
	return drivers
}

// OfDriver returns the dimension that counts a volume driver's disks, or -1 when
// nothing limits them.
func (d *Dimensions) OfDriver(driver string) int {
	i := slices.Index(d.Drivers, driver)
	if i < 0 {
		return -1
	}
	return d.Axes + i
}

// Vector lays a resource vector and disks per driver out along the dimensions. What
// they do not mention is 0. The caller owns the vector.
func (d *Dimensions) Vector(r model.Resources, disks map[string]int) []int64 {
	v := make([]int64, d.Count)
	for i := range d.Axes {
		v[i] = r.Get(i)
	}
	for i, driver := range d.Drivers {
		v[d.Axes+i] = int64(disks[driver])
	}
	return v
}

// layCapacity writes into v what a node has. It differs from Vector in that a driver
// without a figure is unlimited, because the cloud then sets no limit.
func (d *Dimensions) layCapacity(v []int64, r model.Resources, slots map[string]int) {
	for i := range d.Axes {
		v[i] = r.Get(i)
	}
	for i, driver := range d.Drivers {
		v[d.Axes+i] = Unlimited
		if n, limited := slots[driver]; limited {
			v[d.Axes+i] = int64(n)
		}
	}
}

// Size is what one pod of a class takes, at least one pod slot. A disk that the pod
// mounts twice takes one slot. The caller owns the vector.
func (d *Dimensions) Size(c *model.PodClass) []int64 {
	if len(c.Volumes) == 0 {
		size := d.Vector(c.Requests, nil)
		if size[model.Pods] <= 0 {
			size[model.Pods]++
		}
		return size
	}
	disks := map[string]int{}
	seen := map[model.Volume]bool{}
	for _, v := range c.Volumes {
		if v.ID != "" && seen[v] {
			continue
		}
		seen[v] = true
		disks[v.Driver]++
	}
	return d.Vector(withPodSlot(c.Requests), disks)
}

// withPodSlot returns requests that take at least one pod slot.
func withPodSlot(r model.Resources) model.Resources {
	if r.Get(model.Pods) > 0 {
		return r
	}
	return r.Add(model.Resources{model.Pods: 1})
}

// axisName is the name of a resource, also of one that the problem does not name.
func (d *Dimensions) axisName(axis int) string {
	if axis < len(d.names) {
		return d.names[axis]
	}
	return fmt.Sprintf("axis %d", axis)
}

// format prints an amount of a dimension with its name and unit.
func (d *Dimensions) format(dim int, v int64) string {
	if dim >= d.Axes {
		return fmt.Sprintf("%s disks %d", d.Drivers[dim-d.Axes], v)
	}
	return d.axisName(dim) + " " + d.names.Amount(dim, v)
}

// Vectors of this family have one amount per dimension of a Space, or per dimension
// of a projection of it. Sizes are never negative; what is free may be.

// Limited reports whether an amount of free capacity is a limit at all. Sums and
// differences of Unlimited and real amounts stay above half of Unlimited.
func Limited(free int64) bool { return free < Unlimited/2 }

// Fits reports whether free has room for one size in every dimension. A dimension that
// is negative in free fits nothing.
func Fits(size, free []int64) bool {
	for d, v := range size {
		if v > free[d] {
			return false
		}
	}
	return true
}

// CountFitting is how often size fits into free, at most limit. A dimension that is
// negative in free fits nothing.
func CountFitting(size, free []int64, limit int64) int64 {
	n := limit
	for d, v := range size {
		if v > free[d] {
			return 0
		}
		if v > 0 && n > 1 {
			n = min(n, free[d]/v)
		}
	}
	return n
}

// Slack scores how much of free would be left after one size, as a sum over the
// limited dimensions in units of the size. Smaller is a tighter fit. Dimensions of which
// nothing is free do not count.
func Slack(size, free []int64) float64 {
	sum := 0.0
	for d, v := range size {
		if v > 0 && free[d] > 0 && Limited(free[d]) {
			sum += float64(free[d]-v) / float64(v)
		}
	}
	return sum
}

// Add adds n times size to free; a negative n takes it away.
func Add(free, size []int64, n int64) {
	for d, v := range size {
		free[d] += v * n
	}
}
