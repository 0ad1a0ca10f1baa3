package bitset

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSetMatchesList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(rt, "n")
		member := rapid.SliceOfDistinct(rapid.IntRange(0, n-1), rapid.ID[int])
		a, b := member.Draw(rt, "a"), member.Draw(rt, "b")
		set := func(list []int) Set {
			s := New(n)
			for _, i := range list {
				s.Add(i)
			}
			return s
		}
		check := func(name string, s Set, keep func(i int) bool) {
			var want []int
			for i := range n {
				if keep(i) {
					want = append(want, i)
				}
			}
			if got := slices.Collect(s.All); !slices.Equal(got, want) || s.Count() != len(want) || s.Any() != (len(want) > 0) {
				rt.Fatalf("%s: got %v, want %v", name, got, want)
			}
		}
		inA := func(i int) bool { return slices.Contains(a, i) }
		inB := func(i int) bool { return slices.Contains(b, i) }
		both := set(a)
		both.And(set(b))
		check("and", both, func(i int) bool { return inA(i) && inB(i) })
		either := set(a)
		either.Or(set(b))
		check("or", either, func(i int) bool { return inA(i) || inB(i) })
		without := set(a)
		without.AndNot(set(b))
		check("and not", without, func(i int) bool { return inA(i) && !inB(i) })
		check("full", Full(n), func(int) bool { return true })
		from := rapid.IntRange(0, n).Draw(rt, "from")
		to := rapid.IntRange(0, n).Draw(rt, "to")
		within := func(i int) bool { return from <= i && i < to }
		wider, narrower := set(a), set(a)
		wider.AddRange(from, to)
		check("with a range", wider, func(i int) bool { return inA(i) || within(i) })
		narrower.RemoveRange(from, to)
		check("without a range", narrower, func(i int) bool { return inA(i) && !within(i) })
		if set(a).Intersects(set(b)) != both.Any() {
			rt.Fatal("intersects")
		}
		if subset := both.Count() == len(a); set(a).SubsetOf(set(b)) != subset || set(a).SubsetOf(append(set(b), 0)) != subset {
			rt.Fatal("subset")
		}
		if set(a).Has(len(set(a)) * 64) {
			rt.Fatal("has what it has no room for")
		}
	})
}
