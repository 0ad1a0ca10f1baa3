package lab

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// release is a minor version of Kubernetes, as 1.36.
type release struct{ major, minor int }

func (r release) String() string { return fmt.Sprintf("%d.%d", r.major, r.minor) }

// releasePattern is how a minor version is written, alone or at the front of a version.
var releasePattern = regexp.MustCompile(`^v?(\d+)\.(\d+)(\.|$)`)

// releaseOf reads 1.36, 1.36.0 or v1.36.0.
func releaseOf(version string) (release, error) {
	m := releasePattern.FindStringSubmatch(version)
	if m == nil {
		return release{}, fmt.Errorf("version of Kubernetes %q: give major and minor version, as 1.36", version)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return release{major, minor}, nil
}

// earliest is by how many minor versions the control plane's program can be an earlier one
// (kubernetes.io/docs/concepts/cluster-administration/compatibility-version).
const earliest = 3

// emulation is the version that the control plane's program plays. Kubernetes' components
// can be those of an earlier minor version, so that a lab upgrades its control plane with
// one program. It is safe for concurrent use.
type emulation struct {
	program string // the program's own version, as v1.37.1

	mu      sync.Mutex
	version release // the one that is played
}

// newEmulation plays a version; empty means the program's own.
func newEmulation(program, version string) (*emulation, error) {
	own, err := releaseOf(program)
	if err != nil {
		return nil, err
	}
	e := &emulation{program: program, version: own}
	if version == "" {
		return e, nil
	}
	if e.version, err = releaseOf(version); err != nil {
		return nil, err
	}
	if behind := own.minor - e.version.minor; e.version.major != own.major || behind < 0 || behind > earliest {
		return nil, fmt.Errorf("version of Kubernetes %s: the control plane can be %d.%d to %s",
			e.version, own.major, own.minor-earliest, own)
	}
	return e, nil
}

// served is the version that the API server serves, as v1.36.0. A program says of an
// earlier minor version not which patch it plays.
func (e *emulation) served() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if own, _ := releaseOf(e.program); own == e.version {
		return e.program
	}
	return "v" + e.version.String() + ".0"
}

// args have a component play the version.
func (e *emulation) args() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if own, _ := releaseOf(e.program); own == e.version {
		return nil
	}
	return []string{"--emulated-version=kube=" + e.version.String()}
}

// raise goes on to a later version, one minor version at a time as Kubernetes demands;
// empty means the next one.
func (e *emulation) raise(version string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := release{e.version.major, e.version.minor + 1}
	own, _ := releaseOf(e.program)
	if next.minor > own.minor {
		return fmt.Errorf("the control plane is of Kubernetes %s, the latest that it can be; start a new lab of an earlier one with: "+
			"nap lab up --kubernetes %d.%d", e.version, own.major, own.minor-1)
	}
	wanted := next
	if version != "" {
		var err error
		if wanted, err = releaseOf(version); err != nil {
			return err
		}
	}
	if wanted != next {
		return fmt.Errorf("version of Kubernetes %s: the control plane is of %s, and goes up one minor version at a time: to %s",
			wanted, e.version, next)
	}
	e.version = next
	return nil
}

// upgrade raises the control plane's version, the API server first and then the others, and
// returns what it is then.
func (l *Lab) upgrade(ctx context.Context, version string) (string, error) {
	if state, _ := l.board.snapshot(); state.Phase != PhaseReady {
		return "", fmt.Errorf("the lab is %s; wait until it is ready", state.Phase)
	}
	if err := l.emulation.raise(version); err != nil {
		return "", err
	}
	served := l.emulation.served()
	// A lab that is killed now goes on with the new version.
	l.board.update(func(s *State) { s.Served = served })
	for _, name := range components()[1:] { // etcd stays as it is
		if err := l.restart(ctx, name); err != nil {
			return "", fmt.Errorf("the control plane is of Kubernetes %s from now on: %w", served, err)
		}
	}
	return strings.TrimPrefix(served, "v"), nil
}
