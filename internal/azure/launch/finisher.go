package launch

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

const (
	// mostFinishPause is the longest pause between tries to finish a machine: that of the
	// collection of garbage, which finishes machines, too.
	mostFinishPause = 2 * time.Minute
	// forbiddenTries is for how long what a policy or a role forbids is tried as any other
	// fault: after it a machine that needs it to say how its boot went is a node, or given up.
	// From then on it is asked for once in forbiddenFor.
	forbiddenTries = 15 * time.Minute
	forbiddenFor   = time.Hour
)

// finisher puts on machines that run what they still lack. They are launched already: all that
// waits for it is what Azure is to know of them. It is safe for concurrent use.
type finisher struct {
	launcher Launcher
	log      *slog.Logger

	mu sync.Mutex
	// stops ends the tries that are under way, by claim.
	stops map[string]*context.CancelFunc
	// refused is until when a claim's machine is left as it is.
	refused map[string]time.Time
	tries   sync.WaitGroup
}

func newFinisher(l Launcher, log *slog.Logger) *finisher {
	return &finisher{launcher: l, log: log, stops: map[string]*context.CancelFunc{}, refused: map[string]time.Time{}}
}

// start finishes a machine without waiting for Azure, which may hold one machine's request
// back for minutes. What fails is tried again after pauses that grow.
func (f *finisher) start(ctx context.Context, m Machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stops[m.Claim] != nil || time.Now().Before(f.refused[m.Claim]) {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	f.stops[m.Claim] = &stop
	f.tries.Go(func() {
		f.try(ctx, m)
		stop()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.stops[m.Claim] == &stop {
			delete(f.stops, m.Claim)
		}
	})
}

// try finishes a machine until that has worked, nothing is left to do, or it stays forbidden.
func (f *finisher) try(ctx context.Context, m Machine) {
	began := time.Now()
	for wait := oldPoll; ; wait = min(2*wait, mostFinishPause) {
		err := f.now(ctx, m)
		if err == nil || ctx.Err() != nil {
			return
		}
		if forbidden(err) && time.Since(began) >= forbiddenTries {
			f.log.Warn("finishing a machine stays forbidden", "nodeClaim", m.Claim, "error", err, "again in", forbiddenFor.String())
			return
		}
		f.log.Warn("finishing a machine failed; trying again", "nodeClaim", m.Claim, "error", err, "in", wait.String())
		if !pause(ctx, wait, nil) {
			return
		}
		now, err := f.launcher.Get(ctx, m.Claim)
		switch {
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrForeign), err == nil && (now.State == Deleting || !now.Unfinished()):
			return
		case err == nil:
			m = now // of two things that it lacked it may have one by now
		}
	}
}

// now tries once to finish a machine, and remembers where that is forbidden.
func (f *finisher) now(ctx context.Context, m Machine) error {
	err := f.launcher.Finish(ctx, m)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.refused, m.Claim)
	if forbidden(err) && ctx.Err() == nil {
		f.refused[m.Claim] = time.Now().Add(forbiddenFor)
	}
	return err
}

// due reports whether it is worth a try to finish the claim's machine.
func (f *finisher) due(claim string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stops[claim] == nil && !time.Now().Before(f.refused[claim])
}

// forget ends what is done for a claim's machine, which is being removed.
func (f *finisher) forget(claim string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if stop := f.stops[claim]; stop != nil {
		(*stop)()
	}
	delete(f.stops, claim)
	delete(f.refused, claim)
}

// forbidden reports whether every refusal in an error is that of a policy or a role, which
// holds until a person changes it.
func forbidden(err error) bool {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range several.Unwrap() {
			if !forbidden(e) {
				return false
			}
		}
		return true
	}
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && (answer.StatusCode == http.StatusForbidden || answer.ErrorCode == "RequestDisallowedByPolicy")
}
