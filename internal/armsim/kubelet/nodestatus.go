package kubelet

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// nodeOf is the Node object as the kubelet registers it.
func nodeOf(v *vm, cfg Config) *corev1.Node {
	labels := map[string]string{}
	for key, value := range v.boot.Flags.Labels {
		labels[key] = value
	}
	labels[corev1.LabelHostname] = v.machine.NodeName()
	for _, key := range []string{corev1.LabelOSStable, "beta.kubernetes.io/os"} {
		labels[key] = "linux"
	}
	for _, key := range []string{corev1.LabelArchStable, "beta.kubernetes.io/arch"} {
		labels[key] = v.machine.Arch
	}
	providerID := v.machine.ProviderID()
	if v.boot.Flags.ProviderID != "" {
		providerID = v.boot.Flags.ProviderID
	}
	taints := v.boot.Flags.Taints
	if v.boot.Flags.ExternalCloud {
		taints = append([]corev1.Taint{cloudTaint}, taints...)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: v.machine.NodeName(), Labels: labels,
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec:   corev1.NodeSpec{ProviderID: providerID, Taints: taints},
		Status: statusOf(v, nodeState{since: cfg.Clock.Now()}, cfg),
	}
}

// statusOf is the whole status that a kubelet reports.
func statusOf(v *vm, s nodeState, cfg Config) corev1.NodeStatus {
	total := capacity(v.machine, v.boot.Flags.MaxPods, cfg.MemoryOverhead, s.gpusFound)
	return corev1.NodeStatus{
		Capacity:    total,
		Allocatable: allocatable(total, v.boot.Flags),
		Conditions:  conditions(v, s, cfg.Clock.Now()),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: v.nodeIP()},
			{Type: corev1.NodeHostName, Address: v.machine.NodeName()},
		},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: identity(v.machine.ID), SystemUUID: identity(v.machine.ID), BootID: identity(v.machine.ID + v.bootedAt.String()),
			KubeletVersion: v.boot.Version, OperatingSystem: "linux", Architecture: v.machine.Arch, OSImage: v.machine.OSImage,
			KernelVersion: "simulated", ContainerRuntimeVersion: "simulated://" + strings.TrimPrefix(v.boot.Version, "v"),
		},
	}
}

// conditions are the node's conditions; their wording is the kubelet's own, by
// which people and tools recognise it.
func conditions(v *vm, s nodeState, at time.Time) []corev1.NodeCondition {
	now := metav1.NewTime(at)
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
		list = append(list, condition(corev1.NodeReady, false, s.since, "KubeletNotReady",
			"container runtime network not ready: network plugin not initialized"))
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
