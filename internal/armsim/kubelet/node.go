package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// nodes keep the Node objects of registered machines up to date.
type nodes struct {
	cfg         Config
	client      kubernetes.Interface
	registry    *registry
	informer    cache.SharedIndexInformer
	wake        func(id string)      // has a machine worked on
	becameReady func(node string)    // told of each node that has become ready
	strange     func(n *corev1.Node) // told of changed nodes that no machine here runs
}

// watch keeps of each node only what is looked at here.
func (n *nodes) watch() error {
	n.informer = coreinformers.NewNodeInformer(n.client, 0, cache.Indexers{})
	_, err := n.informer.AddEventHandler(watchHandler(n.changed, n.deleted))
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	if err := n.informer.SetTransform(slimNode); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	return n.informer.SetWatchErrorHandlerWithContext(n.cfg.watchFailed)
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

// changed notices when the control plane gave up on a node whose kubelet lives.
func (n *nodes) changed(node *corev1.Node) {
	v := n.registry.kubeletOf(node.Name)
	if v == nil {
		n.strange(node)
		return
	}
	if readiness(node) != corev1.ConditionUnknown {
		return
	}
	v.life.mu.Lock()
	v.life.disputed = true
	v.life.mu.Unlock()
	n.wake(v.machine.ID)
}

// deleted stops the kubelet's reports: kubelets register only when they start.
func (n *nodes) deleted(node *corev1.Node) {
	if v := n.registry.kubeletOf(node.Name); v != nil {
		n.deregister(v, node.UID)
	}
}

func (n *nodes) deregister(v *vm, uid types.UID) {
	v.life.mu.Lock()
	defer v.life.mu.Unlock()
	if v.nodeUID == uid && v.life.phase != Deregistered {
		v.life.moveTo(Deregistered, n.cfg.Clock.Now())
		v.life.reason = "the Node object was deleted while the machine runs; a kubelet registers again only after a reboot"
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

// sync brings a registered node's status up to date and says when something
// is due next.
func (n *nodes) sync(ctx context.Context, v *vm) (time.Duration, error) {
	if !v.cloudDone {
		if err := initializeNode(ctx, n.client.CoreV1().Nodes(), v, !n.cfg.WithoutCilium); err != nil {
			return 0, err
		}
		v.cloudDone = true
	}
	now := n.cfg.Clock.Now()
	want, write, next := n.due(v, now)
	if write {
		err := n.write(ctx, v, want)
		if apierrors.IsNotFound(err) {
			n.deregister(v, v.nodeUID)
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("writing the status of node %s: %w", v.machine.NodeName(), err)
		}
		n.wrote(v, want, now)
		next = min(next, statusRefresh)
	}
	return next, nil
}

// due works out the state that the node should be in now, whether that has to
// be written, and when to look again.
func (n *nodes) due(v *vm, now time.Time) (want nodeState, write bool, next time.Duration) {
	v.life.mu.Lock()
	defer v.life.mu.Unlock()
	delays := n.cfg.Delays
	next = v.life.writtenAt.Add(statusRefresh).Sub(now)
	write = v.life.disputed || (!v.life.writtenAt.IsZero() && next <= 0)
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

	want = nodeState{ready: v.life.phase == Ready, since: v.life.since, gpusFound: v.life.gpusFound, preempting: v.life.preempting}
	if v.life.disputed {
		want.since = now
	}
	if !want.ready && reached(v.life.since.Add(delays.Ready)) {
		want.ready, want.since, write = true, now, true
	}
	if want.ready && !want.gpusFound && v.hasDriver() && (v.boot.DevicePlugin || reached(want.since.Add(delays.DevicePlugin))) {
		want.gpusFound, write = true, true
	}
	if !v.life.evictAt.IsZero() && !want.preempting &&
		(delays.PreemptionNotice == 0 || reached(v.life.evictAt.Add(-delays.PreemptionNotice))) {
		want.preempting, write = true, true
	}
	return want, write, max(next, time.Millisecond)
}

// wrote takes a written state over.
func (n *nodes) wrote(v *vm, s nodeState, now time.Time) {
	v.life.mu.Lock()
	becameReady := s.ready && v.life.phase == NotReady
	if becameReady {
		v.life.moveTo(Ready, now)
	} else if s.ready {
		v.life.since = s.since
	}
	v.life.disputed, v.life.writtenAt, v.life.reason = false, now, ""
	v.life.gpusFound, v.life.preempting = s.gpusFound, s.preempting
	v.life.mu.Unlock()
	if becameReady {
		n.becameReady(v.machine.NodeName())
	}
}

// write reports a state to the API server.
func (n *nodes) write(ctx context.Context, v *vm, s nodeState) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": v.nodeUID},
		"status":   statusOf(v, s, n.cfg),
	})
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	_, err = n.client.CoreV1().Nodes().Patch(ctx, v.machine.NodeName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
