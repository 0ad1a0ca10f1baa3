package bound

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// knapsack is the linear relaxation of filling one bin with the items of most
// value: maximise value·a subject to size·a <= capacity and 0 <= a <= count. It
// has as few rows as there are dimensions, so it is solved by the simplex method
// for bounded variables with a tiny inverse.
type knapsack struct {
	d     int
	class []int32
	size  []float64 // by position, scaled
	value []float64
	upper []float64
	atTop []bool
	basic []int32 // by row: position of the class, or -1-d for the slack of d
	row   []int32 // by position, the row it is basic in, or -1
	inv   []float64
	x     []float64 // value of the basic variable by row
	pi    []float64
	w     []float64
	cap   []float64
	steps int64
}

func newKnapsack(d int) *knapsack {
	return &knapsack{d: d, basic: make([]int32, d), inv: make([]float64, d*d), x: make([]float64, d),
		pi: make([]float64, d), w: make([]float64, d), cap: make([]float64, d)}
}

// load states the problem for one bin of type t with at most limit items of
// each class.
func (k *knapsack) load(c *reduced.Problem, t int32, classes []int32, limit []int, value []float64) {
	kd := &c.Types[t]
	k.class, k.size, k.value, k.upper = k.class[:0], k.size[:0], k.value[:0], k.upper[:0]
	for _, i := range classes {
		cl := &c.Classes[i]
		n := min(limit[i], cl.PerBin)
		if n <= 0 || value[i] <= 0 || !reduced.Fits(cl.Size, kd.Capacity) {
			continue
		}
		for d, v := range cl.Size {
			if v > 0 && v*int64(min(n, 1<<20)) > kd.Capacity[d] {
				n = int(kd.Capacity[d] / v)
			}
		}
		k.class = append(k.class, i)
		k.size = append(k.size, cl.Scaled...)
		k.value = append(k.value, value[i])
		k.upper = append(k.upper, float64(n))
	}
	for d, v := range kd.Capacity {
		k.cap[d] = float64(v) / c.Scale[d]
	}
}

// solve finds the optimum, or comes near it when it would take too long.
func (k *knapsack) solve() {
	n, d := len(k.class), k.d
	k.atTop = resize(k.atTop, n)
	k.row = resize(k.row, n)
	clear(k.atTop)
	for i := range k.row {
		k.row[i] = -1
	}
	clear(k.inv)
	clear(k.pi)
	for r := range d {
		k.basic[r] = int32(-1 - r)
		k.inv[r*d+r] = 1
		k.x[r] = k.cap[r]
	}
	for range 20*d + 2*n {
		if !k.pivot() {
			return
		}
	}
}

// pivot moves one variable, and tells whether any was worth moving.
func (k *knapsack) pivot() bool {
	d := k.d
	k.steps += int64(len(k.class))
	best, at := 1e-9, -1
	for j, v := range k.value {
		if k.row[j] >= 0 {
			continue
		}
		r := v
		for q, s := range k.size[j*d : j*d+d] {
			r -= k.pi[q] * s
		}
		if k.atTop[j] {
			r = -r
		}
		if g := r * k.upper[j]; g > best && r > 1e-9*v {
			best, at = g, j
		}
	}
	slack := -1
	for q, p := range k.pi {
		if -p*k.cap[q] > best {
			best, slack = -p*k.cap[q], q
		}
	}
	if slack >= 0 {
		return k.enterSlack(slack)
	}
	if at < 0 {
		return false
	}
	return k.enterClass(at)
}

func (k *knapsack) enterSlack(q int) bool {
	d := k.d
	for r := range d {
		k.w[r] = k.inv[r*d+q]
	}
	row, step, top := k.ratio(1, math.Inf(1))
	if row < 0 {
		return false
	}
	k.exchange(row, step, top, int32(-1-q), 0, 1)
	return true
}

func (k *knapsack) enterClass(j int) bool {
	d := k.d
	for r := range d {
		s := 0.0
		for q, v := range k.size[j*d : j*d+d] {
			s += k.inv[r*d+q] * v
		}
		k.w[r] = s
	}
	dir, from := 1.0, 0.0
	if k.atTop[j] {
		dir, from = -1, k.upper[j]
	}
	row, step, top := k.ratio(dir, k.upper[j])
	if row < 0 { // it runs to its other bound
		for r := range d {
			k.x[r] -= dir * step * k.w[r]
		}
		k.atTop[j] = !k.atTop[j]
		return true
	}
	k.atTop[j] = false
	k.exchange(row, step, top, int32(j), from, dir)
	k.row[j] = int32(row)
	return true
}

// ratio is how far the entering variable may move: until a basic variable meets
// a bound (row, and whether the upper one) or by its own range (row -1).
func (k *knapsack) ratio(dir, own float64) (row int, step float64, top bool) {
	row, step = -1, own
	for r, w := range k.w {
		w *= dir
		switch {
		case w > 1e-10:
			if s := max(0, k.x[r]) / w; s < step {
				row, step, top = r, s, false
			}
		case w < -1e-10 && k.basic[r] >= 0:
			if s := max(0, k.upper[k.basic[r]]-k.x[r]) / -w; s < step {
				row, step, top = r, s, true
			}
		}
	}
	return row, step, top
}

// exchange makes the variable v basic in row; the one there leaves at its upper
// bound if top, else at zero.
func (k *knapsack) exchange(row int, step float64, top bool, v int32, from, dir float64) {
	d := k.d
	for r := range d {
		k.x[r] -= dir * step * k.w[r]
	}
	k.x[row] = from + dir*step
	if old := k.basic[row]; old >= 0 {
		k.row[old] = -1
		k.atTop[old] = top
	}
	k.basic[row] = v
	inv := 1 / k.w[row]
	for q := range d {
		k.inv[row*d+q] *= inv
	}
	for r := range d {
		if f := k.w[r]; r != row && f != 0 {
			for q := range d {
				k.inv[r*d+q] -= f * k.inv[row*d+q]
			}
		}
	}
	clear(k.pi)
	for r, b := range k.basic {
		if b >= 0 {
			for q := range d {
				k.pi[q] += k.value[b] * k.inv[r*d+q]
			}
		}
	}
}

// bound is a value that no filling exceeds, whether or not solve came to an end:
// for any prices of capacity, what the capacity costs plus the profit of every
// item worth more than its size does.
func (k *knapsack) bound(lambda []float64) float64 {
	d, u := k.d, 0.0
	for q, p := range lambda {
		u += max(0, p) * k.cap[q]
	}
	for j, v := range k.value {
		for q, s := range k.size[j*d : j*d+d] {
			v -= max(0, lambda[q]) * s
		}
		if v > 0 {
			u += v * k.upper[j]
		}
	}
	return u * (1 + 1e-9)
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
