package kubelet

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// suspectOrphan has a node looked at that is not ready and has no kubelet here.
func (f *Fleet) suspectOrphan(n *corev1.Node) {
	if f.cfg.VMExists != nil && strings.HasPrefix(n.Spec.ProviderID, providerScheme) && readiness(n) != corev1.ConditionTrue {
		f.orphans.queue.Add(n.Name)
	}
}

// syncOrphan deletes the Node object of a machine that no longer exists, as the
// cloud node lifecycle controller does: only when the node is not ready, and
// only after asking the cloud. A node whose machine exists is asked about again.
func (f *Fleet) syncOrphan(ctx context.Context, name string) (time.Duration, error) {
	o, ok, err := f.nodes.GetIndexer().GetByKey(name)
	if err != nil || !ok {
		return 0, err
	}
	n := o.(*corev1.Node)
	id, azure := strings.CutPrefix(n.Spec.ProviderID, providerScheme)
	if f.cfg.VMExists == nil || !azure || readiness(n) == corev1.ConditionTrue {
		return 0, nil // a change of the node brings it back
	}
	if f.cfg.VMExists(id) {
		return orphanCheckInterval, nil
	}
	err = f.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &n.UID}})
	if err != nil {
		return 0, ignoreNotFound(fmt.Errorf("deleting node %s, whose machine is gone: %w", name, err))
	}
	return 0, nil
}
