package consolidate

// block is how many bins of the shelf share a summary.
const block = 32

// shelf is the bins that may take pods in, in the order in which they are offered,
// with the largest room per dimension of every block of them, so that a search
// for room passes over what is full.
type shelf struct {
	bins []int32
	// at is every bin's position, -1 for those that are not on the shelf.
	at []int32
	// peak is at least the room of the open bins of each block, d numbers each.
	peak []int64
	// young is the first block of machines that were bought since the shelf was
	// arranged; they are offered first.
	young int
	// tick counts when bins got more room, grew says when one of each block did
	// last. barren says, by level of a class and block, when nothing in the block
	// took such a pod; that holds until one of its bins gets more room.
	tick   uint32
	grewAt []uint32
	barren [][]uint32
	// measuredAt says when each block's peak was found last.
	measuredAt []uint32
}

// isBarren reports whether a block is known to take no pod of the level.
func (s *shelf) isBarren(level int32, k int) bool {
	row := s.barren[level]
	return k < len(row) && row[k] >= s.grewAt[k]
}

// foundBarren remembers that a block takes no pod of the level.
func (s *shelf) foundBarren(level int32, k int) {
	row := s.barren[level]
	for len(row) < len(s.grewAt) {
		row = append(row, 0)
	}
	row[k] = s.tick
	s.barren[level] = row
}

// remeasure finds a block's peak anew if something has grown since.
func (s *shelf) remeasure(b *board, k int) {
	if s.measuredAt[k] < s.grewAt[k] {
		s.measure(b, k)
	}
}

// stamp notes that something in a block has more room than before.
func (s *shelf) stamp(k int) {
	s.tick++
	s.grewAt[k] = s.tick
}

// fill arranges the shelf: what earns its price best comes first and is filled
// first, so that what is last becomes empty. Nodes that nobody can give back come
// before all others.
func (s *shelf) fill(b *board) {
	s.bins, s.peak = s.bins[:0], s.peak[:0]
	s.at, s.grewAt, s.measuredAt = s.at[:0], s.grewAt[:0], s.measuredAt[:0]
	s.tick++
	if s.barren == nil {
		s.barren = make([][]uint32, b.levels)
	}
	for range b.bins {
		s.at = append(s.at, -1)
	}
	for i := range b.bins {
		if i := int32(i); !b.bins[i].shut && !b.bins[i].frozen && (!b.node(i) || b.nodes[i].host && b.nodes[i].later == nil) {
			s.bins = append(s.bins, i)
		}
	}
	merit := make([]float64, len(b.bins))
	for _, i := range s.bins {
		merit[i] = b.merit(i)
	}
	sortStable(s.bins, func(x, y int32) bool { return merit[x] > merit[y] || merit[x] == merit[y] && x < y })
	for p, i := range s.bins {
		s.at[i] = int32(p)
	}
	for k := 0; k*block < len(s.bins); k++ {
		for range b.d {
			s.peak = append(s.peak, 0)
		}
		s.grewAt, s.measuredAt = append(s.grewAt, s.tick), append(s.measuredAt, s.tick)
		s.measure(b, k)
	}
	s.young = (len(s.bins) + block - 1) / block
	for len(s.bins)%block != 0 {
		s.bins = append(s.bins, -1)
	}
}

// merit is what the pods in a bin are worth for its price.
func (b *board) merit(i int32) float64 {
	var price, value float64
	if b.node(i) {
		l := &b.nodes[i]
		if l.policy < 0 || l.stay != nil || l.price == 0 {
			return 1e18
		}
		price = float64(l.price)
		for _, t := range l.tenants {
			value += b.kinds[t.class].worth * float64(t.n)
		}
	} else {
		price = float64(b.menu[b.bins[i].ware].price)
	}
	for _, g := range b.bins[i].guests {
		value += b.kinds[g.class].worth * float64(g.n)
	}
	return value / max(1, price)
}

// measure finds a block's largest room.
func (s *shelf) measure(b *board, k int) {
	peak := s.peak[k*b.d : k*b.d+b.d]
	clear(peak)
	s.measuredAt[k] = s.tick
	for _, i := range s.bins[k*block : min(len(s.bins), k*block+block)] {
		if i < 0 || b.bins[i].shut {
			continue
		}
		for d, v := range b.room(i) {
			peak[d] = max(peak[d], v)
		}
	}
}

// grew tells that a bin has more room than before.
func (s *shelf) grew(b *board, i int32) {
	if s.at[i] < 0 {
		return
	}
	k := int(s.at[i]) / block
	s.stamp(k)
	peak := s.peak[k*b.d : k*b.d+b.d]
	for d, v := range b.room(i) {
		peak[d] = max(peak[d], v)
	}
}

// push puts a new machine on the shelf, pop takes the last one off.
func (s *shelf) push(b *board, i int32) {
	s.at = append(s.at, int32(len(s.bins)))
	s.bins = append(s.bins, i)
	if k := (len(s.bins) - 1) / block; k*b.d >= len(s.peak) {
		s.peak = append(s.peak, b.room(i)...)
		s.grewAt, s.measuredAt = append(s.grewAt, 0), append(s.measuredAt, 0)
	}
	s.grew(b, i)
}

func (s *shelf) pop(b *board) {
	last := len(s.at) - 1
	p := int(s.at[last])
	s.at = s.at[:last]
	if p != len(s.bins)-1 { // it was arranged among the others since, or taken off
		if p >= 0 {
			s.bins[p] = -1
		}
		return
	}
	s.bins = s.bins[:p]
	s.peak = s.peak[:(p+block-1)/block*b.d]
	s.grewAt, s.measuredAt = s.grewAt[:(p+block-1)/block], s.measuredAt[:(p+block-1)/block]
}

// remove takes a bin off the shelf for good.
func (s *shelf) remove(i int32) {
	if s.at[i] >= 0 {
		s.bins[s.at[i]] = -1
		s.at[i] = -1
	}
}
