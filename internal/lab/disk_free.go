//go:build linux || darwin

package lab

import (
	"fmt"
	"syscall"
)

// freeBytes is what an ordinary user may still write to the disk of a folder.
func freeBytes(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("see how much room is left on the disk of %s: %w", dir, err)
	}
	return s.Bavail * uint64(s.Bsize), nil //nolint:gosec // a block's size is positive
}
