package lab

import "fmt"

// leastFree is the room on disk in bytes without which no lab is started: etcd sets
// aside two files of 64 MB for its log, logs and data come on top.
const leastFree = 256 << 20

// enoughRoom refuses a folder on a disk that is nearly full, where etcd would end
// with a stack trace. free is what is left there in bytes.
func (l layout) enoughRoom(free uint64) error {
	if free >= leastFree {
		return nil
	}
	return fmt.Errorf("the disk of %s has %d MiB left and a lab needs %d; free some, or choose a folder on another disk with --dir",
		l, free>>20, leastFree>>20)
}
