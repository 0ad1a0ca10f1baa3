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
	if !pool.choosy {
		return set.CountRange(pool.First, pool.End)
	}
	types := s.Problem.Catalogs[s.Problem.Pools[pool.Index].Catalog].InstanceTypes
	first, all := make([]int, len(types)), 0 // of each type's offerings, numbered
	for t := range types {
		first[t] = all
		all += len(types[t].Offerings)
	}
	seen := NewSet(all)
	for i := set.Next(pool.First); i >= 0 && i < pool.End; i = set.Next(i + 1) {
		seen.Add(first[s.Options[i].Type] + s.Options[i].Offering)
	}
	return seen.Count()
}
