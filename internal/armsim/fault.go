package armsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// FaultKind says what goes wrong.
type FaultKind string

// The faults.
const (
	// FaultCapacity: machines that match find no capacity. Code chooses the
	// error; by default it is what Azure answers for such a machine.
	FaultCapacity FaultKind = "capacity"
	// FaultQuota: the quota Family ("cores" and "lowPriorityCores" are families
	// too) has the limit Limit.
	FaultQuota FaultKind = "quota"
	// FaultThrottle: a share Rate of the calls gets 429 with RetryAfter.
	FaultThrottle FaultKind = "throttle"
	// FaultError: a share Rate of the calls gets Status (default 500) and Code.
	FaultError FaultKind = "error"
	// FaultSlow: operations take Factor times as long.
	FaultSlow FaultKind = "slow"
	// FaultHang: operations do not end while the fault lasts; they go on when it is removed.
	FaultHang FaultKind = "hang"
	// FaultFail: create operations of machines are accepted and end with Code and
	// Message; those of extensions too when the fault names their Operation.
	FaultFail FaultKind = "fail"
	// FaultNoBoot: machines are created but never start their kubelet, also not
	// later. Message is what their agent says about it.
	FaultNoBoot FaultKind = "no-boot"
	// FaultBootData: machines boot from data that is wrong. Azure does not look into
	// boot data, so whoever plays the kubelet spoils it, see [Machine].SpoiltBoot.
	FaultBootData FaultKind = "boot-data"
	// FaultEvict: running spot machines that match, also ones that boot later,
	// get an eviction notice. Removal before its end takes the notice back.
	FaultEvict FaultKind = "evict"
	// FaultOutage: every call gets 503, or with Code "abort" a closed connection.
	FaultOutage FaultKind = "outage"
)

// FaultKinds lists all kinds in the order of their definition.
func FaultKinds() []FaultKind {
	return []FaultKind{FaultCapacity, FaultQuota, FaultThrottle, FaultError, FaultSlow, FaultHang, FaultFail, FaultNoBoot, FaultBootData, FaultEvict, FaultOutage}
}

// Fault is something that goes wrong for the calls and machines it selects.
// Selectors are patterns (* for any run of characters, case ignored); empty
// selects all. All of them must match.
type Fault struct {
	ID   string    `json:"id"` // given by AddFault
	Kind FaultKind `json:"kind"`

	Size      string `json:"size,omitempty"`      // VM size
	Zone      string `json:"zone,omitempty"`      // "1", or "0" for machines without a zone
	Priority  string `json:"priority,omitempty"`  // Regular or Spot
	Family    string `json:"family,omitempty"`    // quota family, as standardDSv5Family
	Operation string `json:"operation,omitempty"` // ARM action, as Microsoft.Compute/virtualMachines/write; also oauth2/token, retail/prices
	Resource  string `json:"resource,omitempty"`  // resource ID, or the name at its end

	Rate       float64       `json:"rate,omitempty"`       // share of matching calls or machines, 0 means all
	Duration   time.Duration `json:"duration,omitempty"`   // how long it lasts, wall clock; 0 until removed
	Status     int           `json:"status,omitempty"`     // HTTP status of error and outage
	Code       string        `json:"code,omitempty"`       // error code
	Message    string        `json:"message,omitempty"`    // error message
	Limit      *int64        `json:"limit,omitempty"`      // of quota, in vCPUs
	Factor     float64       `json:"factor,omitempty"`     // of slow
	RetryAfter time.Duration `json:"retryAfter,omitempty"` // of throttle; default 10 s

	Added time.Time `json:"added"`
	Hits  int       `json:"hits"` // how often it struck
}

// faultJSON has durations as text, 30s, and is otherwise a Fault.
type faultJSON struct {
	plainFault
	Duration   string `json:"duration,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"`
}

type plainFault Fault

// MarshalJSON writes durations as text.
func (f Fault) MarshalJSON() ([]byte, error) {
	j := faultJSON{plainFault: plainFault(f)}
	if f.Duration > 0 {
		j.Duration = f.Duration.String()
	}
	if f.RetryAfter > 0 {
		j.RetryAfter = f.RetryAfter.String()
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads durations as text and refuses fields that do not exist.
func (f *Fault) UnmarshalJSON(raw []byte) error {
	var j faultJSON
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		return err
	}
	*f = Fault(j.plainFault)
	for _, d := range []struct {
		name, text string
		to         *time.Duration
	}{{"duration", j.Duration, &f.Duration}, {"retryAfter", j.RetryAfter, &f.RetryAfter}} {
		if d.text == "" {
			*d.to = 0
			continue
		}
		v, err := time.ParseDuration(d.text)
		if err != nil {
			return fmt.Errorf("field %s: %q is not a duration, as 30s or 5m", d.name, d.text)
		}
		*d.to = v
	}
	return nil
}

// Validate names what is wrong with a fault; AddFault refuses such a one.
func (f *Fault) Validate() error {
	kinds := FaultKinds()
	if !slices.Contains(kinds, f.Kind) {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = string(k)
		}
		return fmt.Errorf("fault kind %q is unknown; it is one of %s", f.Kind, strings.Join(names, ", "))
	}
	switch {
	case f.Rate < 0 || f.Rate > 1:
		return fmt.Errorf("fault %s: rate %v is not between 0 and 1", f.Kind, f.Rate)
	case f.Priority != "" && !strings.EqualFold(f.Priority, priorityRegular) && !strings.EqualFold(f.Priority, prioritySpot):
		return fmt.Errorf("fault %s: priority %q is unknown; it is Regular or Spot", f.Kind, f.Priority)
	case f.Duration < 0:
		return fmt.Errorf("fault %s: duration %s is negative", f.Kind, f.Duration)
	case f.Kind == FaultQuota && f.Limit == nil:
		return fmt.Errorf("fault quota: limit is missing; give the number of vCPUs, 0 for none")
	case f.Kind == FaultQuota && f.Family == "":
		return fmt.Errorf("fault quota: family is missing; give a quota family as standardDSv5Family, cores or lowPriorityCores, or * for every one")
	case f.Kind == FaultSlow && f.Factor <= 1:
		return fmt.Errorf("fault slow: factor %v is not greater than 1", f.Factor)
	case f.Kind == FaultFail && f.Code == "":
		return fmt.Errorf("fault fail: code is missing; give the error code with which creation ends, as OSProvisioningTimedOut")
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("fault %s: status %d is not an HTTP error, 400 to 599", f.Kind, f.Status)
	}
	return nil
}

