// Package gctuning decides when Go collects garbage. By itself Go knows a percentage alone, by
// which the heap may grow: a program that keeps 20 MB and makes a lot of garbage collects every
// few milliseconds, and takes a fifth of its processor time for it, to save memory that no one
// misses. A floor makes those collections rare and leaves large heaps as they are.
package gctuning

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// liveHeap is the name of the bytes that the last collection has left.
const liveHeap = "/gc/heap/live:bytes"

// leastLive is what counts as left by a collection where less is, or none has run: Go's own
// least heap of 4 MiB, which it multiplies with the percentage.
const leastLive = 4 << 20

// Set makes Go collect garbage when the heap has grown by so many percent since the last
// collection, as GOGC does, and never before it holds floor bytes. It is for the whole process
// and until its end. The runtime's memory limit, where one is set, still counts.
//
// Precondition: growth > 0.
func Set(growth int, floor uint64) {
	t := &tuning{growth: growth, floor: floor}
	t.adjust()
	t.afterCollection()
}

// tuning is what Set was asked for.
type tuning struct {
	growth int    // percent
	floor  uint64 // bytes
	now    int    // the percentage that Go has, 0 before the first
}

// sentinel is garbage from the beginning, so that each collection finds one. It has a pointer
// because Go puts small objects without pointers together, and keeps them as long as any is used.
type sentinel struct{ _ *int }

// afterCollection adjusts the percentage whenever a collection has ended.
func (t *tuning) afterCollection() {
	runtime.AddCleanup(new(sentinel), func(t *tuning) {
		t.adjust()
		t.afterCollection()
	}, t)
}

// adjust sets the percentage by which the heap may grow from what it keeps now. Where a change
// is less than an eighth it is left out, since each stops the program for a moment.
func (t *tuning) adjust() {
	sample := []metrics.Sample{{Name: liveHeap}}
	metrics.Read(sample)
	want := t.percent(sample[0].Value.Uint64())
	if want == t.now || (want != t.growth && 8*max(want-t.now, t.now-want) < t.now) {
		return
	}
	t.now = want
	debug.SetGCPercent(want)
}

// percent is by how much a heap that keeps so many bytes may grow.
func (t *tuning) percent(live uint64) int {
	live = max(live, leastLive)
	if live >= t.floor {
		return t.growth
	}
	return max(t.growth, int((t.floor-live)*100/live))
}
