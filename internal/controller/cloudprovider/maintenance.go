package cloudprovider

import (
	"context"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/maintenance"
)

// mapFor is how long the ConfigMap of the maintenance window is believed.
const mapFor = time.Minute

// windowMap reads the ConfigMap in which AKS writes the next window, for clusters
// whose own schedule cannot be read.
type windowMap struct {
	read func(context.Context) (map[string]string, error)

	mu     sync.Mutex
	window maintenance.Window
	err    error
	asked  time.Time
}

// windows knows when the cluster may be maintained. It is safe for concurrent use.
type windows struct {
	azure    *azure.Provider
	warnings *warnings
	// configMap is used where the cluster's own schedule cannot be read.
	configMap windowMap
}

func (m *windowMap) get(ctx context.Context) (maintenance.Window, error) {
	if m.read == nil {
		return maintenance.Window{}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.asked.IsZero() && time.Since(m.asked) < mapFor {
		return m.window, m.err
	}
	data, err := m.read(ctx)
	if err == nil {
		m.window, err = maintenance.FromConfigMap(data)
	}
	m.err, m.asked = err, time.Now()
	return m.window, err
}

// mayReplaceImages reports whether machines may be replaced for a newer image now:
// without a window they may at any time. While it is not known they may not, and an
// event on the class says why.
func (w *windows) mayReplaceImages(ctx context.Context, class *v1beta1.AKSNodeClass) bool {
	window, err := w.current(ctx)
	if err != nil {
		w.warnings.tell(class, "MaintenanceWindowUnknown", "Machines are not replaced for newer images: "+err.Error())
		return false
	}
	open, _ := window.Open(time.Now())
	return open
}

// open reports whether the window is open at a moment, and until when that holds,
// zero for ever. Without a window it always is.
func (w *windows) open(ctx context.Context, now time.Time) (open bool, until time.Time, err error) {
	window, err := w.current(ctx)
	if err != nil {
		return false, time.Time{}, err
	}
	open, until = window.Open(now)
	return open, until, nil
}

// current is the cluster's own, without one the ConfigMap's.
func (w *windows) current(ctx context.Context) (maintenance.Window, error) {
	window, err := w.azure.MaintenanceWindow(ctx)
	if window.Set() {
		return window, nil // the last one that was read holds
	}
	// Either the cluster has none, or it could not be read: AKS writes the same
	// window into the ConfigMap.
	fallback, fallbackErr := w.configMap.get(ctx)
	switch {
	case fallbackErr != nil:
		return fallback, fallbackErr
	case fallback.Set():
		return fallback, nil
	}
	return fallback, err
}
