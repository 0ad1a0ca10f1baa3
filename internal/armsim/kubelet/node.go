package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// PreemptionScheduled is the condition by which AKS's node problem detector
// announces a spot eviction.
const PreemptionScheduled corev1.NodeConditionType = "PreemptionScheduled"

// nodeState is the part of a node's status that changes.
type nodeState struct {
	ready      bool
	since      time.Time // of ready's last change
	gpusFound  bool
	preempting bool
}

// watchNodes keeps of each node only what the fleet looks at.
func (f *Fleet) watchNodes() error {
	f.nodes = coreinformers.NewNodeInformer(f.client, 0, cache.Indexers{})
	_, err := f.nodes.AddEventHandler(watchHandler(f.nodeChanged, f.nodeDeleted))
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	if err := f.nodes.SetTransform(slimNode); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	return f.nodes.SetWatchErrorHandlerWithContext(f.watchFailed)
}

func slimNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	slim := &corev1.Node{}
	slim.Name, slim.UID, slim.ResourceVersion = n.Name, n.UID, n.ResourceVersion
	slim.Spec.ProviderID = n.Spec.ProviderID
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim, nil
}

// nodeChanged notices when the control plane gave up on a node whose kubelet lives.
func (f *Fleet) nodeChanged(n *corev1.Node) {
	v := f.kubeletOf(n.Name)
	if v == nil {
		f.suspectOrphan(n)
		return
	}
	if readiness(n) != corev1.ConditionUnknown {
		return
	}
	v.mu.Lock()
	v.disputed = true
	v.mu.Unlock()
	f.machines.queue.Add(v.ID)
}

// nodeDeleted stops the kubelet's reports: kubelets register only when they start.
func (f *Fleet) nodeDeleted(n *corev1.Node) {
	if v := f.kubeletOf(n.Name); v != nil {
		f.deregister(v, n.UID)
	}
}

func (f *Fleet) deregister(v *vm, uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.nodeUID == uid && v.phase != Deregistered {
		v.enter(Deregistered, f.cfg.Clock.Now())
		v.reason = "the Node object was deleted while the machine runs; a kubelet registers again only after a reboot"
	}
}

// readiness is the status of the node's Ready condition, empty without one.
func readiness(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

// syncNode brings a registered node's status up to date and says when something
// is due next.
func (f *Fleet) syncNode(ctx context.Context, v *vm) (time.Duration, error) {
	if !v.cloudDone {
		if err := f.initializeNode(ctx, v); err != nil {
			return 0, err
		}
		v.cloudDone = true
	}
	now := f.cfg.Clock.Now()
	want, write, next := f.due(v, now)
	if write {
		err := f.writeNodeStatus(ctx, v, want)
		if apierrors.IsNotFound(err) {
			f.deregister(v, v.nodeUID)
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("writing the status of node %s: %w", v.NodeName(), err)
		}
		f.wrote(v, want, now)
		next = min(next, statusRefresh)
	}
	return next, nil
}

// due works out the state that the node should be in now, whether that has to
// be written, and when to look again.
func (f *Fleet) due(v *vm, now time.Time) (want nodeState, write bool, next time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delays := f.cfg.Delays
	next = v.writtenAt.Add(statusRefresh).Sub(now)
	write = v.disputed || (!v.writtenAt.IsZero() && next <= 0)
	// reached reports whether a moment has come and otherwise remembers it.
	reached := func(at time.Time) bool {
		if left := at.Sub(now); left > 0 {
			if next <= 0 || left < next {
				next = left
			}
			return false
		}
		return true
	}

	want = nodeState{ready: v.phase == Ready, since: v.since, gpusFound: v.gpusFound, preempting: v.preempting}
	if v.disputed {
		want.since = now
	}
	if !want.ready && reached(v.since.Add(delays.Ready)) {
		want.ready, want.since, write = true, now, true
	}
	if want.ready && !want.gpusFound && v.GPUs > 0 && v.boot.GPUDriver && reached(want.since.Add(delays.DevicePlugin)) {
		want.gpusFound, write = true, true
	}
	if !v.evictAt.IsZero() && !want.preempting && (delays.PreemptionNotice == 0 || reached(v.evictAt.Add(-delays.PreemptionNotice))) {
		want.preempting, write = true, true
	}
	return want, write, max(next, time.Millisecond)
}

// wrote takes a written state over.
func (f *Fleet) wrote(v *vm, s nodeState, now time.Time) {
	v.mu.Lock()
	becameReady := s.ready && v.phase == NotReady
	if becameReady {
		v.enter(Ready, now)
	} else if s.ready {
		v.since = s.since
	}
	v.disputed, v.writtenAt, v.reason = false, now, ""
	v.gpusFound, v.preempting = s.gpusFound, s.preempting
	v.mu.Unlock()
	if becameReady {
		f.queuePodsOf(v.NodeName())
	}
}

func (f *Fleet) writeNodeStatus(ctx context.Context, v *vm, s nodeState) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": v.nodeUID},
		"status":   f.nodeStatus(v, s),
	})
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	_, err = f.client.CoreV1().Nodes().Patch(ctx, v.NodeName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// nodeStatus is the whole status that a kubelet reports.
func (f *Fleet) nodeStatus(v *vm, s nodeState) corev1.NodeStatus {
	total := capacity(v.Machine, v.boot.Flags.MaxPods, f.cfg.MemoryOverhead, s.gpusFound)
	return corev1.NodeStatus{
		Capacity:    total,
		Allocatable: allocatable(total, v.boot.Flags),
		Conditions:  f.conditions(v, s),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: v.nodeIP()},
			{Type: corev1.NodeHostName, Address: v.NodeName()},
		},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: identity(v.ID), SystemUUID: identity(v.ID), BootID: identity(v.ID + v.bootedAt.String()),
			KubeletVersion: v.boot.Version, OperatingSystem: "linux", Architecture: v.Arch, OSImage: v.OSImage,
			KernelVersion: "simulated", ContainerRuntimeVersion: "simulated://" + strings.TrimPrefix(v.boot.Version, "v"),
		},
	}
}

// conditions are the node's conditions; their wording is the kubelet's own, by
// which people and tools recognise it.
func (f *Fleet) conditions(v *vm, s nodeState) []corev1.NodeCondition {
	now := metav1.NewTime(f.cfg.Clock.Now())
	condition := func(t corev1.NodeConditionType, holds bool, since time.Time, reason, message string) corev1.NodeCondition {
		status := corev1.ConditionFalse
		if holds {
			status = corev1.ConditionTrue
		}
		return corev1.NodeCondition{
			Type: t, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: metav1.NewTime(since),
		}
	}
	list := []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, false, v.bootedAt, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, false, v.bootedAt, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, false, v.bootedAt, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
	}
	if s.ready {
		list = append(list, condition(corev1.NodeReady, true, s.since, "KubeletReady", "kubelet is posting ready status"))
	} else {
		list = append(list, condition(corev1.NodeReady, false, s.since, "KubeletNotReady", "container runtime network not ready: network plugin not initialized"))
	}
	if s.preempting {
		list = append(list, condition(PreemptionScheduled, true, now.Time, "PreemptScheduled", "the spot machine is about to be evicted"))
	}
	return list
}

// identity makes up a machine identifier that stays the same for the same text.
func identity(text string) string {
	sum := hash64(text)
	return fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(sum>>32), uint16(sum>>16), sum&0xffffffffffff)
}
