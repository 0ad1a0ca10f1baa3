package kubelet

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// leasesPerDuration relates the lease's duration to its renewal, as in a real
// kubelet: 40 s and 10 s.
const leasesPerDuration = 4

// heartbeatJitter spreads heartbeats of nodes that registered together.
const heartbeatJitter = 0.04

// heartbeat is what a kubelet keeps of its lease. The lease queue alone uses it.
type heartbeat struct {
	// version is the resource version of the last written lease, with which the next
	// heartbeat is one write without a read; empty when it is not known.
	version string
	beats   uint32
}

// heartbeats renew the leases of registered machines.
type heartbeats struct {
	cfg      Config
	client   kubernetes.Interface
	registry *registry
	queue    *loop[string] // by resource ID
}

func newHeartbeats(cfg Config, client kubernetes.Interface, registry *registry) *heartbeats {
	h := &heartbeats{cfg: cfg, client: client, registry: registry}
	h.queue = newLoop("lease", leaseWorkers, cfg, h.renew)
	return h
}

// renew is a heartbeat: one write, no read.
func (h *heartbeats) renew(ctx context.Context, id string) (time.Duration, error) {
	v := h.registry.machine(id)
	if v == nil || !v.registered() {
		return 0, nil
	}
	leases := h.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease := h.lease(v)
	var written *coordinationv1.Lease
	var err error
	if v.lease.version == "" {
		written, err = leases.Create(ctx, lease, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			// The lease of the node's earlier life: take it over.
			if written, err = leases.Get(ctx, lease.Name, metav1.GetOptions{}); err == nil {
				lease.ResourceVersion = written.ResourceVersion
				written, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
			}
		}
	} else {
		written, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			v.lease.version = ""
		}
		return 0, fmt.Errorf("heartbeat of node %s: %w", lease.Name, err)
	}
	v.lease.version = written.ResourceVersion
	v.lease.beats++
	spread := float64(hash64(fmt.Sprint(lease.Name, v.lease.beats))%1000) / 1000
	return h.cfg.LeaseRenew + time.Duration(heartbeatJitter*spread*float64(h.cfg.LeaseRenew)), nil
}

func (h *heartbeats) lease(v *vm) *coordinationv1.Lease {
	name := v.machine.NodeName()
	seconds := int32(max(1, h.cfg.LeaseRenew*leasesPerDuration/time.Second))
	now := metav1.NewMicroTime(h.cfg.Clock.Now())
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: corev1.NamespaceNodeLease, ResourceVersion: v.lease.version,
			OwnerReferences: []metav1.OwnerReference{ownedBy(name, v.nodeUID)},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}

// ownedBy ties an object's life to that of a node.
func ownedBy(node string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node, UID: uid}
}

func hash64(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}
