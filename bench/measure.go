package bench

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// mark is a point in time with the allocations so far.
type mark struct {
	at      time.Time
	mallocs uint64
}

// settle collects garbage, so that earlier work costs later work nothing, and
// starts a measurement.
func settle() mark {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return mark{at: time.Now(), mallocs: m.Mallocs}
}

func (m mark) since() time.Duration { return time.Since(m.at) }

func (m mark) allocs() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.Mallocs - m.mallocs
}

// peak samples the heap while work runs and returns the most that it rose above
// where it began.
func peak(every time.Duration, work func()) uint64 {
	runtime.GC()
	before := heap()
	most, done := make(chan uint64), make(chan struct{})
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		top := before
		for {
			select {
			case <-ticker.C:
				top = max(top, heap())
			case <-done:
				most <- max(top, heap())
				return
			}
		}
	}()
	work()
	close(done)
	return <-most - before
}

// heap is the bytes of objects, garbage not yet collected included.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
