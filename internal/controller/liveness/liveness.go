// Package liveness notices that the controller no longer gets on: a loop whose step does
// not come to an end, or a lock of Karpenter's mirror that is not given back. The health
// probe then fails, and the kubelet starts the container again; commands under way are
// taken up from what the objects say.
//
// Start with [Check].
package liveness

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Longest is how long one step may take. A plan may take a minute, and writing a
// thousand NodeClaims through a slow API server some more.
const Longest = 5 * time.Minute

// Activity is what a loop is doing: a step since a moment, or waiting. The zero value
// waits.
type Activity struct {
	mu    sync.Mutex
	since time.Time // zero while it waits
}

// Begin says that a step begins. A step that is under way goes on.
func (a *Activity) Begin(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = now
	}
}

// End says that the step is over.
func (a *Activity) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = time.Time{}
}

// Since is when the step that is under way began, zero while there is none.
func (a *Activity) Since() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since
}

// Loop is something that must get on, by the name under which an error speaks of it.
type Loop struct {
	Name     string
	Activity *Activity
}

// Check returns a health check that fails while a step of one of the loops has taken
// longer than [Longest], and names the loop.
func Check(clk clock.PassiveClock, loops ...Loop) func(*http.Request) error {
	return func(*http.Request) error {
		for _, l := range loops {
			since := l.Activity.Since()
			if took := clk.Since(since); !since.IsZero() && took > Longest {
				return fmt.Errorf("%s has been at one step for %s, longer than %s", l.Name, took.Round(time.Second), Longest)
			}
		}
		return nil
	}
}

// Probe returns a health check that calls read, which takes locks, and fails once a call
// has not returned for longer than [Longest]. It never waits for read itself, and makes
// no second call while one is out.
func Probe(clk clock.PassiveClock, name string, read func()) func(*http.Request) error {
	out := &Activity{}
	failing := Check(clk, Loop{name, out})
	return func(req *http.Request) error {
		if out.Since().IsZero() {
			out.Begin(clk.Now())
			go func() {
				defer out.End()
				read()
			}()
		}
		return failing(req)
	}
}
