package lab

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
)

// Ports are taken from below the range that systems use for outgoing
// connections (from 32768 on Linux), so that none of those can take a port
// between its choice and its use.
const (
	firstPort = 20000
	lastPort  = 31999
)

// choosePorts returns a port for each component and for each name in wanted.
// A fixed port (not 0) is taken as it is; else the previous run's is kept if it
// is free, so that a kubeconfig in use stays right; else a free one is chosen at
// random, so that labs that start at the same moment do not collide.
func choosePorts(wanted, previous map[string]int) (map[string]int, error) {
	all := map[string]int{}
	for _, name := range components() {
		all[name] = 0
	}
	maps.Copy(all, wanted)

	taken, err := fixedPorts(wanted)
	if err != nil {
		return nil, err
	}
	chosen := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		port := all[name]
		switch {
		case port != 0:
		case previous[name] != 0 && taken[previous[name]] == "" && free(previous[name]):
			port = previous[name]
		default:
			if port, err = freePort(taken); err != nil {
				return nil, fmt.Errorf("port for %s: %w", name, err)
			}
		}
		chosen[name] = port
		taken[port] = name
	}
	return chosen, nil
}

// heldPorts keeps other labs from ports until their components listen on them, which may be seconds
// later. The zero value holds none.
type heldPorts struct {
	mu sync.Mutex
	// by is what listens on a component's port in its place; mu guards it.
	by map[string]net.Listener
}

// hold chooses ports as [choosePorts] does and holds those of the components.
func (h *heldPorts) hold(wanted, previous map[string]int) (map[string]int, error) {
	const tries = 10
	for try := 1; ; try++ {
		ports, err := choosePorts(wanted, previous)
		if err != nil {
			return nil, err
		}
		if err = h.listen(ports); err == nil {
			return ports, nil
		}
		h.releaseAll()
		if try == tries {
			return nil, err
		}
	}
}

func (h *heldPorts) listen(ports map[string]int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by = map[string]net.Listener{}
	for _, name := range components() {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[name])))
		if err != nil {
			return fmt.Errorf("port for %s: %w", name, err)
		}
		h.by[name] = l
	}
	return nil
}

// release leaves the port to a component that is about to start.
func (h *heldPorts) release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.by[name]; l != nil {
		_ = l.Close() // it has no connections
		delete(h.by, name)
	}
}

// releaseAll is release for all components.
func (h *heldPorts) releaseAll() {
	for _, name := range components() {
		h.release(name)
	}
}

// fixedPorts says which component wants each port that is not 0. Two that want the same
// one are an error, whether the port is free or not.
func fixedPorts(wanted map[string]int) (map[int]string, error) {
	taken := map[int]string{}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(wanted)), func(name string) bool { return wanted[name] == 0 })
	for _, name := range names {
		if other, ok := taken[wanted[name]]; ok {
			return nil, fmt.Errorf("port %d is wanted by both %s and %s", wanted[name], other, name)
		}
		taken[wanted[name]] = name
	}
	for _, name := range names {
		if !free(wanted[name]) {
			return nil, fmt.Errorf("port %d for %s is in use on 127.0.0.1; choose another or leave the choice to the lab", wanted[name], name)
		}
	}
	return taken, nil
}

// FreePort chooses a port that nothing listens on now, for what is started later than the
// lab.
func FreePort() (int, error) { return freePort(nil) }

func freePort(taken map[int]string) (int, error) {
	const tries = 1000
	for range tries {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:forbidigo // labs that start at once must not try the same ports
		if taken[port] == "" && free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d after %d tries", firstPort, lastPort, tries)
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
