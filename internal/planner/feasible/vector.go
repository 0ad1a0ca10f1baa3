package feasible

// Vectors of this family have one amount per dimension of a Space, or per dimension
// of a projection of it. Sizes are never negative; what is free may be.

// Limited reports whether an amount of free capacity is a limit at all. Sums and
// differences of Unlimited and real amounts stay above half of Unlimited.
func Limited(free int64) bool { return free < Unlimited/2 }

// Fits reports whether free has room for one size in every dimension. A dimension that
// is negative in free fits nothing.
func Fits(size, free []int64) bool {
	for d, v := range size {
		if v > free[d] {
			return false
		}
	}
	return true
}

// CountFitting is how often size fits into free, at most limit. A dimension that is
// negative in free fits nothing.
func CountFitting(size, free []int64, limit int64) int64 {
	n := limit
	for d, v := range size {
		if v > free[d] {
			return 0
		}
		if v > 0 && n > 1 {
			n = min(n, free[d]/v)
		}
	}
	return n
}

// Slack scores how much of free would be left after one size, as a sum over the
// limited dimensions in units of the size. Smaller is a tighter fit. Dimensions of which
// nothing is free do not count.
func Slack(size, free []int64) float64 {
	sum := 0.0
	for d, v := range size {
		if v > 0 && free[d] > 0 && Limited(free[d]) {
			sum += float64(free[d]-v) / float64(v)
		}
	}
	return sum
}

// Add adds n times size to free; a negative n takes it away.
func Add(free, size []int64, n int64) {
	for d, v := range size {
		free[d] += v * n
	}
}
