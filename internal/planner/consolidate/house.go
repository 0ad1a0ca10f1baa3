package consolidate

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// look is among how many bins with room the best one is chosen.
const look = 6

// house finds places on open bins for the pods that need one and returns whether
// all of them have one. Pods go to the tightest of the first few bins that take
// them.
func (b *board) house() bool {
	b.sortNeeded()
	return b.houseInOrder()
}

// houseInOrder is house for classes in the order in which they are.
func (b *board) houseInOrder() bool {
	left := false
	for _, class := range b.needed {
		if b.need[class] > 0 {
			b.houseClass(class)
			left = left || b.need[class] > 0
		}
	}
	return !left
}

// sortNeeded puts the classes that need places in the order of housing.
func (b *board) sortNeeded() {
	rank := b.rank
	slices.SortFunc(b.needed, func(x, y int32) int { return int(rank[x] - rank[y]) })
}

func (b *board) houseClass(class int32) {
	k := &b.kinds[class]
	for l := range k.levels {
		for b.need[class] > 0 {
			i := b.bestBin(k, l)
			if i < 0 {
				break
			}
			n := b.fits(k, i, b.need[class])
			if !k.plain {
				n = int32(min(int(n), b.counts.Room(k.levels[l].Rules, b.place(i), topology.Everything)))
			}
			b.put(i, class, int8(l), n)
		}
	}
}

// bestBin returns the bin for the next pods of a class, or -1.
func (b *board) bestBin(k *kind, level int) int32 {
	best, found := int32(-1), 0
	least := math.Inf(1)
	s := &b.shelf
	blocks := (len(s.bins) + block - 1) / block
	for turn := range blocks {
		at := turn + s.young
		if at >= blocks {
			at -= blocks
		}
		if s.isBarren(k.firstLevel+int32(level), at) || !under(k.own, s.peak[at*b.d:at*b.d+b.d]) {
			continue
		}
		any := false
		for _, i := range s.bins[at*block : min(len(s.bins), at*block+block)] {
			if i < 0 || b.bins[i].shut || !under(k.own, b.room(i)) || !b.permits(k, level, i) {
				continue
			}
			any = true
			if !k.plain && !b.suits(k, level, i) {
				continue
			}
			if tight := slack(k.own, b.room(i)); tight < least {
				best, least = i, tight
			}
			if found++; found >= look {
				return best
			}
		}
		if !any {
			s.remeasure(b, at)
			s.foundBarren(k.firstLevel+int32(level), at)
		}
	}
	return best
}

// admits reports whether a bin with room may take a pod of the class.
func (b *board) admits(k *kind, level int, i int32) bool {
	return b.permits(k, level, i) && (k.plain || b.suits(k, level, i))
}

// permits is what of admits does not depend on who is where.
func (b *board) permits(k *kind, level int, i int32) bool {
	l := &k.levels[level]
	if w := b.bins[i].ware; w >= 0 {
		return l.Options.Has(b.menu[w].option)
	}
	return l.Nodes.Has(int(i))
}

// suits is what of admits depends on who is where.
func (b *board) suits(k *kind, level int, i int32) bool {
	return b.fits(k, i, 1) > 0 && b.counts.Room(k.levels[level].Rules, b.place(i), topology.Everything) > 0
}

func under(size, room []int64) bool {
	for d, v := range size {
		if v > room[d] {
			return false
		}
	}
	return true
}

// slack is how much room would be left after one pod, as a sum of shares;
// smaller is a better fit.
func slack(own, room []int64) float64 {
	sum := 0.0
	for d, size := range own {
		if size > 0 && room[d] < 1<<57 {
			sum += float64(room[d]-size) / float64(size)
		}
	}
	return sum
}

func sortStable(list []int32, less func(x, y int32) bool) {
	slices.SortStableFunc(list, func(x, y int32) int {
		switch {
		case less(x, y):
			return -1
		case less(y, x):
			return 1
		}
		return 0
	})
}
