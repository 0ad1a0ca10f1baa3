package state

// blockSize is how many bins of the index share a summary.
const blockSize = 32

// CapacityIndex is the bins that may take in pods, in the order in which they are
// offered. Blocks of them are summarized by the largest free capacity per dimension
// and by which classes they are known not to take, so that a search for room passes
// over what is full.
//
// Time is counted in epochs: one more whenever a bin gets more room. What was found
// about a block holds until one of its bins gets more room.
type CapacityIndex struct {
	bins *Bins
	// order has the bins as they are offered, -1 for those taken out since.
	order []int32
	// at is every bin's position in order, -1 for bins that are not in it.
	at []int32
	// maxFree is, per block, at least the largest free amount of its bins in each
	// dimension. Undone removals make it exact again only at measure.
	maxFree []int64
	// firstNew is the first block of new nodes that were bought since Arrange. They
	// are offered first.
	firstNew int
	epoch    uint32
	// grewAt is, per block, the epoch in which one of its bins last got more room;
	// measuredAt the one in which maxFree was last measured.
	grewAt, measuredAt []uint32
	// fullAt is, by level of a class and block, the epoch in which no bin of the
	// block took a pod of that level. Rows are as long as was needed so far.
	fullAt [][]uint32
}

func newCapacityIndex(bins *Bins, levels int32) *CapacityIndex {
	return &CapacityIndex{bins: bins, fullAt: make([][]uint32, levels)}
}

// arrange puts the bins in this order and forgets all others.
func (x *CapacityIndex) arrange(order []int32) {
	x.order, x.maxFree = append(x.order[:0], order...), x.maxFree[:0]
	x.at, x.grewAt, x.measuredAt = x.at[:0], x.grewAt[:0], x.measuredAt[:0]
	x.epoch++
	for range x.bins.Len() {
		x.at = append(x.at, -1)
	}
	for position, i := range x.order {
		x.at[i] = int32(position)
	}
	for k := 0; k*blockSize < len(x.order); k++ {
		for range x.bins.p.Dims() {
			x.maxFree = append(x.maxFree, 0)
		}
		x.grewAt, x.measuredAt = append(x.grewAt, x.epoch), append(x.measuredAt, x.epoch)
		x.measure(k)
	}
	x.firstNew = blocksOf(len(x.order))
	for len(x.order)%blockSize != 0 {
		x.order = append(x.order, -1)
	}
}

// blocksOf is how many blocks hold n bins.
func blocksOf(n int) int { return (n + blockSize - 1) / blockSize }

// blocks is the number of blocks.
func (x *CapacityIndex) blocks() int { return blocksOf(len(x.order)) }

// turn is the block that is offered in a turn: those of new nodes come first.
func (x *CapacityIndex) turn(turn int) int {
	k := turn + x.firstNew
	if n := x.blocks(); k >= n {
		k -= n
	}
	return k
}

// block lists the bins of a block; -1 stands for none.
func (x *CapacityIndex) block(k int) []int32 {
	return x.order[k*blockSize : min(len(x.order), k*blockSize+blockSize)]
}

// peak is the block's entry of maxFree.
func (x *CapacityIndex) peak(k int) []int64 {
	d := x.bins.p.Dims()
	return x.maxFree[k*d : k*d+d]
}

// isFull reports whether a block is known to take no pod of the level.
func (x *CapacityIndex) isFull(level int32, k int) bool {
	row := x.fullAt[level]
	return k < len(row) && row[k] >= x.grewAt[k]
}

// foundFull notes that a block takes no pod of the level, and measures the block if
// that was not done since something grew.
func (x *CapacityIndex) foundFull(level int32, k int) {
	if x.measuredAt[k] < x.grewAt[k] {
		x.measure(k)
	}
	row := x.fullAt[level]
	for len(row) < len(x.grewAt) {
		row = append(row, 0)
	}
	row[k] = x.epoch
	x.fullAt[level] = row
}

// measure finds a block's largest free amounts.
func (x *CapacityIndex) measure(k int) {
	peak := x.peak(k)
	clear(peak)
	x.measuredAt[k] = x.epoch
	for _, i := range x.block(k) {
		if i < 0 || x.bins.At(i).Removed {
			continue
		}
		for d, v := range x.bins.Free(i) {
			peak[d] = max(peak[d], v)
		}
	}
}

// grew tells that a bin has more room than before.
func (x *CapacityIndex) grew(i int32) {
	if x.at[i] < 0 {
		return
	}
	k := int(x.at[i]) / blockSize
	x.epoch++
	x.grewAt[k] = x.epoch
	peak := x.peak(k)
	for d, v := range x.bins.Free(i) {
		peak[d] = max(peak[d], v)
	}
}

// push offers a new node, which is the last bin.
func (x *CapacityIndex) push(i int32) {
	x.at = append(x.at, int32(len(x.order)))
	x.order = append(x.order, i)
	if k := (len(x.order) - 1) / blockSize; k*x.bins.p.Dims() >= len(x.maxFree) {
		x.maxFree = append(x.maxFree, x.bins.Free(i)...)
		x.grewAt, x.measuredAt = append(x.grewAt, 0), append(x.measuredAt, 0)
	}
	x.grew(i)
}

// pop takes the last bin out again.
func (x *CapacityIndex) pop() {
	last := len(x.at) - 1
	position := int(x.at[last])
	x.at = x.at[:last]
	if position != len(x.order)-1 { // arranged among the others since, or taken out
		if position >= 0 {
			x.order[position] = -1
		}
		return
	}
	x.order = x.order[:position]
	blocks := blocksOf(position)
	x.maxFree = x.maxFree[:blocks*x.bins.p.Dims()]
	x.grewAt, x.measuredAt = x.grewAt[:blocks], x.measuredAt[:blocks]
}

// Remove takes a bin out for good.
func (x *CapacityIndex) Remove(i int32) {
	if x.at[i] >= 0 {
		x.order[x.at[i]] = -1
		x.at[i] = -1
	}
}

// Has reports whether a bin is offered.
func (x *CapacityIndex) Has(i int32) bool { return x.at[i] >= 0 }

// All lists the bins that are offered, in order.
func (x *CapacityIndex) All(yield func(int32) bool) {
	for _, i := range x.order {
		if i >= 0 && !yield(i) {
			return
		}
	}
}
