package bound

import "math"

// lp is a linear program: minimise cost·x subject to A·x >= b and x >= 0, solved
// by the revised simplex method with a dense inverse of the basis. Columns may
// be added between solves, which then start from where the last one ended.
//
// Rows are demands (b >= 0), met at the start by artificial columns of a price
// high enough that they are used only for what nothing else can supply, or
// limits (b <= 0), met at the start by their slack. Rows stay few, hundreds at
// most, so a dense inverse is both the simplest and the fastest.
type lp struct {
	m     int
	b     []float64
	limit []bool

	// Columns 0 to m-1 are the starting basis, m to 2m-1 the surplus of demand
	// rows (unused for limits), the rest the caller's.
	start []int32
	row   []int32
	val   []float64
	Cost  []float64
	inB   []bool

	Basis []int32
	binv  []float64 // m*m, row-major
	X     []float64 // values of the basic columns
	Y     []float64 // duals
	w     []float64
	steps int64
	since int // pivots since the inverse was computed afresh
}

// tolerance below which a reduced cost, relative to the column's cost, or a
// pivot counts as zero.
const (
	priceTol = 1e-7
	pivotTol = 1e-9
)

// NewLP takes ownership of b; limit marks the rows that are limits, and price
// the costs of the artificial columns of the others.
func NewLP(b []float64, limit []bool, price []float64) *lp {
	m := len(b)
	l := &lp{m: m, b: b, limit: limit, start: []int32{0}}
	for i := range m {
		// The slack of a limit row -use·x - s = b is +b off at x = 0.
		if limit[i] {
			l.Add(0, []int32{int32(i)}, []float64{-1})
		} else {
			l.Add(price[i], []int32{int32(i)}, []float64{1})
		}
	}
	for i := range m {
		l.Add(0, []int32{int32(i)}, []float64{-1})
	}
	l.Basis = make([]int32, m)
	l.binv = make([]float64, m*m)
	l.X = make([]float64, m)
	l.Y = make([]float64, m)
	l.w = make([]float64, m)
	for i := range m {
		l.Basis[i] = int32(i)
		l.inB[i] = true
		s := 1.0
		if limit[i] {
			s = -1
		}
		l.binv[i*m+i] = s
		l.X[i] = s * b[i]
		l.Y[i] = l.Cost[i] * s
	}
	return l
}

// Add appends a column.
func (l *lp) Add(cost float64, rows []int32, vals []float64) {
	l.row = append(l.row, rows...)
	l.val = append(l.val, vals...)
	l.start = append(l.start, int32(len(l.row)))
	l.Cost = append(l.Cost, cost)
	l.inB = append(l.inB, false)
}

// reduced is the reduced cost of column j.
func (l *lp) reduced(j int) float64 {
	r := l.Cost[j]
	for k := l.start[j]; k < l.start[j+1]; k++ {
		r -= l.Y[l.row[k]] * l.val[k]
	}
	return r
}

// Solve pivots until no column improves, at most limit times, and tells whether
// it got there.
func (l *lp) Solve(limit int) bool {
	for range limit {
		j := l.entering()
		if j < 0 {
			return true
		}
		if !l.enter(j) {
			return false
		}
	}
	return false
}

// entering returns the column with the most negative reduced cost, or -1.
func (l *lp) entering() int {
	best, at := 0.0, -1
	l.steps += int64(len(l.row))
	for j := range l.Cost {
		if l.inB[j] || j >= l.m && j < 2*l.m && l.limit[j-l.m] {
			continue
		}
		r := l.reduced(j)
		if r < best && r < -priceTol*(math.Abs(l.Cost[j])+1e-3) {
			best, at = r, j
		}
	}
	return at
}

