package reduced

import "slices"

// RNG is a small deterministic generator (splitmix64), so that a seed means
// the same on every release of Go.
type RNG uint64

// Next returns the next 64 random bits.
func (r *RNG) Next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a number from 0 to n-1.
func (r *RNG) Below(n int) int { return int(r.Next() >> 1 % uint64(n)) }

// Float returns a number from 0 up to but not including 1.
func (r *RNG) Float() float64 { return float64(r.Next()>>11) / (1 << 53) }

// SortBy orders s by ascending key, equal keys by position.
func SortBy[T any](s []T, key func(T) float64) {
	type keyed struct {
		key  float64
		at   int
		item T
	}
	order := make([]keyed, len(s))
	for i, item := range s {
		order[i] = keyed{key(item), i, item}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		if a.key < b.key {
			return -1
		}
		if a.key > b.key {
			return 1
		}
		return a.at - b.at
	})
	for i := range order {
		s[i] = order[i].item
	}
}
