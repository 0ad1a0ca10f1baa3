package leadership

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the machine started, the time in which it slept included,
// which Go's own clock leaves out.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Since(started)
	}
	return time.Duration(now.Nano())
}

// started is where the clock begins on kernels without CLOCK_BOOTTIME.
var started = time.Now()
