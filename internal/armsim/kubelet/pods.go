package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/container"
)

// byNodeIndex finds the pods of a node.
const byNodeIndex = "node"

// resizePoll is how often a kubelet looks whether there is room now for a pod that is to
// grow.
const resizePoll = time.Second

// claimPoll is how often a pod that waits for a volume looks at its claim.
const claimPoll = time.Second

// pods run the pods that are bound to registered machines.
type pods struct {
	cfg      Config
	client   kubernetes.Interface
	registry *registry
	informer cache.SharedIndexInformer
	queue    *loop[types.NamespacedName] // by pod

	ips atomic.Uint32 // addresses handed out

	mu   sync.Mutex
	seen map[types.UID]podRecord // of watched pods
}

func newPods(cfg Config, client kubernetes.Interface, registry *registry) *pods {
	p := &pods{cfg: cfg, client: client, registry: registry, seen: map[types.UID]podRecord{}}
	p.queue = newLoop("pod", podWorkers, cfg, p.sync)
	return p
}

// watch watches the pods that are bound to some node and keeps of each only
// what a kubelet acts on.
func (r *pods) watch() error {
	byNode := func(o any) ([]string, error) {
		if p, ok := o.(*corev1.Pod); ok {
			return []string{p.Spec.NodeName}, nil
		}
		return nil, nil
	}
	r.informer = coreinformers.NewFilteredPodInformer(r.client, metav1.NamespaceAll, 0,
		cache.Indexers{byNodeIndex: byNode},
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		})
	if _, err := r.informer.AddEventHandler(watchHandler(r.changed, r.deleted)); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	if err := r.informer.SetTransform(slimPod); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return r.informer.SetWatchErrorHandlerWithContext(r.cfg.watchFailed)
}

func (r *pods) changed(p *corev1.Pod) {
	if r.registry.kubeletOf(p.Spec.NodeName) != nil {
		r.queue.queue.Add(podKey(p))
	}
}

func (r *pods) deleted(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, p.UID)
}

// queueOf has all pods of a node looked at.
func (r *pods) queueOf(node string) {
	bound, err := r.informer.GetIndexer().ByIndex(byNodeIndex, node)
	if err != nil {
		return // cannot happen: the index exists
	}
	for _, o := range bound {
		r.queue.queue.Add(podKey(o.(*corev1.Pod)))
	}
}

