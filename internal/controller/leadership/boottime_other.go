//go:build !linux

package leadership

import "time"

// bootTime is the time since the program started. On these systems it stands still
// while the machine sleeps, and the wall clock alone counts that time.
func bootTime() time.Duration { return time.Since(started) }

var started = time.Now()
