package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

// supervise starts the parts, waits for the end and stops them.
func (l *Lab) supervise(ctx context.Context, control *control, ca *authority) error {
	self, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	began := time.Now()
	state := State{
		Phase: PhaseStarting, Dir: l.cfg.Dir, Supervisor: self, StartedAt: began,
		KubernetesVersion: l.versions.kubernetes, Served: l.emulation.served(), EtcdVersion: l.versions.etcd,
		Server: l.env.Server, Kubeconfig: l.env.Kubeconfig, Nodes: l.cfg.Nodes, Ports: l.env.Ports,
		ControlPort: control.port(), ControlToken: control.token,
	}
	l.board = newBoard(l.layout, state, func(err error) { l.log.Error("state not written", "error", err) })
	probes, err := newProbes(l.layout, ca, l.env.Ports)
	if err != nil {
		return err
	}
	parts := l.parts(probes)
	l.board.update(func(s *State) {
		for _, p := range parts {
			s.Parts = append(s.Parts, PartState{Name: p.name, Kind: p.kind, Status: StatusWaiting})
		}
	})

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.fail = cancel
	err = l.start(ctx, cancel, parts)
	if err == nil {
		l.isStarted.Store(true)
		l.board.update(func(s *State) { s.Phase, s.ReadyAt = PhaseReady, time.Now() })
		l.log.Info("lab ready", "took", time.Since(began))
		close(l.ready)
		<-ctx.Done()
	}
	l.stop()
	if failed := new(errStartup); errors.As(context.Cause(ctx), &failed) {
		return failed
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// start brings everything up in order. It ends early when ctx is done.
func (l *Lab) start(ctx context.Context, fail context.CancelCauseFunc, parts []part) error {
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	byKind := map[Kind][]part{}
	for _, p := range parts {
		byKind[p.kind] = append(byKind[p.kind], p)
	}
	control := byKind[KindComponent] // in the order of components()
	if err := l.bring(limited, fail, control[:1]); err != nil {
		return err
	}
	if err := l.bring(limited, fail, control[1:2]); err != nil {
		return err
	}
	both, bothCtx := errgroup.WithContext(limited)
	both.Go(func() error { return l.bring(bothCtx, fail, control[2:]) })
	both.Go(func() error { return l.install(bothCtx) })
	if err := both.Wait(); err != nil {
		return err
	}
	for _, service := range byKind[KindService] {
		if err := l.bring(limited, fail, []part{service}); err != nil {
			return err
		}
	}
	return nil
}

// bring starts parts side by side and waits until all of them are ready.
func (l *Lab) bring(ctx context.Context, fail context.CancelCauseFunc, parts []part) error {
	began := time.Now()
	keepers := make([]*kept, len(parts))
	for i, p := range parts {
		l.held.release(p.name)
		keepers[i] = l.keep(p, fail)
	}
	for _, k := range keepers {
		select {
		case <-k.ready:
			l.cfg.Progress(fmt.Sprintf("%-24s ready after %.1f s", k.part.name, time.Since(began).Seconds()))
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx.Err()
			}
			cause := fmt.Errorf("not ready after %s: %w", startTimeout, errors.Join(k.lastReason()))
			return &errStartup{part: k.part.name, cause: cause, lastWords: k.part.lastWords()}
		}
	}
	return nil
}

// keep lets a part live until stop. Its end while the lab starts is the end of
// the start.
func (l *Lab) keep(p part, fail context.CancelCauseFunc) *kept {
	say := func(format string, args ...any) { l.cfg.Progress(fmt.Sprintf(format, args...)) }
	ctx, cancel := context.WithCancel(context.Background())
	k := &kept{
		keeper: newKeeper(p, l.board, l.log, func() bool { return !l.isStarted.Load() }, say),
		stop:   cancel, done: make(chan struct{}),
	}
	l.mu.Lock()
	l.keepers = append(l.keepers, k)
	l.mu.Unlock()
	go func() {
		defer close(k.done)
		if err := k.keep(ctx); err != nil {
			fail(err)
		}
	}()
	return k
}

// stop ends the parts, the last one started first, and says so in the state.
func (l *Lab) stop() {
	l.cfg.Progress("stopping")
	l.board.update(func(s *State) { s.Phase = PhaseStopping })
	for k := l.last(); k != nil; k = l.last() {
		k.stop()
		<-k.done
		l.forget(k)
	}
	l.board.update(markStopped)
	l.log.Info("lab stopped")
}

// restart ends a part at a user's request and returns once it is ready again.
func (l *Lab) restart(ctx context.Context, name string) error {
	state, _ := l.board.snapshot()
	if state.Part(name) == nil {
		return unknownPart(name, state.PartNames())
	}
	if state.Phase != PhaseReady {
		return fmt.Errorf("the lab is %s; wait until it is ready", state.Phase)
	}
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	if k := l.keeper(name); k != nil {
		if err := k.startAgain(ctx); err != nil {
			return fmt.Errorf("restart %s: %w", name, err)
		}
	}
	return l.awaitReady(ctx, name)
}

func (l *Lab) awaitReady(ctx context.Context, name string) error {
	for {
		state, changed := l.board.snapshot()
		if p := state.Part(name); p == nil || p.Status == StatusReady {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s was restarted and is not ready after %s; see: nap lab logs %s", name, restartTimeout, name)
		}
	}
}
