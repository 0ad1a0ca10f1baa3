package construct

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// Filler fills one bin at a time. Its slices are scratch, reused for every bin.
type Filler struct {
	Bin   OpenBin
	cands candidates
	// own is the view of types whose view is not kept; each bin has an era of it.
	own *View
	// turn is where the next look at very many classes begins.
	turn int
	// steps counts the work done outside cands, in classes looked at.
	steps int64
}

// NewFiller fills bins with the classes of c; its bin is empty and of no type yet.
func NewFiller(c *reduced.Problem) *Filler {
	return &Filler{Bin: NewOpenBin(c), cands: newCandidates(c), own: NewView(c)}
}

// Work is the number of steps done so far.
func (f *Filler) Work() int64 { return f.steps + f.cands.steps }

// View is how a bin type sees the classes at its prices. It is worked out class
// by class, when needed.
type View struct {
	Era   int32    // of the prices; any number but zero
	items []regard // by class
}

// regard is what a bin type thinks of the items of a class.
type regard struct {
	era int32 // of the prices that the rest follows from
	// unit is one over the priced length of an item, weight how much it is
	// preferred whatever is left.
	unit, weight float32
}

// NewView knows nothing of any class yet; its era is zero, so set one before use.
func NewView(c *reduced.Problem) *View { return &View{items: make([]regard, len(c.Classes))} }

// weigh works out what the view thinks of a class at prices w per scaled unit: its
// weight is length^big times the square of value per priced size.
func (v *View) weigh(i int32, size, w []float64, value, big float64) {
	norm, cost := 1e-24, 0.0
	for j, x := range size {
		p := x * (w[j] + 1e-12)
		norm += p * p
		cost += p
	}
	s := 1.0
	if big > 0 {
		s = math.Exp(big * 0.5 * math.Log(norm))
	}
	q := value / (cost + 1e-12)
	v.items[i] = regard{era: v.Era, unit: float32(1 / math.Sqrt(norm)), weight: float32(s * q * q)}
}

// maxCandidates is how many classes are considered for one bin.
const maxCandidates = 480

// Rule is a way to choose the next item for a bin.
type Rule struct {
	// big is how much size counts against direction: 0 looks at direction alone.
	Big float64
	// noise is how far a random factor may change a choice.
	Noise float64
}

// Fill adds items of rem to the bin, whose price per scaled unit of each
// dimension is w, until nothing more fits. rem is by class, counts what is in the
// bin already, and is not changed. Classes worth more in value than their size in
// w are preferred.
//
// The next item is the one best aligned with the capacity left, each dimension
// weighted by its price: the cosine of the two vectors to a high power, times
// the length of the item to a low one. (The dot product of Panigrahy et al. 2011
// is the first power of both; in bins that hold only a few items it lets a
// single dimension run out.)
//
// With view v, which belongs to the type of the bin, what it knows of its era is
// not worked out again; v may be nil.
func (f *Filler) Fill(v *View, classes []int32, rem []int, w, value []float64, r Rule, rng *reduced.RNG) {
	if v == nil {
		f.own.Era++
		v = f.own
	}
	f.list(v, classes, rem, w, value, r, rng)
	b, l := &f.Bin, &f.cands
	for len(l.class) > 0 {
		l.aim(b.free, b.c.Scale, w)
		k := l.choose(b.free, v)
		if k < 0 {
			return
		}
		i := l.class[k]
		left := rem[i] - int(b.got[i])
		n := b.room(i, left)
		if n > 0 {
			// Many at once when many fit, so that the work does not grow with
			// their number.
			b.Put(i, (n+5)/6)
			left -= (n + 5) / 6
			if len(b.c.Classes[i].Conflicts) > 0 {
				l.dropBlocked(b)
				continue
			}
		}
		if n == 0 || left == 0 || int(b.got[i]) >= b.c.Classes[i].PerBin {
			l.drop(k)
		}
	}
}

// list makes candidates of the classes which the bin still admits. Of very many
// classes each bin looks at some only, every time at others.
func (f *Filler) list(v *View, classes []int32, rem []int, w, value []float64, r Rule, rng *reduced.RNG) {
	b, l := &f.Bin, &f.cands
	l.clear()
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
		if rem[i] <= int(b.got[i]) || !b.admits(i) {
			continue
		}
		if v.items[i].era != v.Era {
			v.weigh(i, b.c.Classes[i].Scaled, w, value[i], r.Big)
		}
		s := float64(v.items[i].weight)
		if r.Noise > 0 {
			s *= 1 + r.Noise*(rng.Float()-0.5)
		}
		l.add(i, s)
		if len(l.class) == maxCandidates {
			break
		}
	}
	f.steps += int64(n) / 4
}

// Polish exchanges single items of the bin for others that are worth more and
// fit in their place, and adds what fits, until no exchange helps or rounds are
// spent. It raises the value of a filling that is nearly full. classes must be
// ordered by falling value.
func (f *Filler) Polish(classes []int32, rem []int, value []float64, rounds int) {
	bin := &f.Bin
	for range rounds {
		gain, out, in := 1e-9, int32(-1), int32(-1)
		for _, a := range bin.Touched {
			bin.lend(a, 1)
			if b := f.dearest(classes, rem, value, a, value[a]+gain); b >= 0 {
				gain, out, in = value[b]-value[a], a, b
			}
			bin.lend(a, -1)
		}
		if out < 0 {
			return
		}
		bin.take(out, 1)
		bin.Put(in, 1)
		for _, b := range classes {
			if n := bin.room(b, rem[b]-int(bin.got[b])); n > 0 {
				bin.Put(b, n)
			}
		}
	}
}

// dearest returns the class of most value, and of more than floor, of which an
// item fits in place of one of class a, whose room has been lent, or -1.
func (f *Filler) dearest(classes []int32, rem []int, value []float64, a int32, floor float64) int32 {
	bin := &f.Bin
	for n, b := range classes {
		if value[b] <= floor {
			f.steps += int64(n+1) / 4
			return -1
		}
		cl := &bin.c.Classes[b]
		if reduced.Fits(cl.Size, bin.free) && b != a && rem[b] > int(bin.got[b]) && int(bin.got[b]) < cl.PerBin &&
			(len(cl.Conflicts) == 0 || !bin.blockedBut(b, a)) {
			f.steps += int64(n+1) / 4
			return b
		}
	}
	f.steps += int64(len(classes)) / 4
	return -1
}
