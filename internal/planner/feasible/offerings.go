package feasible

// OfferingCount is how many offerings the pool's catalogue has.
func (s *Space) OfferingCount(pool int) int {
	n := 0
	types := s.Problem.Catalogs[s.Problem.Pools[pool].Catalog].InstanceTypes
	for t := range types {
		n += len(types[t].Offerings)
	}
	return n
}

// Offerings counts the pool's offerings of which at least one option is in the
// set. There are several options to an offering where labels are left to the
// buyer.
func (s *Space) Offerings(pool *Pool, set Set) int {
	type offering struct{ t, o int }
	n, last := 0, offering{-1, -1}
	for i := set.Next(pool.First); i >= 0 && i < pool.End; i = set.Next(i + 1) {
		o := offering{s.Options[i].Type, s.Options[i].Offering}
		if o.t == last.t && o.o <= last.o {
			// The same type again from its first offering: another choice of
			// labels. From here on offerings have to be told apart.
			return s.distinctOfferings(pool, set)
		}
		last = o
		n++
	}
	return n
}

func (s *Space) distinctOfferings(pool *Pool, set Set) int {
	seen := map[[2]int]bool{}
	for i := set.Next(pool.First); i >= 0 && i < pool.End; i = set.Next(i + 1) {
		seen[[2]int{s.Options[i].Type, s.Options[i].Offering}] = true
	}
	return len(seen)
}
