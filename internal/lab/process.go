package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Identity is a process, told apart from a later one with the same id by when
// it was started. The zero value is no process.
type Identity struct {
	PID int `json:"pid"`
	// Start is opaque: equal for the same process and different for any other
	// that had or will have the same id, over reboots too.
	Start string `json:"start"`
}

// Alive reports whether the process still runs. A zombie does not.
func (id Identity) Alive() bool {
	if id.PID <= 0 {
		return false
	}
	now, err := identify(id.PID)
	return err == nil && now == id
}

// signal sends a signal to the process alone, if it is still the same one.
func (id Identity) signal(s syscall.Signal) error {
	if !id.Alive() {
		return os.ErrProcessDone
	}
	return syscall.Kill(id.PID, s)
}

// kill ends the whole process group that the process leads, if it is still the
// same one.
func (id Identity) kill() error {
	if !id.Alive() {
		return os.ErrProcessDone
	}
	return syscall.Kill(-id.PID, syscall.SIGKILL)
}

// await polls until the process is gone and reports whether it is.
func (id Identity) await(ctx context.Context) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for id.Alive() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// spawner starts children that die with this process. The kernel ties the
// parent-death signal to the thread that made the child, not to the process, so
// all children are made by one goroutine that keeps its thread for as long as
// the spawner is open.
type spawner struct {
	requests chan spawnRequest
	done     chan struct{}
}

type spawnRequest struct {
	cmd    *exec.Cmd
	result chan error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for r := range s.requests {
			r.result <- r.cmd.Start()
		}
	}()
	return s
}

// start starts the command in a process group of its own.
func (s *spawner) start(cmd *exec.Cmd) (Identity, error) {
	cmd.SysProcAttr = childAttributes()
	r := spawnRequest{cmd: cmd, result: make(chan error, 1)}
	s.requests <- r
	if err := <-r.result; err != nil {
		return Identity{}, err
	}
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		// It has ended already.
		return Identity{PID: cmd.Process.Pid}, nil //nolint:nilerr // the caller that waits for the child learns how it ended
	}
	return id, nil
}

// close gives the thread back. Only to be called when all children have ended.
func (s *spawner) close() {
	close(s.requests)
	<-s.done
}

// child is the recipe of a child process.
type child struct {
	spawner *spawner
	program string
	args    []string
	env     []string // all of its environment; nil is this process's own
	dir     string   // where it works; empty is where this process does
	log     string   // path of the file that its output is appended to
	// grace is how long the child may take to end after SIGTERM. Without it, or with
	// 0, the child is killed at once.
	grace func() time.Duration
	// ready is polled until it returns nil.
	ready func(ctx context.Context) error
}

// run starts the child and waits for its end, which is an error unless ctx is
// done. It leaves nothing running.
func (c child) run(ctx context.Context, notify events) error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(c.program, c.args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	cmd.Stdout, cmd.Stderr = log, log
	id, err := c.spawner.start(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", c.program, err)
	}
	notify.started(id)

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	probing, stopProbing := context.WithCancel(ctx)
	probed := make(chan struct{})
	go func() {
		defer close(probed)
		probe(probing, c.ready, notify)
	}()
	defer func() { stopProbing(); <-probed }()

	select {
	case err := <-ended:
		return describeExit(err)
	case <-ctx.Done():
	}
	if c.grace != nil && c.grace() > 0 {
		signalGroup(id.PID, syscall.SIGTERM)
		select {
		case _ = <-ended:
			return ctx.Err()
		case <-time.After(c.grace()):
		}
	}
	signalGroup(id.PID, syscall.SIGKILL)
	_ = <-ended
	return ctx.Err()
}

// signalGroup signals a child's process group. The only failure possible is that
// no process is left in it, which is what the signal is for.
func signalGroup(pid int, s syscall.Signal) {
	_ = syscall.Kill(-pid, s)
}

func describeExit(err error) error {
	if err == nil {
		return errors.New("ended with exit status 0")
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return errKilled
		}
	}
	return fmt.Errorf("ended with %w", err)
}

// errKilled is the end of a child that a signal from outside killed.
var errKilled = errors.New("ended with signal: killed")

// A part is asked often until it is ready and seldom afterwards. One question
// may take as long as probeTimeout.
const (
	askOften     = 50 * time.Millisecond
	askSeldom    = 2 * time.Second
	probeTimeout = 3 * time.Second
)

// probe asks over and over whether a part is ready, and passes the answers on,
// until ctx is done.
func probe(ctx context.Context, ask func(context.Context) error, notify events) {
	for {
		pause := askSeldom
		err := askOnce(ctx, ask)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			notify.ready()
		default:
			notify.unready(err)
			pause = askOften
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func askOnce(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return ask(ctx)
}
