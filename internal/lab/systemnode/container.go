package systemnode

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// container is one container of a pod, as a process or played.
type container struct {
	worker   *worker
	spec     *corev1.Container
	restarts int32 // before this life of the lab
	program  *Program
	ports    map[int]int // of this machine, by port in the cluster

	process  string // the process's name, which is its log's
	logFrom  int64  // where its part of the log begins
	running  *lab.Running
	giveBack func()
	end      context.CancelFunc // of the liveness probe
	ended    sync.WaitGroup

	mu    sync.Mutex
	state lab.PartState
	alive bool // the startup probe has succeeded since the start
}

func newContainer(w *worker, spec *corev1.Container, restarts int32) *container {
	return &container{worker: w, spec: spec, restarts: restarts}
}

// start starts the container's program as a process of the lab.
func (c *container) start(ctx context.Context, program Program) error {
	c.program = &program
	// What cannot be resolved keeps the container from starting, as in a kubelet.
	stated, err := c.stated(ctx)
	if err != nil {
		return err
	}
	if err := c.openPorts(asMap(stated)); err != nil {
		return err
	}
	c.process, c.giveBack = c.worker.pods.takeName(program.Name)
	if info, err := os.Stat(c.log()); err == nil {
		c.logFrom = info.Size()
	}
	running, err := c.worker.pods.env.Start(lab.Process{
		Name: c.process, Pod: c.worker.key.String(), Program: program.Path,
		Command: func() (lab.Command, error) {
			// Not the pod's context: a process is also started again while the lab ends.
			ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
			defer cancel()
			variables, err := c.environment(ctx)
			return lab.Command{Args: c.args(), Env: variables, Dir: c.worker.dir}, err
		},
		Ready:   c.ready(),
		Changed: c.changed,
	})
	if err != nil {
		c.giveBack()
		c.giveBack = nil
		return err
	}
	c.running = running
	probing, end := context.WithCancel(context.Background())
	c.end = end
	c.ended.Go(func() { c.keepAlive(probing) })
	return nil
}

// args are those of the container; the image has none of its own.
func (c *container) args() []string {
	var args []string
	if len(c.spec.Command) > 1 {
		args = slices.Clone(c.spec.Command[1:])
	}
	return append(args, c.spec.Args...)
}

// log is the path of the process's log.
func (c *container) log() string { return lab.LogFile(c.worker.pods.env.Dir, c.process) }

// openPorts chooses a port of this machine for each that the container declares or its
// program listens on, and has the API server find them.
func (c *container) openPorts(variables map[string]string) error {
	wanted := []int{}
	for _, p := range c.spec.Ports {
		wanted = append(wanted, int(p.ContainerPort))
	}
	for _, p := range c.program.Ports {
		if number, listens := p.in(variables); listens {
			wanted = append(wanted, number)
		}
	}
	c.ports = map[int]int{}
	for _, port := range wanted {
		if c.ports[port] != 0 {
			continue
		}
		free, err := lab.FreePort()
		if err != nil {
			return err
		}
		c.ports[port] = free
		address := net.JoinHostPort(c.worker.address, strconv.Itoa(port))
		c.worker.pods.env.Network.Route(address, local(free))
		c.worker.release = append(c.worker.release, func() { c.worker.pods.env.Network.Route(address, "") })
	}
	return nil
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// changed takes over how the process does.
func (c *container) changed(s lab.PartState) {
	c.mu.Lock()
	if s.Process != c.state.Process {
		c.alive = false
	}
	c.state = s
	c.mu.Unlock()
	c.worker.wake()
}

func (c *container) now() lab.PartState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// stop ends the process, if there is one.
func (c *container) stop(grace time.Duration) {
	if c.end != nil {
		c.end()
		c.ended.Wait()
	}
	if c.running != nil {
		c.running.Stop(grace)
		c.running = nil
	}
	if c.giveBack != nil {
		c.giveBack()
		c.giveBack = nil
	}
}

// port is the number of a port that a probe names.
func (c *container) port(name string) (int, error) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, nil
	}
	for _, p := range c.spec.Ports {
		if p.Name == name {
			return int(p.ContainerPort), nil
		}
	}
	return 0, fmt.Errorf("container %s has no port %q", c.spec.Name, name)
}
