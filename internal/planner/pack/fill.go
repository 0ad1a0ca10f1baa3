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
	vec     []float64 // by position in cand, the direction of the priced size
	size    []int64   // by position in cand
	weight  []float64 // by position in cand, how much the class is preferred whatever is left
	need    []float64
	turn    int     // where the next look at very many classes begins
	stride  int     // dimensions rounded up to a multiple of four
	room4   []int64 // free, padded
	steps   int64
}

func newFiller(c *core) *filler {
	n := len(c.classes)
	st := (c.d + 3) / 4 * 4
	return &filler{
		c: c, stride: st, room4: make([]int64, st), free: make([]int64, c.d), got: make([]int32, n), owner: make([]int32, c.nconf),
		touched: make([]int32, 0, n), cand: make([]int32, 0, n), vec: make([]float64, 0, n*st), need: make([]float64, st),
		weight: make([]float64, 0, n), size: make([]int64, 0, n*st),
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

// maxCandidates is how many classes are considered for one bin.
const maxCandidates = 480

// rule is a way to choose the next item for a bin.
type rule struct {
	// big is how much size counts against direction: 0 looks at direction alone.
	big float64
	// noise is how far a random factor may change a choice.
	noise float64
}

// fill adds items of rem to the bin, whose price per scaled unit of each
// dimension is w, until nothing more fits. rem is not changed. Classes worth
// more in value than their size in w are preferred.
//
// The next item is the one best aligned with the capacity left, each dimension
// weighted by its price: the cosine of the two vectors to a high power, times
// the length of the item to a low one. (The dot product of Panigrahy et al. 2011
// is the first power of both; in bins that hold only a few items it lets a
// single dimension run out.)
func (f *filler) fill(classes []int32, rem []int, w, value []float64, r rule, rng *random) {
	c := f.c
	f.cand, f.vec, f.size, f.weight = f.cand[:0], f.vec[:0], f.size[:0], f.weight[:0]
	// With very many classes each bin looks at some only, every time at others.
	n, at := len(classes), 0
	if n > maxCandidates {
		f.turn += maxCandidates
		at = f.turn % n
	}
	for range n {
		i := classes[at]
		if at++; at == n {
			at = 0
		}
		cl := &c.classes[i]
		if rem[i] <= int(f.got[i]) || !fits(cl.size, f.free) || int(f.got[i]) >= cl.perBin || len(cl.conf) > 0 && f.blocked(i) {
			continue
		}
		f.cand = append(f.cand, i)
		f.vec = pad(append(f.vec, cl.fsize...), f.stride)
		f.size = pad(append(f.size, cl.size...), f.stride)
		if len(f.cand) == maxCandidates {
			break
		}
	}
	f.steps += int64(n) / 4
	f.weigh(w, value, r, rng)
	for len(f.cand) > 0 {
		f.aim(w)
		k := f.choose()
		if k < 0 {
			return
		}
		i := f.cand[k]
		left := rem[i] - int(f.got[i])
		n := f.room(i, left)
		if n > 0 {
			// Many at once when many fit, so that the work does not grow with
			// their number.
			f.put(i, (n+5)/6)
			left -= (n + 5) / 6
			if len(c.classes[i].conf) > 0 {
				f.dropBlocked()
				continue
			}
		}
		if n == 0 || left == 0 || int(f.got[i]) >= c.classes[i].perBin {
			f.drop(k)
		}
	}
}

// aim sets need to the direction of the priced capacity that is left.
func (f *filler) aim(w []float64) {
	norm := 0.0
	for k, v := range f.free {
		f.need[k] = (float64(v)/f.c.scale[k] + 1e-9) * (w[k] + 1e-12)
		norm += f.need[k] * f.need[k]
	}
	norm = 1 / math.Sqrt(norm)
	for k := range f.free {
		f.need[k] *= norm
	}
}

// choose returns the best candidate, or -1, and drops those that no longer fit.
// This is where the time goes: the vectors are padded to a multiple of four so
// that they can be walked four at a time.
func (f *filler) choose() int {
	st, best, at := f.stride, math.Inf(-1), -1
	f.steps += int64(len(f.cand))
	copy(f.room4, f.free)
next:
	for k := 0; k < len(f.cand); k++ {
		s := 0.0
		for o, j := k*st, 0; j < st; o, j = o+4, j+4 {
			z, r := f.size[o:o+4:o+4], f.room4[j:j+4:j+4]
			if z[0] > r[0] || z[1] > r[1] || z[2] > r[2] || z[3] > r[3] {
				f.drop(k)
				k--
				continue next
			}
			v, n := f.vec[o:o+4:o+4], f.need[j:j+4:j+4]
			s += v[0]*n[0] + v[1]*n[1] + v[2]*n[2] + v[3]*n[3]
		}
		s *= s
		s *= s
		s *= s
		if s *= f.weight[k]; s > best {
			best, at = s, k
		}
	}
	return at
}

// weigh turns the sizes in vec into directions, and sets the weight of each
// candidate.
func (f *filler) weigh(w, value []float64, r rule, rng *random) {
	d, st := f.c.d, f.stride
	for k, i := range f.cand {
		v := f.vec[k*st : k*st+d]
		norm, cost := 1e-24, 0.0
		for j := range v {
			v[j] *= w[j] + 1e-12
			norm += v[j] * v[j]
			cost += v[j]
		}
		inv := 1 / math.Sqrt(norm)
		for j := range v {
			v[j] *= inv
		}
		s := 1.0
		if r.big > 0 {
			s = math.Exp(r.big * 0.5 * math.Log(norm))
		}
		q := value[i] / (cost + 1e-12)
		s *= q * q
		if r.noise > 0 {
			s *= 1 + r.noise*(rng.float()-0.5)
		}
		f.weight = append(f.weight, s)
	}
}

// dropBlocked removes the candidates that can no longer go into the bin, because
// of conflicts or their cap.
func (f *filler) dropBlocked() {
	for k := 0; k < len(f.cand); {
		if i := f.cand[k]; f.blocked(i) || int(f.got[i]) >= f.c.classes[i].perBin {
			f.drop(k)
			continue
		}
		k++
	}
}

// drop removes candidate k.
func (f *filler) drop(k int) {
	d, last := f.stride, len(f.cand)-1
	f.cand[k] = f.cand[last]
	copy(f.vec[k*d:k*d+d], f.vec[last*d:last*d+d])
	copy(f.size[k*d:k*d+d], f.size[last*d:last*d+d])
	f.weight[k] = f.weight[last]
	f.cand, f.weight = f.cand[:last], f.weight[:last]
	f.vec, f.size = f.vec[:last*d], f.size[:last*d]
}

// worthOf is the value of what is in the bin.
func (f *filler) worthOf(value []float64) float64 {
	v := 0.0
	for _, i := range f.touched {
		v += value[i] * float64(f.got[i])
	}
	return v
}

// pad appends zeros up to a multiple of n.
func pad[T int64 | float64](s []T, n int) []T {
	for len(s)%n != 0 {
		s = append(s, 0)
	}
	return s
}
