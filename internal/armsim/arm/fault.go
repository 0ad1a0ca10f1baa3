package arm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The two priorities of machines; Azure's older word Low means Spot.
const (
	Regular = "Regular"
	Spot    = "Spot"
)

// FaultKind says what goes wrong.
type FaultKind string

// The faults.
const (
	// FaultCapacity: machines that match find no capacity. Code chooses the
	// error; by default it is what Azure answers for such a machine.
	FaultCapacity FaultKind = "capacity"
	// FaultPolicy: a policy of the subscription denies machines of the sizes Size, a
	// pattern with at most one star, as operator like of Azure Policy has it.
	FaultPolicy FaultKind = "policy"
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
	// FaultNoBoot: machines are created but never start their operating system, also not
	// later.
	FaultNoBoot FaultKind = "no-boot"
	// FaultProvisioning: machines boot, and what their image does then ends with the exit
	// code Code, 50 by default, and the output Message, as with an image that is broken or
	// a network that leads nowhere.
	FaultProvisioning FaultKind = "provisioning"
	// FaultEvict: running spot machines that match, also ones that boot later,
	// get an eviction notice. Removal before its end takes the notice back.
	FaultEvict FaultKind = "evict"
	// FaultOutage: every call gets 503, or with Code "abort" a closed connection.
	FaultOutage FaultKind = "outage"
)

// FaultKinds lists all kinds in the order of their definition.
func FaultKinds() []FaultKind {
	return []FaultKind{FaultCapacity, FaultPolicy, FaultQuota, FaultThrottle, FaultError, FaultSlow,
		FaultHang, FaultFail, FaultNoBoot, FaultProvisioning, FaultEvict, FaultOutage}
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

// ExitCode is the exit code with which a provisioning fault ends the provisioning of a
// machine; 0 when Code is none.
func (f *Fault) ExitCode() int {
	if f.Code == "" {
		return defaultExitCode
	}
	code, err := strconv.Atoi(f.Code)
	if err != nil || code < 1 || code > 255 {
		return 0
	}
	return code
}

// defaultExitCode is ERR_OUTBOUND_CONN_FAIL of AKS's images.
const defaultExitCode = 50

// Validate names what is wrong with a fault.
func (f *Fault) Validate() error {
	kinds := FaultKinds()
	if !slices.Contains(kinds, f.Kind) {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = string(k)
		}
		return fmt.Errorf("fault kind %q is unknown; it is one of %s", f.Kind, strings.Join(names, ", "))
	}
	if err := f.validateValues(); err != nil {
		return err
	}
	switch {
	case f.Kind == FaultPolicy && (f.Size == "" || strings.Count(f.Size, "*") > 1):
		return fmt.Errorf("fault policy: size %q is not allowed; give the sizes that it denies, with at most one *, as Standard_D*", f.Size)
	case f.Kind == FaultQuota && f.Limit == nil:
		return fmt.Errorf("fault quota: limit is missing; give the number of vCPUs, 0 for none")
	case f.Kind == FaultQuota && f.Family == "":
		return fmt.Errorf("fault quota: family is missing; give a quota family as standardDSv5Family, cores or " +
			"lowPriorityCores, or * for every one")
	case f.Kind == FaultSlow && f.Factor <= 1:
		return fmt.Errorf("fault slow: factor %v is not greater than 1", f.Factor)
	case f.Kind == FaultFail && f.Code == "":
		return fmt.Errorf("fault fail: code is missing; give the error code with which creation ends, as OSProvisioningTimedOut")
	case f.Kind == FaultProvisioning && f.ExitCode() == 0:
		return fmt.Errorf("fault provisioning: code %q is no exit code; give a number from 1 to 255, as 50", f.Code)
	}
	return nil
}

// validateValues names what is wrong with a value that faults of several kinds have.
func (f *Fault) validateValues() error {
	switch {
	case f.Rate < 0 || f.Rate > 1:
		return fmt.Errorf("fault %s: rate %v is not between 0 and 1", f.Kind, f.Rate)
	case f.Priority != "" && !strings.EqualFold(f.Priority, Regular) && !strings.EqualFold(f.Priority, Spot):
		return fmt.Errorf("fault %s: priority %q is unknown; it is Regular or Spot", f.Kind, f.Priority)
	case f.Zone != "" && !strings.Contains(f.Zone, "*") && !slices.Contains([]string{"0", "1", "2", "3"}, f.Zone):
		return fmt.Errorf("fault %s: zone %q is unknown; it is 1, 2, 3, or 0 for machines without a zone", f.Kind, f.Zone)
	case f.Duration < 0:
		return fmt.Errorf("fault %s: duration %s is negative", f.Kind, f.Duration)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("fault %s: status %d is not an HTTP error, 400 to 599", f.Kind, f.Status)
	}
	return nil
}
