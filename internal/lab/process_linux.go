package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// childAttributes put a child in a process group of its own and let the kernel
// kill it when its parent dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// identify reads when a process was started, in clock ticks since boot, and
// which boot that was. A process that does not exist or is a zombie is an error.
func identify(pid int) (Identity, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, fmt.Errorf("process %d: %w", pid, err)
	}
	// The second field is the program's name in parentheses and may itself hold
	// spaces and parentheses. Counting from its end: state is field 0, the number of
	// threads is field 17, the start time field 19 (3, 20 and 22 in proc(5)).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const state, threads, start = 0, 17, 19
	if len(fields) <= start {
		return Identity{}, fmt.Errorf("process %d: unexpected content of its stat file", pid)
	}
	// The first thread of a killed process is a zombie while others still end, and
	// hold its files and ports.
	if fields[state] == "X" || fields[state] == "Z" && (fields[threads] == "0" || fields[threads] == "1") {
		return Identity{}, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("boot id: %w", err)
	}
	return Identity{PID: pid, Start: fields[start] + "@" + strings.TrimSpace(string(boot))}, nil
}

// residentBytes returns the memory that a process occupies, 0 if it is unknown.
// Pages shared with other processes are counted in each.
func residentBytes(pid int) int64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
