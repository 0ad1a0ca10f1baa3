package binpack

import "math"

// filler fills one bin at a time. Its slices are scratch, reused for every bin.
type filler struct {
	c       *core
	free    []int64
	got     []int32 // by class, how many are in the bin; non-zero for touched
	touched []int32
	owner   []int32 // by conflict id, 1 + the class that has it in this bin
	cand    []int32
	weight  []float64 // by position in cand, how much the class is preferred whatever is left
	size    []int64   // by class, padded
	fsize   []float64 // the same in scaled units
	blocks  []uint16  // by class, one bit for every four dimensions in which it has a size
	view    *view     // of the kind that is filled
	own     *view     // for kinds whose view nobody keeps
	need    []float64 // the direction of the priced capacity that is left, priced again, padded
	turn    int       // where the next look at very many classes begins
	stride  int       // dimensions rounded up to a multiple of four
	room4   []int64   // free, padded
	steps   int64
}

func newFiller(c *core) *filler {
	n := len(c.classes)
	st := (c.d + 3) / 4 * 4
	f := &filler{
		c: c, stride: st, room4: make([]int64, st), free: make([]int64, c.d), got: make([]int32, n), owner: make([]int32, c.nconf),
		touched: make([]int32, 0, n), cand: make([]int32, 0, n), need: make([]float64, st),
		weight: make([]float64, 0, n), size: make([]int64, n*st), fsize: make([]float64, n*st), blocks: make([]uint16, n),
	}
	for i := range c.classes {
		copy(f.size[i*st:], c.classes[i].size)
		copy(f.fsize[i*st:], c.classes[i].fsize)
		for d, v := range c.classes[i].size {
			if v != 0 {
				f.blocks[i] |= 1 << min(d/4, 15)
			}
		}
	}
	f.own = f.newView()
	return f
}

// view is how a kind sees the items at its prices. It is worked out class by
// class, when needed.
type view struct {
	era   int32    // of the prices, any number but zero
	items []regard // by class
}

// regard is what a kind thinks of the items of a class.
type regard struct {
	era int32 // of the prices that the rest follows from
	// unit is one over the priced length of an item, weight how much it is
	// preferred whatever is left.
	unit, weight float32
}

func (f *filler) newView() *view { return &view{items: make([]regard, len(f.c.classes))} }

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
//
// With view v, which belongs to the kind, what it knows of its era is not worked
// out again; v may be nil.
func (f *filler) fill(v *view, classes []int32, rem []int, w, value []float64, r rule, rng *random) {
	c := f.c
	if f.view = v; v == nil {
		f.own.era++
		f.view = f.own
	}
	f.cand, f.weight = f.cand[:0], f.weight[:0]
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
		if f.view.items[i].era != f.view.era {
			f.weigh(i, w, value[i], r.big)
		}
		s := float64(f.view.items[i].weight)
		if r.noise > 0 {
			s *= 1 + r.noise*(rng.float()-0.5)
		}
		f.cand, f.weight = append(f.cand, i), append(f.weight, s)
		if len(f.cand) == maxCandidates {
			break
		}
	}
	f.steps += int64(n) / 4
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

// aim sets need for the capacity that is left.
func (f *filler) aim(w []float64) {
	norm := 0.0
	for k, v := range f.free {
		f.need[k] = (float64(v)/f.c.scale[k] + 1e-9) * (w[k] + 1e-12)
		norm += f.need[k] * f.need[k]
	}
	norm = 1 / math.Sqrt(norm)
	for k := range f.free {
		f.need[k] *= norm * (w[k] + 1e-12)
	}
}

// choose returns the best candidate, or -1, and drops those that no longer fit, as
// far as it looks at them: as a cosine is at most one, a candidate of no more
// weight than the best one so far scores is not better. The best is moved to the
// front, where the next look begins.
// This is where the time goes: the vectors are padded to a multiple of four so
// that they can be walked four at a time, past those in which the item has
// nothing.
func (f *filler) choose() int {
	st, best, at := f.stride, math.Inf(-1), -1
	looked := 0
	copy(f.room4, f.free)
next:
	for k := 0; k < len(f.cand); k++ {
		if f.weight[k] <= best {
			continue
		}
		looked++
		s := 0.0
		i := int(f.cand[k])
		for j := 0; j < st; j += 4 {
			if f.blocks[i]>>min(j/4, 15)&1 == 0 {
				continue
			}
			o := i*st + j
			z, r := f.size[o:o+4:o+4], f.room4[j:j+4:j+4]
			if z[0] > r[0] || z[1] > r[1] || z[2] > r[2] || z[3] > r[3] {
				f.drop(k)
				k--
				continue next
			}
			v, n := f.fsize[o:o+4:o+4], f.need[j:j+4:j+4]
			s += v[0]*n[0] + v[1]*n[1] + v[2]*n[2] + v[3]*n[3]
		}
		s *= float64(f.view.items[i].unit)
		s *= s
		s *= s
		s *= s
		if s *= f.weight[k]; s > best {
			best, at = s, k
		}
	}
	f.steps += int64(looked + len(f.cand)/4)
	if at > 0 {
		f.cand[0], f.cand[at] = f.cand[at], f.cand[0]
		f.weight[0], f.weight[at] = f.weight[at], f.weight[0]
		at = 0
	}
	return at
}

// weigh works out what the view thinks of a class.
func (f *filler) weigh(i int32, w []float64, value, big float64) {
	norm, cost := 1e-24, 0.0
	for j, x := range f.c.classes[i].fsize {
		v := x * (w[j] + 1e-12)
		norm += v * v
		cost += v
	}
	s := 1.0
	if big > 0 {
		s = math.Exp(big * 0.5 * math.Log(norm))
	}
	q := value / (cost + 1e-12)
	f.view.items[i] = regard{era: f.view.era, unit: float32(1 / math.Sqrt(norm)), weight: float32(s * q * q)}
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
	last := len(f.cand) - 1
	f.cand[k], f.weight[k] = f.cand[last], f.weight[last]
	f.cand, f.weight = f.cand[:last], f.weight[:last]
}

// worthOf is the value of what is in the bin.
func (f *filler) worthOf(value []float64) float64 {
	v := 0.0
	for _, i := range f.touched {
		v += value[i] * float64(f.got[i])
	}
	return v
}
