package kube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// Buffers converts the virtual pods of CapacityBuffers, as Karpenter makes them, with what
// admission would do to real ones.
func (m *Mirror) Buffers(virtual []*corev1.Pod) []*fleet.Buffer {
	type key struct{ namespace, name string }
	known := map[key]*fleet.Buffer{}
	var out []*fleet.Buffer
	for _, pod := range virtual {
		k := key{pod.Namespace, pod.Annotations[autoscalingv1beta1.BufferNameAnnotation]}
		if b := known[k]; b != nil {
			b.Pods++
			continue
		}
		uid := string(pod.UID)
		if i := strings.LastIndex(uid, "-"); i > 0 { // Karpenter appends the pod's number
			uid = uid[:i]
		}
		known[k] = &fleet.Buffer{UID: uid, Namespace: k.namespace, Name: k.name, Pods: 1, Pattern: m.pattern(pod)}
		out = append(out, known[k])
	}
	return out
}

// pattern converts a virtual pod, with what admission and the scheduler would do to a real
// one.
func (m *Mirror) pattern(virtual *corev1.Pod) *fleet.Pod {
	pod := m.settings.Spread.Give(virtual.DeepCopy())
	m.mu.Lock()
	defer m.mu.Unlock()
	requestLimits(&pod.Spec)
	defaultsOf(m.admitting.ranges[pod.Namespace]).admit(&pod.Spec)
	return m.interner.pod(pod, true)
}
