package bench

import (
	"runtime"
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
