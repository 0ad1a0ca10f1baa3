package karpenter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
)

// Buffers are the virtual pods of CapacityBuffers, as Karpenter's controller resolves
// them, for a planner that is not Karpenter's. It is safe for concurrent use.
type Buffers struct {
	virtual *virtualpods.Cache
	changed chan struct{}
}

// Pods are the virtual pods of all buffers that are ready to be planned.
func (b *Buffers) Pods(ctx context.Context) []*corev1.Pod { return b.virtual.GetAll(ctx) }

// Changed has a value after buffers have been resolved again, changed or not.
func (b *Buffers) Changed() <-chan struct{} { return b.changed }

// Trigger implements what Karpenter's controller tells its planner.
func (b *Buffers) Trigger(types.UID) { b.TriggerReconcile() }

// TriggerReconcile is Trigger for a buffer that is gone.
func (b *Buffers) TriggerReconcile() {
	select {
	case b.changed <- struct{}{}:
	default: // the last value has not been taken yet
	}
}
