package instance

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Two options stay together exactly where all sets have both or neither.
func TestSetsTellOptionsApart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 150).Draw(rt, "options")
		g := &grouping{of: make([]int, n), groups: 1}
		g.splitBy(func(o int) bool { return o%7 == 0 })
		want := make([]string, n)
		for o := range want {
			want[o] = map[bool]string{true: "1", false: "0"}[o%7 == 0]
		}
		r := newRefinement(g)
		for range rapid.IntRange(0, 12).Draw(rt, "sets") {
			set := bitset.New(n)
			for range rapid.IntRange(0, n).Draw(rt, "members") {
				set.Add(rapid.IntRange(0, n-1).Draw(rt, "member"))
			}
			r.splitBy(set)
			for o := range want {
				want[o] += map[bool]string{true: "1", false: "0"}[set.Has(o)]
			}
		}
		numbers, groups := map[string]int{}, map[int]string{}
		for o, key := range want {
			number, known := numbers[key]
			if other, taken := groups[g.of[o]]; known && number != g.of[o] || taken && other != key {
				rt.Fatalf("option %d is in group %d: want those with %s together, and no others", o, g.of[o], key)
			}
			numbers[key], groups[g.of[o]] = g.of[o], key
		}
		if len(groups) != g.groups {
			rt.Fatalf("%d groups, counted as %d", len(groups), g.groups)
		}
	})
}
