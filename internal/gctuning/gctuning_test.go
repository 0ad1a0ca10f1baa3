package gctuning

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercent(t *testing.T) {
	const mb = 1 << 20
	tuned := &tuning{growth: 60, floor: 96 * mb}
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 2300},        // none has run yet: the floor itself
		{4 * mb, 2300},   // 4 MiB and 23 times as much make the floor
		{32 * mb, 200},   // three times 32 MiB is the floor
		{60 * mb, 60},    // 60 percent more is the floor
		{96 * mb, 60},    // the floor
		{1000 * mb, 60},  // far above
		{1 << 40, 60},    // nothing overflows
		{48*mb + 1, 99},  // rounded down: below the floor by less than a percent
		{100 * mb, 60},   // just above
		{4*mb - 1, 2300}, // Go's least heap
	} {
		if got := tuned.percent(c.live); got != c.want {
			t.Errorf("percent(%d) = %d, want %d", c.live, got, c.want)
		}
	}
}

// TestSet churns through garbage beside a small heap, then keeps a large one.
func TestSet(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	const floor = 64 << 20
	Set(50, floor)

	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	for range 512 {
		sink = make([]byte, 1<<20)
	}
	sink = nil
	runtime.ReadMemStats(&end)
	// 512 MiB with 64 MiB for each collection are 8; without a floor there would be more than 100.
	if n := end.NumGC - start.NumGC; n < 4 || n > 20 {
		t.Errorf("%d collections for 512 MiB of garbage, want about 8", n)
	}

	large := make([]byte, 2*floor)
	until := time.Now().Add(10 * time.Second)
	for {
		runtime.GC()
		now := debug.SetGCPercent(50)
		if now == 50 {
			break
		}
		debug.SetGCPercent(now)
		if time.Now().After(until) {
			t.Fatalf("a heap of twice the floor may grow by %d percent, want 50", now)
		}
	}
	runtime.KeepAlive(large)
}

// sink keeps the compiler from leaving allocations out.
var sink []byte