// AddFault starts a fault and returns it with its ID.
func (s *Server) AddFault(f Fault) (Fault, error) {
	if err := f.Validate(); err != nil {
		return Fault{}, err
	}
	s.mu.Lock()
	s.st.FaultCount++
	f.ID = fmt.Sprintf("f%d", s.st.FaultCount)
	f.Added = s.now()
	f.Hits = 0
	stored := &f
	s.st.Faults = append(s.st.Faults, stored)
	if f.Duration > 0 {
		s.plan(s.now().Add(f.Duration), task{Kind: taskFault, Key: f.ID})
	}
	s.event("fault.added", f.ID, string(f.Kind))
	if f.Kind == FaultEvict {
		s.evictMatching(stored)
	}
	out := *stored
	s.mu.Unlock()
	s.deliver()
	return out, nil
}

// Faults lists the faults that are in force.
func (s *Server) Faults() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Fault, len(s.st.Faults))
	for i, f := range s.st.Faults {
		out[i] = *f
	}
	return out
}

// RemoveFault ends a fault; what it held back goes on. It errs when there is
// no such fault.
func (s *Server) RemoveFault(id string) error {
	s.mu.Lock()
	ok := s.removeFault(id)
	s.mu.Unlock()
	s.deliver()
	if !ok {
		return fmt.Errorf("there is no fault %q in force", id)
	}
	return nil
}

func (s *Server) removeFault(id string) bool {
	i := slices.IndexFunc(s.st.Faults, func(f *Fault) bool { return f.ID == id })
	if i < 0 {
		return false
	}
	f := s.st.Faults[i]
	s.st.Faults = slices.Delete(s.st.Faults, i, i+1)
	held := s.st.Held
	s.st.Held = nil
	for _, h := range held {
		if h.Fault == id {
			s.plan(s.now(), h.Task)
		} else {
			s.st.Held = append(s.st.Held, h)
		}
	}
	if f.Kind == FaultEvict {
		s.pardon(id)
	}
	s.event("fault.removed", id, fmt.Sprintf("%s, struck %d times", f.Kind, f.Hits))
	return true
}

// faultTarget is what a fault may select.
type faultTarget struct {
	Operation, Resource, Size, Zone, Priority, Family string
	// Named: only faults that name their operation apply. The token endpoint and
	// the price API are such targets, so that an API outage leaves them alone.
	Named bool
}

// selects says whether the fault's patterns match.
func (f *Fault) selects(t faultTarget) bool {
	if t.Named && f.Operation == "" {
		return false
	}
	return matches(f.Operation, t.Operation) && matches(f.Size, t.Size) && matches(f.Zone, t.Zone) &&
		matches(f.Priority, t.Priority) && matches(f.Family, t.Family) &&
		(matches(f.Resource, t.Resource) || matches(f.Resource, lastSegment(t.Resource)))
}

// strike returns the first fault of one of the kinds that hits the target.
func (s *Server) strike(t faultTarget, kinds ...FaultKind) *Fault {
	for _, f := range s.st.Faults {
		if slices.Contains(kinds, f.Kind) && f.selects(t) && (f.Rate == 0 || s.draw() < f.Rate) {
			f.Hits++
			return f
		}
	}
	return nil
}

// requestFault is the error that a fault answers a request with, if any.
func (s *Server) requestFault(t faultTarget) error {
	f := s.strike(t, FaultOutage, FaultThrottle, FaultError)
	if f == nil {
		return nil
	}
	e := newError(http.StatusServiceUnavailable, "ServiceUnavailable", "The service is unavailable.")
	switch f.Kind {
	case FaultThrottle:
		e = newError(http.StatusTooManyRequests, "TooManyRequests", "The request is being throttled as the limit has been reached for operation type - %s.", t.Operation)
		e.RetryAfter = 10 * time.Second
		if f.RetryAfter > 0 {
			e.RetryAfter = f.RetryAfter
		}
	case FaultError:
		e = newError(http.StatusInternalServerError, "InternalServerError", "An internal server error occurred.")
	}
	e.abort = f.Code == "abort"
	setIf(&e.Status, f.Status)
	setIf(&e.Code, f.Code)
	setIf(&e.Message, f.Message)
	return e
}

// setIf replaces a value when there is another.
func setIf[T comparable](v *T, with T) {
	var zero T
	if with != zero {
		*v = with
	}
}

// schedule plans the end of an operation, which slow and hanging faults delay.
func (s *Server) schedule(delay time.Duration, target faultTarget, t task) {
	if f := s.strike(target, FaultSlow); f != nil {
		delay = time.Duration(float64(delay) * f.Factor)
	}
	if f := s.strike(target, FaultHang); f != nil {
		s.st.Held = append(s.st.Held, heldTask{Fault: f.ID, Task: t})
		s.dirty()
		return
	}
	s.after(delay, t)
}
