package binpack

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// mergeClasses fills c.classes and returns the distinct sets of compatible
// bins. Classes merge when a bin cannot tell them apart: same size and bins,
// and either no cap and no conflicts, or a cap of one and the same conflicts,
// because then the two exclude each other as their items do among themselves.
func (r *reducer) mergeClasses() []bitset.Set {
	p, c := r.p, r.c
	shared := sharedConflicts(p)
	c.ConflictIDs = len(shared)
	sigs := newSignatures(r.usable)
	classOf := make(map[string]int, len(p.Classes))
	c.Classes = make([]reduced.Class, 0, len(p.Classes))
	var key []byte
	most := largest(p, r.usable)
	numbers := make([]int, len(p.Classes))
	for i := range p.Classes {
		in := &p.Classes[i]
		if in.Count <= 0 {
			continue
		}
		if !validSize(in.Size, p.Dims) || in.PerBin < 0 {
			r.unplaced[i] = in.Count
			continue
		}
		sig := sigs.number(in.Bins)
		conf := denseConflicts(in.Conflicts, shared)
		per := in.PerBin
		if per == 0 || len(conf) == 0 && needless(in.Size, per, most) {
			per = math.MaxInt
		}
		numbers[i] = i
		cl := reduced.Class{
			Size: in.Size, Count: in.Count, PerBin: per, Priority: in.Priority, Conflicts: conf, Signature: sig, Origins: numbers[i : i+1 : i+1],
		}
		if per != math.MaxInt && per != 1 || per == 1 != (len(conf) > 0) {
			c.Classes = append(c.Classes, cl)
			continue
		}
		key = classKey(key[:0], &cl)
		if at, ok := classOf[string(key)]; ok {
			c.Classes[at].Count += in.Count
			c.Classes[at].Origins = append(c.Classes[at].Origins, i)
			continue
		}
		classOf[string(key)] = len(c.Classes)
		c.Classes = append(c.Classes, cl)
	}
	c.Signatures = len(sigs.all)
	return sigs.all
}

// signatures numbers the distinct sets of usable bins.
type signatures struct {
	usable bitset.Set
	all    []bitset.Set
	at     map[string]int
	// shared finds sets that several classes have in common by where they are.
	shared map[sharedSet]int
	key    []byte
}

type sharedSet struct {
	first *uint64
	words int
}

func newSignatures(usable bitset.Set) *signatures {
	return &signatures{usable: usable, at: map[string]int{}, shared: map[sharedSet]int{}}
}

// number of a set, as far as its bins are usable.
func (s *signatures) number(set bitset.Set) int {
	var id sharedSet
	if len(set) > 0 {
		id = sharedSet{&set[0], len(set)}
		if sig, ok := s.shared[id]; ok {
			return sig
		}
	}
	bins := slices.Clone(s.usable)
	s.key = s.key[:0]
	for w := range bins {
		if w < len(set) {
			bins[w] &= set[w]
		} else {
			bins[w] = 0
		}
		s.key = binary.LittleEndian.AppendUint64(s.key, bins[w])
	}
	sig, ok := s.at[string(s.key)]
	if !ok {
		sig = len(s.all)
		s.at[string(s.key)] = sig
		s.all = append(s.all, bins)
	}
	if len(set) > 0 {
		s.shared[id] = sig
	}
	return sig
}

// largest is, by dimension, the most that any usable bin has of it.
func largest(p *Problem, usable bitset.Set) []int64 {
	most := make([]int64, p.Dims)
	for i := range usable.All {
		for d, v := range p.Bins[i].Capacity {
			most[d] = max(most[d], v)
		}
	}
	return most
}

// needless tells whether a cap of per items forbids nothing, because no bin has
// room for one more of that size anyway.
func needless(size []int64, per int, most []int64) bool {
	for d, v := range size {
		if v > 0 && most[d]/v <= int64(per) {
			return true
		}
	}
	return false
}

func validSize(size []int64, dims int) bool {
	if len(size) != dims {
		return false
	}
	for _, v := range size {
		if v < 0 {
			return false
		}
	}
	return true
}

func classKey(key []byte, c *reduced.Class) []byte {
	key = binary.LittleEndian.AppendUint32(key, uint32(c.Signature))
	key = binary.LittleEndian.AppendUint32(key, uint32(c.Priority))
	for _, v := range c.Size {
		key = binary.LittleEndian.AppendUint64(key, uint64(v))
	}
	for _, id := range c.Conflicts {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	return key
}

// sharedConflicts numbers the conflict ids that at least two classes carry; the
// others forbid nothing.
func sharedConflicts(p *Problem) map[int32]int32 {
	seen := map[int32]int{}
	var ids []int32
	for i := range p.Classes {
		ids = append(ids[:0], p.Classes[i].Conflicts...)
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			seen[id]++
		}
	}
	dense := map[int32]int32{}
	for i := range p.Classes {
		for _, id := range p.Classes[i].Conflicts {
			if _, ok := dense[id]; !ok && seen[id] > 1 {
				dense[id] = int32(len(dense))
			}
		}
	}
	return dense
}

func denseConflicts(ids []int32, dense map[int32]int32) []int32 {
	var out []int32
	for _, id := range ids {
		if d, ok := dense[id]; ok {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
