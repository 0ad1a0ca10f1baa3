package cloudprovider

import (
	"errors"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// forgottenAfter is how long a machine is remembered whose deletion was asked for.
const forgottenAfter = time.Hour

// departures know when machines went. Karpenter asks every five seconds whether a machine is
// gone, but Azure bills it until it is.
type departures struct {
	// now is the clock; nil is the system's.
	now func() time.Time
	// gone is told which machine went, and when; nil is told nothing.
	gone func(claim string, at time.Time)

	mu sync.Mutex
	// there is when a machine that is being deleted was last there; mu guards it.
	there map[string]time.Time
}

// WatchGone makes the port tell when the machine of a NodeClaim went. Call it before anything
// runs.
func (p *Port) WatchGone(told func(claim string, at time.Time)) { p.leaving.gone = told }

// asked takes in an answer to the deletion of a claim's machine. A machine that was there and
// is not any more went when Azure says, and else in the middle between the two answers.
func (d *departures) asked(claim string, answer error) {
	now := time.Now()
	if d.now != nil {
		now = d.now()
	}
	d.mu.Lock()
	there, known := d.there[claim]
	switch {
	case answer == nil:
		if d.there == nil {
			d.there = map[string]time.Time{}
		}
		for name, at := range d.there {
			if now.Sub(at) > forgottenAfter {
				delete(d.there, name)
			}
		}
		d.there[claim] = now
	case errors.Is(answer, launch.ErrNotFound):
		delete(d.there, claim)
	}
	d.mu.Unlock()
	if d.gone == nil || !known || !errors.Is(answer, launch.ErrNotFound) {
		return
	}
	at := there.Add(now.Sub(there) / 2)
	var gone *launch.GoneError
	if errors.As(answer, &gone) && gone.At.After(there) && gone.At.Before(now) {
		at = gone.At
	}
	d.gone(claim, at)
}
