package cloudprovider

import (
	"context"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/maintenance"
	"github.com/nodeautoprovision/nap/internal/controller/event"
)

// mapFor is how long the ConfigMap of the maintenance window is believed.
const mapFor = time.Minute

// windowMap reads the ConfigMap in which AKS writes the next windows, for clusters
// whose own schedule cannot be read.
type windowMap struct {
	read func(context.Context) (map[string]string, error)

	mu    sync.Mutex
	data  map[string]string
	err   error
	asked time.Time
}

// windows knows when the cluster may be maintained. It is safe for concurrent use.
type windows struct {
	azure    *azure.Provider
	recorder *laterRecorder
	// configMap is used where the cluster's own schedule cannot be read.
	configMap windowMap
}

// get is the window of a maintenance configuration.
func (m *windowMap) get(ctx context.Context, name string) (maintenance.Window, error) {
	if m.read == nil {
		return maintenance.Window{}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.asked) >= mapFor {
		m.data, m.err = m.read(ctx)
		m.asked = time.Now()
	}
	if m.err != nil {
		return maintenance.Window{}, m.err
	}
	return maintenance.FromConfigMap(m.data, name)
}

// mayReplaceImages reports whether machines may be replaced for a newer image now:
// without a window they may at any time. While it is not known they may not, and an
// event on the class says why.
func (w *windows) mayReplaceImages(ctx context.Context, class *v1beta1.AKSNodeClass) bool {
	return w.may(ctx, class, maintenance.NodeImages, "newer images")
}

// mayUpgrade reports the same of machines that are replaced for a newer Kubernetes
// version.
func (w *windows) mayUpgrade(ctx context.Context, class *v1beta1.AKSNodeClass) bool {
	return w.may(ctx, class, maintenance.Kubernetes, "a newer Kubernetes version")
}

func (w *windows) may(ctx context.Context, class *v1beta1.AKSNodeClass, name, what string) bool {
	window, err := w.current(ctx, name)
	if err != nil {
		w.recorder.Publish(event.WindowUnknown(class, what, err))
		return false
	}
	open, _ := window.Open(time.Now())
	return open
}

// open reports whether the window for node images is open at a moment, and until when
// that holds, zero for ever. Without a window it always is.
func (w *windows) open(ctx context.Context, now time.Time) (open bool, until time.Time, err error) {
	window, err := w.current(ctx, maintenance.NodeImages)
	if err != nil {
		return false, time.Time{}, err
	}
	open, until = window.Open(now)
	return open, until, nil
}

// current is the cluster's own, without one the ConfigMap's.
func (w *windows) current(ctx context.Context, name string) (maintenance.Window, error) {
	window, err := w.azure.MaintenanceWindow(ctx, name)
	if window.Set() {
		return window, nil // the last one that was read holds
	}
	// Either the cluster has none, or it could not be read: AKS writes the same
	// window into the ConfigMap.
	fallback, fallbackErr := w.configMap.get(ctx, name)
	switch {
	case fallbackErr != nil:
		return fallback, fallbackErr
	case fallback.Set():
		return fallback, nil
	}
	return fallback, err
}
