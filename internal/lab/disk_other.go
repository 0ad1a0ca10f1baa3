//go:build unix && !linux && !darwin

package lab

import "math"

// freeBytes is not known on this system: the lab is started all the same.
func freeBytes(string) (uint64, error) { return math.MaxUint64, nil }
