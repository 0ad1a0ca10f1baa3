package kubeletflags

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed flags.txt
var flagTable string

// span is the minors of Kubernetes 1 that know a flag; 0 for an end that is open.
type span struct{ first, last int }

// known are the flags by name.
var known = sync.OnceValue(func() map[string]span {
	out := map[string]span{}
	minor := func(text string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(text, "1."))
		if err != nil {
			return 0 // a dash: open
		}
		return n
	}
	for _, line := range strings.Split(flagTable, "\n") {
		if words := strings.Fields(line); len(words) == 3 && words[0] != "#" {
			out[words[0]] = span{first: minor(words[1]), last: minor(words[2])}
		}
	}
	return out
})

// Known reports whether the kubelet of a minor of Kubernetes 1 knows a flag, named without
// its dashes.
func Known(name string, minor int) bool {
	s, ok := known()[name]
	return ok && minor >= s.first && (s.last == 0 || minor <= s.last)
}

// minorOf reads the minor of a version such as 1.35.1, with or without a leading v.
func minorOf(version string) (int, error) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) != 3 || parts[0] != "1" {
		return 0, fmt.Errorf("kubernetes version %q: want 1.minor.patch", version)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, fmt.Errorf("kubernetes version %q: want 1.minor.patch", version)
	}
	return minor, nil
}