// enter brings column j into the basis. It reports false when nothing leaves,
// which an LP with non-negative costs can only owe to rounding.
func (l *lp) enter(j int) bool {
	m := l.m
	clear(l.w)
	for k := l.start[j]; k < l.start[j+1]; k++ {
		r, v := int(l.row[k]), l.val[k]
		for i, p := 0, r; i < m; i, p = i+1, p+m {
			l.w[i] += l.binv[p] * v
		}
	}
	leave := l.leaving()
	if leave < 0 {
		return false
	}
	rc := l.reduced(j)
	pivot := l.binv[leave*m : leave*m+m]
	inv := 1 / l.w[leave]
	for k := range pivot {
		pivot[k] *= inv
	}
	theta := max(0, l.X[leave]) * inv
	for i := range m {
		f := l.w[i]
		if i == leave || f == 0 {
			continue
		}
		l.X[i] -= f * theta
		if l.X[i] < 0 && l.X[i] > -1e-9 {
			l.X[i] = 0
		}
		row := l.binv[i*m : i*m+m]
		for k, v := range pivot {
			row[k] -= f * v
		}
	}
	l.X[leave] = theta
	for k, v := range pivot {
		l.Y[k] += rc * v
	}
	l.inB[l.Basis[leave]], l.inB[j] = false, true
	l.Basis[leave] = int32(j)
	l.steps += int64(m * m)
	if l.since++; l.since >= 150 {
		l.refactor()
	}
	return true
}

// leaving picks the row of the smallest ratio; among near ties the largest
// pivot, for stability.
func (l *lp) leaving() int {
	ratio := math.Inf(1)
	for i, v := range l.w {
		if v > pivotTol {
			ratio = min(ratio, (max(0, l.X[i])+1e-9)/v)
		}
	}
	best, at := 0.0, -1
	for i, v := range l.w {
		if v > pivotTol && max(0, l.X[i])/v <= ratio && v > best {
			best, at = v, i
		}
	}
	return at
}

// refactor computes the inverse, the values and the duals afresh, so that
// rounding does not add up. It keeps the old ones when the basis has become
// numerically singular.
func (l *lp) refactor() {
	m := l.m
	l.since = 0
	a := make([]float64, m*m)
	inv := make([]float64, m*m)
	for i, j := range l.Basis {
		for k := l.start[j]; k < l.start[j+1]; k++ {
			a[int(l.row[k])*m+i] = l.val[k]
		}
		inv[i*m+i] = 1
	}
	l.steps += int64(m * m * m)
	if !invert(a, inv, m) {
		return
	}
	copy(l.binv, inv)
	clear(l.Y)
	for i := range m {
		row := l.binv[i*m : i*m+m]
		s, c := 0.0, l.Cost[l.Basis[i]]
		for k, v := range row {
			s += v * l.b[k]
			l.Y[k] += c * v
		}
		l.X[i] = max(0, s)
	}
}

// invert turns inv, the identity, into the inverse of a by Gauss-Jordan with
// row pivoting. It destroys a.
func invert(a, inv []float64, m int) bool {
	for c := range m {
		p, best := -1, 1e-11
		for r := c; r < m; r++ {
			if v := math.Abs(a[r*m+c]); v > best {
				p, best = r, v
			}
		}
		if p < 0 {
			return false
		}
		rc, ic := a[c*m:c*m+m], inv[c*m:c*m+m]
		if p != c {
			rp, ip := a[p*m:p*m+m], inv[p*m:p*m+m]
			for k := range m {
				rc[k], rp[k] = rp[k], rc[k]
				ic[k], ip[k] = ip[k], ic[k]
			}
		}
		f := 1 / rc[c]
		for k := range m {
			rc[k] *= f
			ic[k] *= f
		}
		for r := range m {
			g := a[r*m+c]
			if r == c || g == 0 {
				continue
			}
			rr, ir := a[r*m:r*m+m], inv[r*m:r*m+m]
			for k := c; k < m; k++ {
				rr[k] -= g * rc[k]
			}
			for k, v := range ic {
				if v != 0 {
					ir[k] -= g * v
				}
			}
		}
	}
	return true
}
