//go:build unix && !linux

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// childAttributes put a child in a process group of its own. Without Linux there
// is no parent-death signal: children outlive a supervisor that is killed, until
// the next "nap lab up" or "nap lab down" in the folder ends them.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// identify asks ps when a process was started, to the second. A process that
// does not exist or is a zombie is an error.
func identify(pid int) (Identity, error) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return Identity{}, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	state, start, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if strings.HasPrefix(state, "Z") {
		return Identity{}, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return Identity{PID: pid, Start: strings.TrimSpace(start)}, nil
}

// residentBytes returns the memory that a process occupies, 0 if it is unknown.
func residentBytes(pid int) int64 {
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0
	}
	kibibytes, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0
	}
	return kibibytes << 10
}
