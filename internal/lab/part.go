package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// A part that ends is started again after a pause, which doubles with each end
// from the first to the longest and starts over once the part ran for a while, or
// was killed from outside and is not to blame.
const (
	firstPause = time.Second
	longPause  = 10 * time.Second
	steadyTime = 30 * time.Second
)

// events is how a running part says what happens to it.
type events struct {
	started func(Identity)
	ready   func()
	// unready tells why the part is not ready yet; it may be told often.
	unready func(error)
}

// part is one supervised thing.
type part struct {
	name string
	kind Kind
	// run lets the part live until ctx is done or it ends by itself, which is
	// always an error. It may be called again after it has returned.
	run func(ctx context.Context, notify events) error
	// lastWords returns what the part logged last, indented.
	lastWords func() string
	// changed, where set, is told the part's state after each change of it.
	changed func(PartState)
}

// errStartup is returned when a part ends before the lab is ready.
type errStartup struct {
	part      string
	cause     error
	lastWords string
}

func (e *errStartup) Error() string {
	text := fmt.Sprintf("%s did not start: %v", e.part, e.cause)
	if e.lastWords == "" {
		return text + "; it logged nothing"
	}
	return text + "; its last words:\n" + e.lastWords
}

func (e *errStartup) Unwrap() error { return e.cause }

// keeper keeps one part running.
type keeper struct {
	part  part
	board *board
	log   *slog.Logger
	// starting reports whether the lab is still starting, when the end of a part
	// is final.
	starting func() bool
	// say tells the user about a restart.
	say func(format string, args ...any)

	restart chan chan struct{} // asks for a restart; closed when it has been taken
	ready   chan struct{}      // closed when the part was ready for the first time

	once    sync.Once
	mu      sync.Mutex
	isReady bool
	reason  error // why the part is not ready
}

// update changes the part's state on the board.
func (k *keeper) update(change func(*PartState)) {
	k.board.updatePart(k.part.name, func(p *PartState) {
		change(p)
		if k.part.changed != nil {
			k.part.changed(*p)
		}
	})
}

func newKeeper(p part, b *board, log *slog.Logger, starting func() bool, say func(string, ...any)) *keeper {
	return &keeper{part: p, board: b, log: log, starting: starting, say: say,
		restart: make(chan chan struct{}), ready: make(chan struct{})}
}

// keep runs the part, and runs it again when it ends, until ctx is done. It
// returns an error only if the part ends while the lab starts.
func (k *keeper) keep(ctx context.Context) error {
	pause := firstPause
	for first := true; ; first = false {
		began := time.Now()
		asked, err := k.runOnce(ctx, first)
		if ctx.Err() != nil {
			k.update(func(p *PartState) { p.Status, p.Process = StatusStopped, Identity{} })
			return nil //nolint:nilerr // it ended because it was told to
		}
		if asked {
			pause = firstPause
			continue
		}
		if k.starting() {
			k.update(func(p *PartState) {
				p.Status, p.Process, p.LastExit = StatusStopped, Identity{}, err.Error()
			})
			return &errStartup{part: k.part.name, cause: err, lastWords: k.part.lastWords()}
		}
		if time.Since(began) > steadyTime || errors.Is(err, errKilled) {
			pause = firstPause
		}
		k.log.Error("part ended", "part", k.part.name, "error", err, "pause", pause)
		k.say("%s %v; starting it again in %s", k.part.name, err, pause)
		k.update(func(p *PartState) {
			p.Status, p.Process, p.LastExit = StatusBackingOff, Identity{}, err.Error()
		})
		k.sleep(ctx, pause)
		pause = min(2*pause, longPause)
	}
}

// sleep waits for the pause to pass. A request to restart ends it early.
func (k *keeper) sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case taken := <-k.restart:
		close(taken)
	}
}

// runOnce runs the part to its end. asked is true if the end was asked for.
func (k *keeper) runOnce(ctx context.Context, first bool) (asked bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.mu.Lock()
	k.isReady, k.reason = false, nil
	k.mu.Unlock()
	k.update(func(p *PartState) {
		p.Status, p.StartedAt, p.ReadyAt, p.Unready = StatusStarting, time.Now(), time.Time{}, ""
		if !first {
			p.Restarts++
		}
	})
	ended := make(chan error, 1)
	go func() {
		ended <- k.part.run(ctx, events{started: k.started, ready: k.becameReady, unready: k.notReady})
	}()
	select {
	case err := <-ended:
		if err == nil {
			err = errors.New("ended")
		}
		return false, err
	case taken := <-k.restart:
		cancel()
		err := <-ended
		k.update(func(p *PartState) {
			p.Status, p.Process, p.LastExit = StatusStarting, Identity{}, "restarted on request"
		})
		close(taken)
		return true, err
	}
}

func (k *keeper) started(id Identity) {
	k.log.Info("part started", "part", k.part.name, "pid", id.PID)
	k.update(func(p *PartState) { p.Process = id })
}

// becameReady and notReady are told over and over; they act on changes.
func (k *keeper) becameReady() {
	k.mu.Lock()
	was := k.isReady
	k.isReady = true
	k.mu.Unlock()
	if was {
		return
	}
	k.log.Info("part ready", "part", k.part.name)
	k.update(func(p *PartState) {
		p.Status, p.Unready = StatusReady, ""
		if p.ReadyAt.IsZero() {
			p.ReadyAt = time.Now()
		}
	})
	k.once.Do(func() { close(k.ready) })
}

func (k *keeper) notReady(reason error) {
	k.mu.Lock()
	was := k.isReady
	k.isReady, k.reason = false, reason
	k.mu.Unlock()
	if !was {
		return
	}
	k.log.Warn("part not ready any more", "part", k.part.name, "reason", reason)
	k.update(func(p *PartState) { p.Status, p.Unready = StatusUnready, reason.Error() })
}

// lastReason returns why the part is not ready, as far as it said so.
func (k *keeper) lastReason() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reason
}
