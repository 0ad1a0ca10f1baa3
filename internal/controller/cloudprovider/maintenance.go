package cloudprovider

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
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

// MaintenanceMap sets how the ConfigMap of the next maintenance window is read;
// nil data mean that there is none. Call it before anything else.
func (p *Port) MaintenanceMap(read func(context.Context) (map[string]string, error)) {
	p.windows.read = read
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
// without a window they may at any time. While it is not known they may not, and an event on the class
// says why.
func (p *Port) mayReplaceImages(ctx context.Context, class *v1beta1.AKSNodeClass) bool {
	window, err := p.maintenanceWindow(ctx)
	if err != nil {
		p.tell(class, "MaintenanceWindowUnknown", "Machines are not replaced for newer images: "+err.Error())
		return false
	}
	open, _ := window.Open(time.Now())
	return open
}

// Maintenance reports whether the cluster's maintenance window is open at a moment,
// and until when that holds, zero for ever. Without a window it always is.
func (p *Port) Maintenance(ctx context.Context, now time.Time) (open bool, until time.Time, err error) {
	window, err := p.maintenanceWindow(ctx)
	if err != nil {
		return false, time.Time{}, err
	}
	open, until = window.Open(now)
	return open, until, nil
}

// maintenanceWindow is the cluster's own, without one the ConfigMap's.
func (p *Port) maintenanceWindow(ctx context.Context) (maintenance.Window, error) {
	window, err := p.azure.MaintenanceWindow(ctx)
	if window.Set() {
		return window, nil // the last one that was read holds
	}
	// Either the cluster has none, or it could not be read: AKS writes the same
	// window into the ConfigMap.
	fallback, fallbackErr := p.windows.get(ctx)
	switch {
	case fallbackErr != nil:
		return fallback, fallbackErr
	case fallback.Set():
		return fallback, nil
	}
	return fallback, err
}

// tell publishes a warning about a class or a claim.
func (p *Port) tell(about client.Object, reason, message string) {
	p.mu.Lock()
	recorder := p.recorder
	p.mu.Unlock()
	if recorder != nil {
		recorder.Publish(events.Event{
			InvolvedObject: about, Type: corev1.EventTypeWarning, Reason: reason, Message: message, DedupeValues: []string{string(about.GetUID()), message},
		})
	}
}

// settledImages keeps the versions of images that the class has already, so that
// the whole class moves to new ones within the maintenance window alone. What it
// does not have yet, or not of this spec and Kubernetes version, is new.
func (p *Port) settledImages(ctx context.Context, class *v1beta1.AKSNodeClass, newest []v1beta1.NodeImage) []v1beta1.NodeImage {
	ready := class.StatusConditions().Get(v1beta1.ConditionImagesReady)
	if len(class.Status.Images) == 0 || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != class.Generation || p.mayReplaceImages(ctx, class) {
		return newest
	}
	out := slices.Clone(newest)
	for i := range out {
		for _, old := range class.Status.Images {
			if strings.EqualFold(withoutVersion(old.ID), withoutVersion(out[i].ID)) {
				out[i] = old
			}
		}
	}
	return out
}

// withoutVersion is an image's definition.
func withoutVersion(id string) string { return id[:max(0, strings.LastIndex(id, "/"))] }
