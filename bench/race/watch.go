package race

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// observer follows NodeClaims and the race's pods by watches.
type observer struct {
	mu sync.Mutex
	// claims are when the NodeClaims that exist were seen first, pods how far the pods that
	// exist have come, nodes whether the nodes that exist are ready, without a taint.
	claims map[types.UID]time.Time
	pods   map[types.UID]progress
	nodes  map[types.UID]bool
	// made counts the NodeClaims since reset, the first and the last at these times.
	made        int
	first, last time.Time
	// changed is when a NodeClaim last came or went, ready when a node became ready last.
	changed, ready time.Time
	// waits are when the pods came that are not bound; longestWait is the longest that a pod
	// which has been bound since reset had waited.
	waits       map[types.UID]time.Time
	longestWait time.Duration
}

// progress is how far a pod has come.
type progress int

const (
	waiting progress = iota
	bound
	running
)

func newObserver() *observer {
	return &observer{
		claims: map[types.UID]time.Time{}, pods: map[types.UID]progress{}, nodes: map[types.UID]bool{}, waits: map[types.UID]time.Time{},
	}
}

// observe starts the watches, which end with ctx.
func observe(ctx context.Context, config *rest.Config) (*observer, error) {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	loose, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	o := newObserver()
	pods := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithTweakListOptions(func(l *metav1.ListOptions) {
		l.LabelSelector = "race=pods"
	}))
	claims := dynamicinformer.NewDynamicSharedInformerFactory(loose, 0)
	nodes := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithTweakListOptions(func(l *metav1.ListOptions) {
		l.LabelSelector = karpv1.NodePoolLabelKey
	}))
	resource := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		pods.Core().V1().Pods().Informer():      {AddFunc: o.pod, UpdateFunc: func(_, p any) { o.pod(p) }, DeleteFunc: o.podGone},
		nodes.Core().V1().Nodes().Informer():    {AddFunc: o.node, UpdateFunc: func(_, n any) { o.node(n) }, DeleteFunc: o.nodeGone},
		claims.ForResource(resource).Informer(): {AddFunc: o.claim, DeleteFunc: o.claimGone},
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watch the lab: %w", err)
		}
	}
	pods.Start(ctx.Done())
	nodes.Start(ctx.Done())
	claims.Start(ctx.Done())
	pods.WaitForCacheSync(ctx.Done())
	nodes.WaitForCacheSync(ctx.Done())
	claims.WaitForCacheSync(ctx.Done())
	return o, ctx.Err()
}

func (o *observer) pod(object any) {
	p := object.(*corev1.Pod)
	o.mu.Lock()
	defer o.mu.Unlock()
	at := waiting
	if p.Spec.NodeName != "" {
		at = bound
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
			at = running
		}
	}
	o.pods[p.UID] = at
	o.wait(p.UID, at)
}

// wait notes how long a pod waits. The caller holds the lock.
func (o *observer) wait(pod types.UID, at progress) {
	since, waits := o.waits[pod]
	switch {
	case at == waiting && !waits:
		o.waits[pod] = time.Now()
	case at != waiting && waits:
		o.longestWait = max(o.longestWait, time.Since(since))
		delete(o.waits, pod)
	}
}

func (o *observer) node(object any) {
	n := object.(*corev1.Node)
	o.mu.Lock()
	defer o.mu.Unlock()
	is := len(n.Spec.Taints) == 0 && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if is && !o.nodes[n.UID] {
		o.ready = time.Now()
	}
	o.nodes[n.UID] = is
}

func (o *observer) nodeGone(object any) { o.gone(object, func(uid types.UID) { delete(o.nodes, uid) }) }

func (o *observer) podGone(object any) {
	o.gone(object, func(uid types.UID) {
		delete(o.pods, uid)
		delete(o.waits, uid)
	})
}

func (o *observer) claim(object any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.claims[object.(metav1.Object).GetUID()] = now
	if o.made == 0 {
		o.first = now
	}
	o.made, o.last, o.changed = o.made+1, now, now
}

func (o *observer) claimGone(object any) {
	o.gone(object, func(uid types.UID) {
		delete(o.claims, uid)
		o.changed = time.Now()
	})
}

// gone forgets an object, also where its deletion was missed.
func (o *observer) gone(object any, forget func(types.UID)) {
	if missed, is := object.(cache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	if m, is := object.(metav1.Object); is {
		o.mu.Lock()
		defer o.mu.Unlock()
		forget(m.GetUID())
	}
}

// reset begins to count NodeClaims.
func (o *observer) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made, o.first, o.last, o.ready, o.changed = 0, time.Time{}, time.Time{}, time.Time{}, time.Now()
	o.longestWait = 0
}

// seen is what there is at a moment.
type seen struct {
	pods, bound, running, claims, made int
	// nodes are there, ready of them take pods.
	nodes, ready int
	// first and last are when the first and the last NodeClaim since reset came, lastReady
	// when the last node since then was ready; quiet is for how long no NodeClaim has come or
	// gone.
	first, last, lastReady time.Time
	quiet                  time.Duration
	// longestWait is the longest that a pod waited until it was bound, or has waited so far.
	longestWait time.Duration
}

func (o *observer) look() seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := seen{
		pods: len(o.pods), claims: len(o.claims), made: o.made, nodes: len(o.nodes),
		first: o.first, last: o.last, lastReady: o.ready, quiet: time.Since(o.changed),
		longestWait: o.longestWait,
	}
	for _, at := range o.pods {
		if at >= bound {
			s.bound++
		}
		if at == running {
			s.running++
		}
	}
	for _, is := range o.nodes {
		if is {
			s.ready++
		}
	}
	for _, since := range o.waits {
		s.longestWait = max(s.longestWait, time.Since(since))
	}
	return s
}

// until waits until the lab is as asked.
func (o *observer) until(ctx context.Context, what string, limit time.Duration, done func(seen) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		s := o.look()
		if done(s) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s not %s: %d pods, %d of them run, %d NodeClaims", limit, what, s.pods, s.running, s.claims)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
