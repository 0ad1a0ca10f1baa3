// Package concurrent runs functions in goroutines whose panics reach the goroutine that
// waits for them. A panic in a goroutine of its own would end the process, whatever its
// caller is prepared for.
//
// See docs/planner.md, section "Guarantees".
package concurrent

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Group is a set of goroutines. The zero value is an empty one.
type Group struct {
	wg     sync.WaitGroup
	mu     sync.Mutex
	failed any // what the first goroutine to panic has said; mu guards it
}

// Go calls do in a new goroutine.
func (g *Group) Go(do func()) {
	g.wg.Go(func() { g.try(do) })
}

// Wait returns when all goroutines have, and panics if one of them has panicked.
func (g *Group) Wait() {
	g.wg.Wait()
	g.mu.Lock()
	failed := g.failed
	g.mu.Unlock()
	if failed != nil {
		panic(failed)
	}
}

func (g *Group) try(do func()) {
	defer func() {
		if p := recover(); p != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.failed == nil {
				g.failed = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}
	}()
	do()
}

// Both calls two functions at the same time and returns when both have returned.
func Both(a, b func()) {
	var g Group
	g.Go(b)
	g.try(a)
	g.Wait()
}

// mostAtOnce bounds how many calls [Each] makes at the same time, and with that the memory
// that they take.
const mostAtOnce = 4

// Each calls do for each number below n, as many at the same time as there are processors but
// no more than mostAtOnce, and returns when all have returned. A goroutine whose call panics
// makes no more; the others make what is left.
func Each(n int, do func(i int)) {
	var g Group
	var next atomic.Int64
	for range min(n, mostAtOnce, runtime.GOMAXPROCS(0)) {
		g.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	g.Wait()
}
