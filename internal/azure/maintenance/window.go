package maintenance

import (
	"fmt"
	"strings"
	"time"
)

// The maintenance configurations of an AKS cluster that say when its nodes may be replaced
// (learn.microsoft.com/azure/aks/planned-maintenance).
const (
	// NodeImages is about node images.
	NodeImages = "aksManagedNodeOSUpgradeSchedule"
	// Kubernetes is about Kubernetes versions.
	Kubernetes = "aksManagedAutoUpgradeSchedule"
)

// ConfigMap is where AKS writes the next windows for clusters whose nodes it provisions,
// in Namespace. Its keys are the names of configurations with -start and -end, its values
// times as RFC 3339 writes them.
const (
	Namespace = "kube-system"
	ConfigMap = "upcoming-maintenance-window"
)

// Window says when maintenance may happen. The zero value is always open: no
// window is set.
type Window struct {
	schedule *Schedule
	// start and end of a single window.
	start, end time.Time
}

// Set reports whether there is a window at all.
func (w Window) Set() bool { return w.schedule != nil || !w.end.IsZero() }

// Open reports whether maintenance may happen at a moment, and until when that
// answer holds. The time is zero where it holds for ever, as far as is known.
func (w Window) Open(now time.Time) (open bool, until time.Time) {
	switch {
	case w.schedule != nil:
		return w.schedule.open(now)
	case w.end.IsZero():
		return true, time.Time{}
	case !now.After(w.start):
		return false, w.start
	case now.Before(w.end):
		return true, w.end
	}
	return false, time.Time{}
}

// String says in words when the window is, for people.
func (w Window) String() string {
	switch {
	case w.schedule != nil:
		return w.schedule.String()
	case w.end.IsZero():
		return "any time"
	}
	return fmt.Sprintf("from %s to %s", w.start.UTC().Format(time.RFC3339), w.end.UTC().Format(time.RFC3339))
}

// FromSchedule is the window that a schedule makes.
func FromSchedule(s Schedule) (Window, error) {
	if err := s.validate(); err != nil {
		return Window{}, err
	}
	return Window{schedule: &s}, nil
}

// FromConfigMap reads the window of a maintenance configuration that AKS has written.
// Without both keys there is none. One key alone, or a value that is no time, is an error that names it:
// whether maintenance may happen is not known then.
func FromConfigMap(data map[string]string, name string) (Window, error) {
	keyStart, keyEnd := name+"-start", name+"-end"
	start, end := strings.TrimSpace(data[keyStart]), strings.TrimSpace(data[keyEnd])
	if start == "" && end == "" {
		return Window{}, nil
	}
	var w Window
	for _, f := range []struct {
		key, text string
		to        *time.Time
	}{{keyStart, start, &w.start}, {keyEnd, end, &w.end}} {
		if f.text == "" {
			return Window{}, fmt.Errorf("ConfigMap %s: key %s is missing; give both %s and %s, or none", ConfigMap, f.key, keyStart, keyEnd)
		}
		at, err := time.Parse(time.RFC3339, f.text)
		if err != nil {
			return Window{}, fmt.Errorf("ConfigMap %s: key %s: %q is no time; write it as 2026-01-02T03:04:05Z", ConfigMap, f.key, f.text)
		}
		*f.to = at
	}
	if !w.start.Before(w.end) {
		return Window{}, fmt.Errorf("ConfigMap %s: %s %s is not before %s %s", ConfigMap, keyStart, start, keyEnd, end)
	}
	return w, nil
}
