package arm

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// HeldTask waits until the fault that holds it is removed.
type HeldTask struct {
	Fault string `json:"fault"`
	Task  Task   `json:"task"`
}

// Faults are what goes wrong on purpose.
type Faults struct {
	random  *Random
	clock   Clock
	tasks   *Tasks
	audit   *AuditLog
	changed func()

	inForce []*Fault   // in the order in which they were added
	held    []HeldTask // tasks that a hanging fault keeps back
	added   int        // faults added so far, for their IDs
	onAdd   []func(*Fault)
	onEnd   []func(*Fault)
}

// OnAdd has a function called for each fault that is added.
func (s *Faults) OnAdd(f func(*Fault)) { s.onAdd = append(s.onAdd, f) }

// OnEnd has a function called for each fault that ends.
func (s *Faults) OnEnd(f func(*Fault)) { s.onEnd = append(s.onEnd, f) }

// Add starts a fault, which must be valid, and returns it with its ID.
func (s *Faults) Add(f Fault) Fault {
	s.added++
	f.ID = fmt.Sprintf("f%d", s.added)
	f.Added = s.clock.Now()
	f.Hits = 0
	stored := &f
	s.inForce = append(s.inForce, stored)
	if f.Duration > 0 {
		s.tasks.Plan(s.clock.Now().Add(f.Duration), Task{Kind: taskFault, Key: f.ID})
	}
	s.audit.Event("fault.added", f.ID, string(f.Kind))
	for _, tell := range s.onAdd {
		tell(stored)
	}
	return *stored
}

// List copies the faults that are in force.
func (s *Faults) List() []Fault {
	out := make([]Fault, len(s.inForce))
	for i, f := range s.inForce {
		out[i] = *f
	}
	return out
}

// Remove ends a fault; what it held back goes on. False when there is no such fault.
func (s *Faults) Remove(id string) bool {
	i := slices.IndexFunc(s.inForce, func(f *Fault) bool { return f.ID == id })
	if i < 0 {
		return false
	}
	f := s.inForce[i]
	s.inForce = slices.Delete(s.inForce, i, i+1)
	held := s.held
	s.held = nil
	for _, h := range held {
		if h.Fault == id {
			s.tasks.Plan(s.clock.Now(), h.Task)
		} else {
			s.held = append(s.held, h)
		}
	}
	for _, tell := range s.onEnd {
		tell(f)
	}
	s.audit.Event("fault.removed", id, fmt.Sprintf("%s, struck %d times", f.Kind, f.Hits))
	return true
}

// OfKind lists the faults of a kind that are in force.
func (s *Faults) OfKind(kind FaultKind) []*Fault {
	var out []*Fault
	for _, f := range s.inForce {
		if f.Kind == kind {
			out = append(out, f)
		}
	}
	return out
}

// Target is what a fault may select.
type Target struct {
	Operation, Resource, Size, Zone, Priority, Family string
	// Named: only faults that name their operation apply. The token endpoint and
	// the price API are such targets, so that an API outage leaves them alone.
	Named bool
}

// Selects says whether the fault's patterns match.
func (f *Fault) Selects(t Target) bool {
	if t.Named && f.Operation == "" {
		return false
	}
	return Matches(f.Operation, t.Operation) && Matches(f.Size, t.Size) && Matches(f.Zone, t.Zone) &&
		Matches(f.Priority, t.Priority) && Matches(f.Family, t.Family) &&
		(Matches(f.Resource, t.Resource) || Matches(f.Resource, LastSegment(t.Resource)))
}

// Strike returns the first fault of one of the kinds that hits the target, and
// counts the hit; nil when none does. Faults with a rate take a random draw.
func (s *Faults) Strike(t Target, kinds ...FaultKind) *Fault {
	for _, f := range s.inForce {
		if slices.Contains(kinds, f.Kind) && f.Selects(t) && s.Takes(f) {
			f.Hits++
			return f
		}
	}
	return nil
}

// Takes says whether the fault's rate lets it hit one more target.
func (s *Faults) Takes(f *Fault) bool { return f.Rate == 0 || s.random.Draw() < f.Rate }

// OfRequest is the error that a fault answers a request with, if any.
func (s *Faults) OfRequest(t Target) error {
	f := s.Strike(t, FaultOutage, FaultThrottle, FaultError)
	if f == nil {
		return nil
	}
	e := NewError(http.StatusServiceUnavailable, "ServiceUnavailable", "The service is unavailable.")
	switch f.Kind {
	case FaultThrottle:
		e = NewError(http.StatusTooManyRequests, "TooManyRequests",
			"The request is being throttled as the limit has been reached for operation type - %s.", t.Operation)
		e.RetryAfter = 10 * time.Second
		if f.RetryAfter > 0 {
			e.RetryAfter = f.RetryAfter
		}
	case FaultError:
		e = NewError(http.StatusInternalServerError, "InternalServerError", "An internal server error occurred.")
	default: // the other kinds keep the error that was given
	}
	e.Abort = f.Code == "abort"
	e.Status = cmp.Or(f.Status, e.Status)
	e.Code = cmp.Or(f.Code, e.Code)
	e.Message = cmp.Or(f.Message, e.Message)
	if f.Kind == FaultError {
		return shaped(e, f)
	}
	return e
}

// Schedule plans the end of an operation, which slow and hanging faults delay.
func (s *Faults) Schedule(delay time.Duration, target Target, t Task) {
	if f := s.Strike(target, FaultSlow); f != nil {
		delay = time.Duration(float64(delay) * f.Factor)
	}
	if f := s.Strike(target, FaultHang); f != nil {
		s.held = append(s.held, HeldTask{Fault: f.ID, Task: t})
		s.changed()
		return
	}
	s.tasks.After(delay, t)
}

// Holds says whether a hanging fault keeps back a task of a resource.
func (s *Faults) Holds(key string) bool {
	return slices.ContainsFunc(s.held, func(h HeldTask) bool { return h.Task.Key == key })
}

// FaultState is what is saved of the faults.
type FaultState struct {
	InForce []*Fault   `json:"inForce"`
	Held    []HeldTask `json:"held"`
	Added   int        `json:"added"`
}

// Snapshot copies the faults and what they hold back.
func (s *Faults) Snapshot() FaultState {
	c := FaultState{InForce: make([]*Fault, len(s.inForce)), Held: slices.Clone(s.held), Added: s.added}
	for i, f := range s.inForce {
		g := *f
		c.InForce[i] = &g
	}
	return c
}

// Restore takes the faults of a snapshot.
func (s *Faults) Restore(c FaultState) { s.inForce, s.held, s.added = c.InForce, c.Held, c.Added }