func podKey(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// sync does what is due for a pod.
func (r *pods) sync(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	o, ok, err := r.informer.GetIndexer().GetByKey(key.String())
	if err != nil || !ok {
		return 0, err
	}
	pod := o.(*corev1.Pod)
	v := r.registry.kubeletOf(pod.Spec.NodeName)
	if v == nil {
		return 0, nil // the machine is gone: the control plane has to notice
	}
	now := r.cfg.Clock.Now()
	rec := r.record(pod)
	step := decide(pod, &rec, v.networkReady(), r.cfg.Delays, now)
	if step.do == wait {
		r.remember(pod, rec)
		return step.after, nil
	}
	if step.do == start {
		if missing, err := r.missingClaim(ctx, pod); err != nil || missing {
			return claimPoll, err
		}
	}
	if step.do == resize {
		again, err := r.resize(ctx, v, pod, &rec, now)
		r.remember(pod, rec)
		return again, err
	}
	if err := r.apply(ctx, v, pod, &rec, step, now); err != nil {
		return 0, err
	}
	r.remember(pod, rec)
	return 0, nil // the change comes back as an event
}

// apply writes a step to the API server and then to the record.
func (r *pods) apply(ctx context.Context, v *vm, pod *corev1.Pod, rec *podRecord, s step, now time.Time) error {
	status := podStatus{pod: pod, now: metav1.NewTime(now), restarts: rec.restarts}
	var err error
	switch s.do {
	case start:
		status.hostIP, status.podIP = v.nodeIP(), r.ip(v, pod)
		if err = r.patchStatus(ctx, pod, status.running()); err == nil {
			rec.started = now
		}
	case heal:
		status.ran = now.Sub(runningSince(pod, rec))
		err = r.patchStatus(ctx, pod, status.readiness())
	case finish:
		err = r.patchStatus(ctx, pod, status.finished(s.exitCode, s.reason, s.message))
	case crash:
		status.restarts++
		if err = r.patchStatus(ctx, pod, status.crashed(s.exitCode)); err == nil {
			rec.crashed(now)
		}
	case remove:
		err = r.remove(ctx, pod)
	default: // wait: the pod is looked at again later
	}
	return err
}

// resize gives the containers of a pod what the pod asks for, where the node has it, and
// says why not where it has not. It returns when to look again, zero if a change of the pod
// comes first.
func (r *pods) resize(ctx context.Context, v *vm, pod *corev1.Pod, rec *podRecord, now time.Time) (time.Duration, error) {
	total := allocatable(capacity(v.machine, v.boot.Flags.MaxPods, r.cfg.MemoryOverhead, true), v.boot.Flags)
	reason, message := container.Shortage(pod, total, r.others(pod))
	rec.resizeAt = now.Add(resizePoll)
	if reason == "" {
		return 0, r.patchStatus(ctx, pod, map[string]any{
			"containerStatuses": container.StatusesAfter(pod),
			"conditions":        []any{map[string]any{"type": corev1.PodResizePending, "$patch": "delete"}},
		})
	}
	if container.PendingReason(pod) == reason {
		return resizePoll, nil
	}
	return resizePoll, r.patchStatus(ctx, pod, map[string]any{"conditions": []corev1.PodCondition{{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	}}})
}

// others is what the other pods of a pod's node hold.
func (r *pods) others(pod *corev1.Pod) corev1.ResourceList {
	bound, err := r.informer.GetIndexer().ByIndex(byNodeIndex, pod.Spec.NodeName)
	if err != nil {
		return nil // cannot happen: the index exists
	}
	out := corev1.ResourceList{}
	for _, o := range bound {
		p := o.(*corev1.Pod)
		if p.UID == pod.UID || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		container.Add(out, container.Held(p))
	}
	return out
}

// patchStatus writes a part of a pod's status. A pod that is gone or was replaced needs
// none.
func (r *pods) patchStatus(ctx context.Context, pod *corev1.Pod, status any) error {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of pod %s: %w", podKey(pod), err)
	}
	_, err = r.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, raw, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing the status of pod %s: %w", podKey(pod), err)
	}
	return nil
}

// remove ends a graceful deletion.
func (r *pods) remove(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	err := r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing pod %s: %w", podKey(pod), err)
	}
	return nil
}

// missingClaim reports whether a volume claim of the pod is not bound yet.
func (r *pods) missingClaim(ctx context.Context, pod *corev1.Pod) (bool, error) {
	for _, vol := range pod.Spec.Volumes {
		name := pod.Name + "-" + vol.Name // of a generic ephemeral volume
		if vol.PersistentVolumeClaim != nil {
			name = vol.PersistentVolumeClaim.ClaimName
		}
		claim, err := r.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
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

// ip hands out addresses of 10.128.0.0/9, which is larger than any lab.
func (r *pods) ip(v *vm, pod *corev1.Pod) string {
	if pod.Spec.HostNetwork {
		return v.nodeIP()
	}
	if pod.Status.PodIP != "" {
		return pod.Status.PodIP // its containers start again
	}
	n := r.ips.Add(1)
	return fmt.Sprintf("10.%d.%d.%d", 128|n>>16&127, n>>8&255, n&255)
}

// record returns what is known about a pod, or starts to know it.
func (r *pods) record(pod *corev1.Pod) podRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec, ok := r.seen[pod.UID]; ok {
		return rec
	}
	return podRecord{restarts: restartCount(pod)}
}

// remember keeps the record as long as the pod is watched: deleted comes after
// the pod has left the watch and drops it.
func (r *pods) remember(pod *corev1.Pod, rec podRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok, err := r.informer.GetIndexer().GetByKey(podKey(pod).String())
	if err == nil && ok && o.(*corev1.Pod).UID == pod.UID {
		r.seen[pod.UID] = rec
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
		kept := corev1.PodCondition{Type: c.Type, Status: c.Status}
		if c.Type == corev1.PodResizePending {
			kept.Reason = c.Reason
		}
		slim.Status.Conditions = append(slim.Status.Conditions, kept)
	}
	return slim, nil
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	var slim []corev1.Container
	for _, c := range containers {
		slim = append(slim, corev1.Container{
			Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy, Command: c.Command, Args: c.Args,
			Lifecycle: c.Lifecycle, ReadinessProbe: c.ReadinessProbe, Ports: c.Ports, Resources: c.Resources,
		})
	}
	return slim
}
