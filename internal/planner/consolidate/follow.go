package consolidate

// follow makes a fresh board equal to another one.
func (b *board) follow(o *board) {
	for _, option := range o.booked {
		b.book(option)
	}
	for at := range o.log {
		c := &o.log[at]
		switch c.kind {
		case didPut:
			b.put(c.bin, c.class, c.level, c.n)
		case didLift:
			b.lift(c.bin)
		case didShut:
			b.shut(c.bin)
		case didBuy:
			i := b.buy(o.bins[c.bin].ware)
			b.bins[i].frozen = o.bins[c.bin].frozen
		}
	}
}

// seal makes everything so far the state from which moves start: guests that have
// moved in stay, and nothing of it is taken back.
func (b *board) seal() {
	for i := range b.bins {
		b.bins[i].guests = nil
	}
	clear(b.need)
	b.log = b.log[:0]
	b.shelf.fill(b)
}
