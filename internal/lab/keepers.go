package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// kept is a keeper at work.
type kept struct {
	*keeper
	stop context.CancelFunc
	done chan struct{}
}

// startAgain ends the part and returns once it is on its way up again.
func (k *kept) startAgain(ctx context.Context) error {
	taken := make(chan struct{})
	select {
	case k.restart <- taken:
		<-taken
		return nil
	case <-k.done:
		return errors.New("it has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// last is the part that was started last, and from now on nothing is started.
func (l *Lab) last() *kept {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
	if len(l.keepers) == 0 {
		return nil
	}
	return l.keepers[len(l.keepers)-1]
}

func (l *Lab) forget(k *kept) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keepers = slices.DeleteFunc(l.keepers, func(other *kept) bool { return other == k })
}

// keeper finds the keeper of a part, nil if it has ended.
func (l *Lab) keeper(name string) *kept {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.keepers, func(k *kept) bool { return k.part.name == name })
	if i < 0 {
		return nil
	}
	return l.keepers[i]
}

// Process is a child that a service starts by Environment.Start. It is a part of the
// lab of its own: it has a log, can be killed and restarted by name, and is started
// again when it ends.
type Process struct {
	// Name is unique among the parts of the lab: lower-case letters, digits and dashes.
	Name string
	// Pod is the pod that it runs for, as namespace/name; it is shown in the state.
	Pod string
	// Program is the path of the executable.
	Program string
	// Command says how the program is started; it is asked at each start. An error
	// keeps the process from starting, and it is tried again after a pause.
	Command func() (Command, error)
	// Ready is asked over and over until it returns nil, and seldom afterwards. Nil
	// means that the process is ready while it runs.
	Ready func(ctx context.Context) error
	// Changed, where set, is told the process's state after each change. It must
	// return at once.
	Changed func(PartState)
}

// Command is how a process is started.
type Command struct {
	Args []string // behind the program's name
	Env  []string // all of its environment, as NAME=value
	Dir  string   // where it works
}

// Running is a process under the supervisor's care.
type Running struct {
	lab   *Lab
	kept  *kept
	grace atomic.Int64
}

// defaultGrace is how long a process may take to end when the whole lab does.
const defaultGrace = 10 * time.Second

// startProcess is Environment.Start.
func (l *Lab) startProcess(p Process) (*Running, error) {
	r := &Running{lab: l}
	r.grace.Store(int64(defaultGrace))
	l.mu.Lock()
	ending := l.ending
	l.mu.Unlock()
	switch state, _ := l.board.snapshot(); {
	case ending:
		return nil, errors.New("the lab is stopping")
	case !validName.MatchString(p.Name):
		return nil, fmt.Errorf("name %q of a lab part: must be lower-case letters, digits and dashes, at most 63", p.Name)
	case state.Part(p.Name) != nil:
		return nil, fmt.Errorf("name %q of a lab part is taken", p.Name)
	}
	base := child{
		spawner: l.spawner, program: p.Program, log: l.layout.log(p.Name), ready: p.Ready,
		grace: func() time.Duration { return time.Duration(r.grace.Load()) },
	}
	if base.ready == nil {
		base.ready = func(context.Context) error { return nil }
	}
	run := func(ctx context.Context, notify events) error {
		command, err := p.Command()
		if err != nil {
			return fmt.Errorf("cannot be started: %w", err)
		}
		c := base
		c.args, c.env, c.dir = command.Args, append([]string{}, command.Env...), command.Dir
		return c.run(ctx, notify)
	}
	l.board.update(func(s *State) {
		s.Parts = append(s.Parts, PartState{Name: p.Name, Kind: KindProcess, Status: StatusWaiting, Pod: p.Pod})
	})
	r.kept = l.keep(part{
		name: p.Name, kind: KindProcess, run: run, changed: p.Changed,
		lastWords: func() string { return lastWords(base.log) },
	}, l.fail)
	return r, nil
}

// Stop ends the process, which has grace to end by itself, and returns when it has.
// Its name is free again, and its log stays.
func (r *Running) Stop(grace time.Duration) {
	r.grace.Store(int64(grace))
	r.kept.stop()
	<-r.kept.done
	r.lab.forget(r.kept)
	r.lab.board.update(func(s *State) {
		s.Parts = slices.DeleteFunc(s.Parts, func(p PartState) bool { return p.Name == r.kept.part.name })
	})
}

// Restart ends the process and starts it again at once.
func (r *Running) Restart(ctx context.Context) error { return r.kept.startAgain(ctx) }
