package pack

import "math"

// filler fills one bin at a time. Its slices are scratch, reused for every bin.
type filler struct {
	c       *core
	free    []int64
	got     []int32 // by class, how many are in the bin; non-zero for touched
	touched []int32
	owner   []int32 // by conflict id, 1 + the class that has it in this bin
	cand    []int32
	vec     []float64 // by position in cand, the priced size divided by its length to some power
	need    []float64
	worth   []float64
	steps   int64
}

func newFiller(c *core) *filler {
	n := len(c.classes)
	return &filler{
		c: c, free: make([]int64, c.d), got: make([]int32, n), owner: make([]int32, c.nconf),
		touched: make([]int32, 0, n), cand: make([]int32, 0, n), vec: make([]float64, 0, n*c.d), need: make([]float64, c.d),
		worth: make([]float64, n),
	}
}

// begin empties the bin and makes it one of kind t.
func (f *filler) begin(t int32) {
	for _, i := range f.touched {
		f.got[i] = 0
		for _, id := range f.c.classes[i].conf {
			f.owner[id] = 0
		}
	}
	f.touched = f.touched[:0]
	copy(f.free, f.c.kinds[t].cap)
}

// put adds n items of class i, which must fit.
func (f *filler) put(i int32, n int) {
	cl := &f.c.classes[i]
	if f.got[i] == 0 {
		f.touched = append(f.touched, i)
		for _, id := range cl.conf {
			f.owner[id] = i + 1
		}
	}
	f.got[i] += int32(n)
	for d, v := range cl.size {
		f.free[d] -= v * int64(n)
	}
}

// take removes n items of class i. The class stays in touched.
func (f *filler) take(i int32, n int) {
	cl := &f.c.classes[i]
	f.got[i] -= int32(n)
	for d, v := range cl.size {
		f.free[d] += v * int64(n)
	}
	if f.got[i] == 0 {
		for _, id := range cl.conf {
			f.owner[id] = 0
		}
		for k, t := range f.touched {
			if t == i {
				f.touched = append(f.touched[:k], f.touched[k+1:]...)
				break
			}
		}
	}
}

// blocked tells whether a conflict keeps class i out of the bin.
func (f *filler) blocked(i int32) bool {
	for _, id := range f.c.classes[i].conf {
		if o := f.owner[id]; o != 0 && o != i+1 {
			return true
		}
	}
	return false
}

// mostPerBin keeps counts within a bin in 32 bits.
const mostPerBin = 1 << 30

// room is how many of at most n items of class i still fit in the bin.
func (f *filler) room(i int32, n int) int {
	cl := &f.c.classes[i]
	n = min(n, cl.perBin-int(f.got[i]), mostPerBin-int(f.got[i]))
	for d, v := range cl.size {
		if v > f.free[d] {
			return 0
		}
		if v > 0 {
			if k := f.free[d] / v; k < int64(n) {
				n = int(k)
			}
		}
	}
	if n > 0 && len(cl.conf) > 0 && f.blocked(i) {
		return 0
	}
	return max(0, n)
}

// rule is a way to choose the next item for a bin.
type rule struct {
	// big is how much size counts: 0 chooses by direction alone, 1 by the plain
	// dot product with what is left, which prefers large items.
	big float64
	// noise is how far a random factor may change a choice.
	noise float64
}

// fill adds items of rem to the bin, whose price per scaled unit of each
// dimension is w, until nothing more fits. rem is not changed. value, if not
// nil, is what an item of each class is worth; classes worth more than their
// size in w are preferred.
//
// The next item is the one best aligned with the capacity left: the dot product
// of the two, each dimension weighted by its price (Panigrahy et al. 2011).
func (f *filler) fill(t int32, classes []int32, rem []int, w, value []float64, r rule, rng *random) {
	c, d := f.c, f.c.d
	f.cand, f.vec = f.cand[:0], f.vec[:0]
	for _, i := range classes {
		if rem[i] == int(f.got[i]) || !fits(c.classes[i].size, f.free) {
			continue
		}
		f.cand = append(f.cand, i)
		f.vec = append(f.vec, c.classes[i].fsize...)
	}
	f.weigh(w, value, r, rng)
	for len(f.cand) > 0 {
		total := 0.0
		for k := range d {
			f.need[k] = (float64(f.free[k])/c.scale[k] + 1e-9) * (w[k] + 1e-12)
			total += f.need[k]
		}
		best, at := math.Inf(-1), -1
		f.steps += int64(len(f.cand))
		for k := 0; k < len(f.cand); k++ {
			i := f.cand[k]
			if !fits(c.classes[i].size, f.free) || rem[i] == int(f.got[i]) {
				f.drop(k)
				k--
				continue
			}
			s := 0.0
			v := f.vec[k*d : k*d+d]
			for j, x := range v {
				s += x * f.need[j]
			}
			if s > best {
				best, at = s, k
			}
		}
		if at < 0 {
			break
		}
		i := f.cand[at]
		n := f.room(i, rem[i]-int(f.got[i]))
		if n == 0 {
			f.drop(at)
			continue
		}
		f.put(i, max(1, n/8))
		if int(f.got[i]) >= c.classes[i].perBin {
			f.drop(at)
		}
	}
}

// weigh turns the sizes in vec into the vectors that fill compares with what is
// left in the bin.
func (f *filler) weigh(w, value []float64, r rule, rng *random) {
	d := f.c.d
	for k, i := range f.cand {
		v := f.vec[k*d : k*d+d]
		norm, cost := 0.0, 0.0
		for j := range v {
			v[j] *= w[j] + 1e-12
			norm += v[j] * v[j]
			cost += v[j]
		}
		norm = math.Sqrt(norm) + 1e-12
		s := 1 / norm
		switch r.big {
		case 0:
		case 1:
			s = 1
		default:
			s = math.Exp((r.big - 1) * math.Log(norm))
		}
		if value != nil {
			// Squared, so that a class worth more than its size comes first.
			q := value[i] / (cost + 1e-12)
			s *= q * q
		}
		if r.noise > 0 {
			s *= 1 + r.noise*(rng.float()-0.5)
		}
		for j := range v {
			v[j] *= s
		}
	}
}

// drop removes candidate k.
func (f *filler) drop(k int) {
	d, last := f.c.d, len(f.cand)-1
	f.cand[k] = f.cand[last]
	copy(f.vec[k*d:k*d+d], f.vec[last*d:last*d+d])
	f.cand = f.cand[:last]
	f.vec = f.vec[:last*d]
}

// worthOf is the value of what is in the bin.
func (f *filler) worthOf(value []float64) float64 {
	v := 0.0
	for _, i := range f.touched {
		v += value[i] * float64(f.got[i])
	}
	return v
}
