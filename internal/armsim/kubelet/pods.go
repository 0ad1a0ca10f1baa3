package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// byNodeIndex finds the pods of a node.
const byNodeIndex = "node"

// claimPoll is how often a pod that waits for a volume looks at its claim.
const claimPoll = time.Second

// watchPods watches the pods that are bound to some node and keeps of each only
// what a kubelet acts on.
func (f *Fleet) watchPods() error {
	byNode := func(o any) ([]string, error) {
		if p, ok := o.(*corev1.Pod); ok {
			return []string{p.Spec.NodeName}, nil
		}
		return nil, nil
	}
	f.pods = coreinformers.NewFilteredPodInformer(f.client, metav1.NamespaceAll, 0,
		cache.Indexers{byNodeIndex: byNode},
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		})
	if _, err := f.pods.AddEventHandler(watchHandler(f.podChanged, f.podDeleted)); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	if err := f.pods.SetTransform(slimPod); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return f.pods.SetWatchErrorHandlerWithContext(f.watchFailed)
}

func (f *Fleet) podChanged(p *corev1.Pod) {
	if f.kubeletOf(p.Spec.NodeName) != nil {
		f.podSync.queue.Add(podKey(p))
	}
}

func (f *Fleet) podDeleted(p *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seen, p.UID)
}

// queuePodsOf has all pods of a node looked at.
func (f *Fleet) queuePodsOf(node string) {
	pods, err := f.pods.GetIndexer().ByIndex(byNodeIndex, node)
	if err != nil {
		return // cannot happen: the index exists
	}
	for _, o := range pods {
		f.podSync.queue.Add(podKey(o.(*corev1.Pod)))
	}
}

func podKey(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// syncPod does what is due for a pod.
func (f *Fleet) syncPod(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	o, ok, err := f.pods.GetIndexer().GetByKey(key.String())
	if err != nil || !ok {
		return 0, err
	}
	pod := o.(*corev1.Pod)
	v := f.kubeletOf(pod.Spec.NodeName)
	if v == nil {
		return 0, nil // the machine is gone: the control plane has to notice
	}
	now := f.cfg.Clock.Now()
	rec := f.record(pod)
	step := decide(pod, &rec, v.networkReady(), f.cfg.Delays, now)
	if step.do == wait {
		f.remember(pod, rec)
		return step.after, nil
	}
	if step.do == start {
		if missing, err := f.missingClaim(ctx, pod); err != nil || missing {
			return claimPoll, err
		}
	}
	if err := f.apply(ctx, v, pod, &rec, step, now); err != nil {
		return 0, err
	}
	f.remember(pod, rec)
	return 0, nil // the change comes back as an event
}

// apply writes a step to the API server and then to the record.
func (f *Fleet) apply(ctx context.Context, v *vm, pod *corev1.Pod, rec *podRecord, s step, now time.Time) error {
	status := podStatus{pod: pod, now: metav1.NewTime(now), restarts: rec.restarts}
	var err error
	switch s.do {
	case start:
		status.hostIP, status.podIP = v.nodeIP(), f.podIP(v, pod)
		if err = f.patchPod(ctx, pod, status.running()); err == nil {
			rec.started = now
		}
	case heal:
		err = f.patchPod(ctx, pod, status.readiness())
	case finish:
		err = f.patchPod(ctx, pod, status.finished(s.exitCode, s.reason, s.message))
	case crash:
		status.restarts++
		if err = f.patchPod(ctx, pod, status.crashed(s.exitCode)); err == nil {
			rec.crashed(now)
		}
	case remove:
		err = f.removePod(ctx, pod)
	}
	return err
}

// patchPod writes a pod's status. A pod that is gone or was replaced needs none.
func (f *Fleet) patchPod(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of pod %s: %w", podKey(pod), err)
	}
	_, err = f.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing the status of pod %s: %w", podKey(pod), err)
	}
	return nil
}

// removePod ends a graceful deletion.
func (f *Fleet) removePod(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	err := f.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing pod %s: %w", podKey(pod), err)
	}
	return nil
}

// missingClaim reports whether a volume claim of the pod is not bound yet.
func (f *Fleet) missingClaim(ctx context.Context, pod *corev1.Pod) (bool, error) {
	for _, vol := range pod.Spec.Volumes {
		name := pod.Name + "-" + vol.Name // of a generic ephemeral volume
		if vol.PersistentVolumeClaim != nil {
			name = vol.PersistentVolumeClaim.ClaimName
		}
		claim, err := f.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading claim %s of pod %s: %w", name, podKey(pod), err)
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return true, nil
		}
	}
	return false, nil
}

// podIP hands out addresses of 10.128.0.0/9, which is larger than any lab.
func (f *Fleet) podIP(v *vm, pod *corev1.Pod) string {
	if pod.Spec.HostNetwork {
		return v.nodeIP()
	}
	if pod.Status.PodIP != "" {
		return pod.Status.PodIP // its containers start again
	}
	n := f.podIPs.Add(1)
	return fmt.Sprintf("10.%d.%d.%d", 128|n>>16&127, n>>8&255, n&255)
}

// record returns what is known about a pod, or starts to know it.
func (f *Fleet) record(pod *corev1.Pod) podRecord {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rec, ok := f.seen[pod.UID]; ok {
		return rec
	}
	return podRecord{restarts: restartCount(pod)}
}

// remember keeps the record as long as the pod is watched: podDeleted comes after
// the pod has left the watch and drops it.
func (f *Fleet) remember(pod *corev1.Pod, rec podRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok, err := f.pods.GetIndexer().GetByKey(podKey(pod).String())
	if err == nil && ok && o.(*corev1.Pod).UID == pod.UID {
		f.seen[pod.UID] = rec
	}
}

// slimPod keeps what a kubelet acts on: at ten thousand pods the rest is most of
// the process's memory.
func slimPod(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	slim := &corev1.Pod{}
	slim.Name, slim.Namespace, slim.UID, slim.ResourceVersion = p.Name, p.Namespace, p.UID, p.ResourceVersion
	slim.DeletionTimestamp, slim.DeletionGracePeriodSeconds = p.DeletionTimestamp, p.DeletionGracePeriodSeconds
	for _, key := range []string{AnnotationRunFor, AnnotationExitCode} {
		if value, ok := p.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, value)
		}
	}
	slim.Spec.NodeName, slim.Spec.HostNetwork, slim.Spec.RestartPolicy = p.Spec.NodeName, p.Spec.HostNetwork, p.Spec.RestartPolicy
	slim.Spec.ReadinessGates = p.Spec.ReadinessGates
	slim.Spec.Containers, slim.Spec.InitContainers = slimContainers(p.Spec.Containers), slimContainers(p.Spec.InitContainers)
	for _, vol := range p.Spec.Volumes {
		if vol.PersistentVolumeClaim != nil || vol.Ephemeral != nil {
			slim.Spec.Volumes = append(slim.Spec.Volumes, corev1.Volume{Name: vol.Name,
				VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: vol.PersistentVolumeClaim}})
		}
	}
	slim.Status.Phase, slim.Status.StartTime, slim.Status.PodIP = p.Status.Phase, p.Status.StartTime, p.Status.PodIP
	slim.Status.ContainerStatuses = p.Status.ContainerStatuses
	for _, c := range p.Status.Conditions {
		slim.Status.Conditions = append(slim.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status})
	}
	return slim, nil
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	var slim []corev1.Container
	for _, c := range containers {
		slim = append(slim, corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy})
	}
	return slim
}
