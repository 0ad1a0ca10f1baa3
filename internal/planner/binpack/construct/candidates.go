package construct

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// candidates are the classes of which the next item of a bin is chosen.
type candidates struct {
	// class lists them in no order; weight is, by the same place, how much the
	// class is preferred whatever is left in the bin.
	class  []int32
	weight []float64
	shapes shapes
	// need is the direction of the priced capacity that is left, priced again, and
	// room the capacity that is left; both padded. They are valid from aim and from
	// the beginning of choose on.
	need []float64
	room []int64
	// steps counts the work done, in candidates looked at.
	steps int64
}

// shapes are the sizes of all classes in the form in which choose walks them:
// padded with zeros to a multiple of four dimensions.
type shapes struct {
	stride int       // dimensions rounded up to a multiple of four
	size   []int64   // by class and dimension, in the caller's units
	scaled []float64 // by class and dimension, in scaled units
	// blocks has, by class, one bit for every four dimensions in which it has a size.
	blocks []uint16
}

func newShapes(c *reduced.Problem) shapes {
	n, stride := len(c.Classes), (c.Dims+3)/4*4
	s := shapes{stride: stride, size: make([]int64, n*stride), scaled: make([]float64, n*stride), blocks: make([]uint16, n)}
	for i := range c.Classes {
		copy(s.size[i*stride:], c.Classes[i].Size)
		copy(s.scaled[i*stride:], c.Classes[i].Scaled)
		for d, v := range c.Classes[i].Size {
			if v != 0 {
				s.blocks[i] |= 1 << min(d/4, 15)
			}
		}
	}
	return s
}

func newCandidates(c *reduced.Problem) candidates {
	n, s := len(c.Classes), newShapes(c)
	return candidates{class: make([]int32, 0, n), weight: make([]float64, 0, n), shapes: s,
		need: make([]float64, s.stride), room: make([]int64, s.stride)}
}

func (l *candidates) clear() { l.class, l.weight = l.class[:0], l.weight[:0] }

func (l *candidates) add(class int32, weight float64) {
	l.class, l.weight = append(l.class, class), append(l.weight, weight)
}

// drop removes the candidate at place k; the last one takes its place.
func (l *candidates) drop(k int) {
	last := len(l.class) - 1
	l.class[k], l.weight[k] = l.class[last], l.weight[last]
	l.class, l.weight = l.class[:last], l.weight[:last]
}

// dropBlocked removes the candidates which can no longer go into the bin because
// of conflicts or their cap.
func (l *candidates) dropBlocked(b *OpenBin) {
	for k := 0; k < len(l.class); {
		if i := l.class[k]; b.Blocked(i) || int(b.got[i]) >= b.c.Classes[i].PerBin {
			l.drop(k)
			continue
		}
		k++
	}
}

// aim sets need for the capacity free at prices w per scaled unit.
func (l *candidates) aim(free []int64, scale, w []float64) {
	norm := 0.0
	for k, v := range free {
		l.need[k] = (float64(v)/scale[k] + 1e-9) * (w[k] + 1e-12)
		norm += l.need[k] * l.need[k]
	}
	norm = 1 / math.Sqrt(norm)
	for k := range free {
		l.need[k] *= norm * (w[k] + 1e-12)
	}
}

// choose returns the place of the best candidate for a bin with so much free, or
// -1, and drops those which no longer fit, as far as it looks at them: as a cosine
// is at most one, a candidate of no more weight than the score of the best one so
// far is not better. It moves the best to the front, where the next look begins.
//
// The score is weight·cos⁸ of the angle between the item and need, both priced by
// view. This is where the time goes: the vectors are padded to a multiple of four
// so that they can be walked four at a time, past those in which the item has
// nothing.
func (l *candidates) choose(free []int64, v *View) int {
	s := &l.shapes
	st, best, at := s.stride, math.Inf(-1), -1
	looked := 0
	copy(l.room, free)
next:
	for k := 0; k < len(l.class); k++ {
		if l.weight[k] <= best {
			continue
		}
		looked++
		cos := 0.0
		i := int(l.class[k])
		for j := 0; j < st; j += 4 {
			if s.blocks[i]>>min(j/4, 15)&1 == 0 {
				continue
			}
			o := i*st + j
			z, r := s.size[o:o+4:o+4], l.room[j:j+4:j+4]
			if z[0] > r[0] || z[1] > r[1] || z[2] > r[2] || z[3] > r[3] {
				l.drop(k)
				k--
				continue next
			}
			x, n := s.scaled[o:o+4:o+4], l.need[j:j+4:j+4]
			cos += x[0]*n[0] + x[1]*n[1] + x[2]*n[2] + x[3]*n[3]
		}
		cos *= float64(v.items[i].unit)
		cos *= cos
		cos *= cos
		cos *= cos
		if cos *= l.weight[k]; cos > best {
			best, at = cos, k
		}
	}
	l.steps += int64(looked + len(l.class)/4)
	if at > 0 {
		l.class[0], l.class[at] = l.class[at], l.class[0]
		l.weight[0], l.weight[at] = l.weight[at], l.weight[0]
		at = 0
	}
	return at
}
