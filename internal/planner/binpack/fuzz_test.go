package binpack

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// FuzzSolve reads any bytes as a problem, with negative, huge and missing
// numbers among them: the solution must stay feasible.
func FuzzSolve(f *testing.F) {
	f.Add([]byte{2, 3, 2, 9, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	f.Add([]byte{1, 1, 1, 255, 255, 255, 255, 255, 255, 255, 127, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := decode(data)
		s := Solve(p)
		for i := range p.Classes { // what is malformed is left out whole
			if len(p.Classes[i].Size) != p.Dims {
				if s.Unplaced[i] != max(0, p.Classes[i].Count) {
					t.Fatalf("malformed class %d was placed", i)
				}
			}
		}
		if err := verify(p, s); err != nil {
			t.Fatal(err)
		}
	})
}

// decode makes a problem of bytes.
func decode(data []byte) *Problem {
	at := 0
	small := func(n int) int {
		if at >= len(data) {
			return 0
		}
		at++
		return int(data[at-1]) % n
	}
	number := func() int64 {
		switch small(8) {
		case 0: // anything at all
			if at+8 <= len(data) {
				at += 8
				return int64(binary.LittleEndian.Uint64(data[at-8:]))
			}
			return -1
		case 1:
			return int64(small(256)) << 40
		default:
			return int64(small(256))
		}
	}
	vector := func(n int) []int64 {
		if small(20) == 1 {
			n++
		}
		v := make([]int64, n)
		for i := range v {
			v[i] = number()
		}
		return v
	}
	p := &Problem{Dims: 1 + small(5), Budget: time.Duration(small(50)) * time.Microsecond}
	bins := 1 + small(6)
	for range bins {
		p.Bins = append(p.Bins, Bin{Capacity: vector(p.Dims), Cost: number(), Max: small(5) - 1, Fixed: small(4) == 1})
	}
	for range small(3) {
		p.Shared = append(p.Shared, Shared{Left: number(), Use: vector(bins)})
	}
	for range small(8) {
		c := Class{Size: vector(p.Dims), Count: small(200) - 10, PerBin: small(4) - small(2), Priority: int32(small(3))}
		c.Bins = bitset.Set{uint64(small(256))}
		for range small(3) {
			c.Conflicts = append(c.Conflicts, int32(small(4)))
		}
		p.Classes = append(p.Classes, c)
	}
	return p
}
