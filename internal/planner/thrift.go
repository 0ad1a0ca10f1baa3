package planner

// thrift scores an option by how much of the scarcest line one machine takes
// for the share of all pods that it could hold; smaller is better, and the
// price only decides between equals.
func (b *builder) thrift(option int) float64 {
	o := &b.space.Options[option]
	share := 1.0
	for d, total := range b.wanted {
		if total > 0 {
			share = min(share, float64(o.Net[d])/total)
		}
	}
	scarcest := 0.0
	for _, u := range o.Uses {
		scarcest = max(scarcest, float64(u.Amount)/float64(max(1, b.ledger.Left(u.Line))))
	}
	if share <= 0 {
		return scarcest * 1e12
	}
	return scarcest/share + float64(o.Price)*1e-18
}

// shrink exchanges machines that turned out larger than needed, so that what
// they held back can be used by others, and reports whether any was.
func (b *builder) shrink() bool { return b.trim(newAlternatives(b)) }

// trim is shrink with alternatives that are known already.
func (b *builder) trim(a *alternatives) bool {
	changed := false
	for _, pl := range b.bins {
		p := a.shop(pl.Option)
		fits := p.fitting(b, pl, b.used(pl))
		for _, o := range p.order {
			if b.space.Options[o].Price >= b.space.Options[pl.Option].Price {
				break
			}
			if p.has(fits, o) && b.affords(pl.Option, o) && b.asVaried(pl, o) {
				b.exchange(pl, o)
				changed = true
				break
			}
		}
	}
	return changed
}
