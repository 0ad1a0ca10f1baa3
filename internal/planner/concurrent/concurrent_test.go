package concurrent

import (
	"fmt"
	"strings"
	"testing"
)

// panicOf is what a function panics with, nil if it does not.
func panicOf(do func()) (p any) {
	defer func() { p = recover() }()
	do()
	return nil
}

func TestPanicsReachTheGoroutineThatWaits(t *testing.T) {
	bad, done := func() { panic("bad class") }, 0
	for name, do := range map[string]func(){
		"group": func() {
			var g Group
			g.Go(bad)
			g.Wait()
		},
		"second of both": func() { Both(func() { done++ }, bad) },
		"first of both":  func() { Both(bad, func() { done++ }) },
		"each":           func() { Each(3, func(int) { bad() }) },
	} {
		if p := panicOf(do); p == nil || !strings.HasPrefix(fmt.Sprint(p), "bad class\n") {
			t.Errorf("%s: the panic is %v", name, p)
		}
	}
	if done != 2 {
		t.Errorf("%d of 2 functions beside one that panics have returned", done)
	}
}

func TestGroupWaitsForAll(t *testing.T) {
	var g Group
	counts := make([]int, 50)
	for i := range counts {
		g.Go(func() { counts[i]++ })
	}
	g.Wait()
	for i, n := range counts {
		if n != 1 {
			t.Fatalf("goroutine %d ran %d times", i, n)
		}
	}
}

func TestEachIsCalledOnce(t *testing.T) {
	for _, n := range []int{0, 1, 1000} {
		counts := make([]int, n)
		Each(n, func(i int) { counts[i]++ })
		for i, c := range counts {
			if c != 1 {
				t.Fatalf("of %d calls, number %d was made %d times", n, i, c)
			}
		}
	}
}
