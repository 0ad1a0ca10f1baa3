package systemnode

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// worker runs one pod, from its binding to its end.
type worker struct {
	pods *pods
	key  types.NamespacedName
	uid  types.UID
	dir  string // its volumes
	kick chan struct{}

	mu   sync.Mutex
	pod  *corev1.Pod // as it was seen last; nil when it is gone
	runs []*container
	as   identity

	// The rest is the worker's own; it is set before a container is started.
	started metav1.Time
	address string
	release []func() // gives back what the pod has taken
	written *corev1.PodStatus
}

func newWorker(p *pods, pod *corev1.Pod) *worker {
	return &worker{
		pods: p, key: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, uid: pod.UID,
		dir: filepath.Join(p.env.Dir, "pods", string(pod.UID)), kick: make(chan struct{}, 1),
	}
}

// see takes over what the API server says of the pod.
func (w *worker) see(pod *corev1.Pod) {
	w.mu.Lock()
	w.pod = pod
	w.mu.Unlock()
	w.wake()
}

// wake has the worker look at its pod.
func (w *worker) wake() {
	select {
	case w.kick <- struct{}{}:
	default: // it is about to look
	}
}

func (w *worker) current() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

func (w *worker) identity() identity {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.as
}

func (w *worker) containers() []*container {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs
}

// retryEvery is the pause after something failed, and refreshEvery the time after which
// tokens are looked at.
const (
	retryEvery   = 500 * time.Millisecond
	refreshEvery = 20 * time.Second
)

// run works until the pod has ended or ctx is done.
func (w *worker) run(ctx context.Context) {
	defer w.end()
	next := time.NewTimer(refreshEvery)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
		case <-next.C:
		}
		over, err := w.sync(ctx)
		if over {
			return
		}
		pause := refreshEvery
		if err != nil && ctx.Err() == nil {
			w.pods.env.Log.Warn("pod of the system node", "pod", w.key.String(), "error", err)
			pause = retryEvery
		}
		next.Reset(pause)
	}
}

// sync does what is due. It reports true when the pod needs nothing any more.
func (w *worker) sync(ctx context.Context) (over bool, err error) {
	pod := w.current()
	if pod == nil {
		return true, nil
	}
	if pod.DeletionTimestamp != nil {
		w.stop(graceOf(pod))
		return true, w.remove(ctx)
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true, nil
	}
	if w.containers() == nil {
		if err := w.start(ctx, pod); err != nil {
			w.stop(0)
			w.giveBack()
			return false, w.write(ctx, waiting(pod, err))
		}
	}
	if err := w.refresh(ctx, pod); err != nil {
		return false, err
	}
	return false, w.write(ctx, w.status(pod))
}

// graceOf is how long the pod's processes may take to end.
func graceOf(pod *corev1.Pod) time.Duration {
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 30 * time.Second
}

// start gives the pod an address and starts its containers.
func (w *worker) start(ctx context.Context, pod *corev1.Pod) error {
	address, giveBack, err := w.pods.takeAddress()
	if err != nil {
		return err
	}
	w.address, w.started = address, metav1.Now()
	w.release = append(w.release, giveBack)
	if err := w.refresh(ctx, pod); err != nil {
		return err
	}
	runs := []*container{}
	for i := range pod.Spec.Containers {
		c := newContainer(w, &pod.Spec.Containers[i], restartsOf(pod, pod.Spec.Containers[i].Name))
		runs = append(runs, c)
		w.mu.Lock()
		w.runs = runs
		w.mu.Unlock()
		if program, built := w.pods.cfg.Programs[c.spec.Image]; built {
			if err := c.start(ctx, program); err != nil {
				return err
			}
		}
	}
	return nil
}

// restartsOf counts the starts of a container before this one: a lab that is started
// again starts the containers of its pods again.
func restartsOf(pod *corev1.Pod, name string) int32 {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == name && c.ContainerID != "" {
			return c.RestartCount + 1
		}
	}
	return 0
}

// stop ends the pod's processes, all of them within grace.
func (w *worker) stop(grace time.Duration) {
	var all sync.WaitGroup
	for _, c := range w.containers() {
		all.Go(func() { c.stop(grace) })
	}
	all.Wait()
	w.mu.Lock()
	w.runs = nil
	w.mu.Unlock()
}

func (w *worker) giveBack() {
	for _, f := range w.release {
		f()
	}
	w.release = nil
}

// end stops what still runs, and forgets the pod.
func (w *worker) end() {
	const shutdown = 10 * time.Second
	w.stop(shutdown)
	w.giveBack()
	if err := os.RemoveAll(w.dir); err != nil {
		w.pods.env.Log.Warn("the volumes of a pod are left behind", "pod", w.key.String(), "error", err)
	}
}

// remove ends a graceful deletion.
func (w *worker) remove(ctx context.Context) error {
	now := int64(0)
	err := w.pods.client.CoreV1().Pods(w.key.Namespace).Delete(ctx, w.key.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &w.uid},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// write writes the pod's status where it has changed.
func (w *worker) write(ctx context.Context, status corev1.PodStatus) error {
	if w.written != nil && equality.Semantic.DeepEqual(*w.written, status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.uid}, "status": cleared{status}})
	if err != nil {
		return err
	}
	pods := w.pods.client.CoreV1().Pods(w.key.Namespace)
	_, err = pods.Patch(ctx, w.key.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case err == nil:
		w.written = &status
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil // the watch will tell
	}
	return err
}

// cleared is a pod's status as a patch, in which conditions have their reasons also where
// these are empty: those of before would stay otherwise.
type cleared struct{ corev1.PodStatus }

// MarshalJSON writes the patch.
func (c cleared) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(c.PodStatus)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := json.Unmarshal(text, &patch); err != nil {
		return nil, err
	}
	conditions := []any{}
	for _, condition := range c.Conditions {
		conditions = append(conditions, map[string]any{
			"type": condition.Type, "status": condition.Status, "reason": condition.Reason, "lastTransitionTime": condition.LastTransitionTime,
		})
	}
	patch["conditions"] = conditions
	return json.Marshal(patch)
}
