package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// keeping notes what must not happen to pods while nodes come and go. Its methods are
// called by the handlers of watches and by commands.
type keeping struct {
	mu sync.Mutex
	// budgets are the PodDisruptionBudgets that were met, by their UID, with the number of
	// pods that they were then about.
	budgets map[types.UID]int32
	// broken are the budgets that were not met later, without more pods, in words.
	broken []string
	// lost are the pods that ended otherwise than by an eviction or their owner, in words.
	lost  []string
	ended map[types.UID]bool // that were counted as lost
	// gone are the labels of the pods of namespace default that were deleted, by name.
	gone map[string]labels.Set
	// disrupted are the nodes that are being removed, and most is how many there were at
	// once at most, without those that are empty and whose machines go: as in Karpenter,
	// they do not count against budgets any more.
	disrupted map[string]bool
	most      int
	// terminating lists the nodes whose machines go, as the API server has them now: a watch
	// may be behind that of nodes.
	terminating func() (map[string]bool, error)
	failed      error // the last time that it could not be asked
}

func newKeeping(terminating func() (map[string]bool, error)) *keeping {
	return &keeping{
		terminating: terminating,
		budgets:     map[types.UID]int32{}, ended: map[types.UID]bool{}, gone: map[string]labels.Set{}, disrupted: map[string]bool{},
	}
}

// follow has the watches of pods, nodes and budgets tell what happens.
func (k *keeping) follow(informers map[string]cache.SharedIndexInformer) error {
	for name, told := range map[string]struct{ changed, deleted func(any) }{
		"budgets": {func(o any) { k.budget(o.(*policyv1.PodDisruptionBudget)) }, func(any) {}},
		"pods":    {func(o any) { k.pod(o.(*corev1.Pod)) }, func(o any) { k.podGone(o.(*corev1.Pod)) }},
		"nodes":   {func(o any) { k.node(o.(*corev1.Node)) }, func(o any) { k.nodeGone(o.(*corev1.Node)) }},
	} {
		if _, err := informers[name].AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: told.changed, UpdateFunc: func(_, o any) { told.changed(o) },
			DeleteFunc: func(o any) {
				if missed, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = missed.Obj
				}
				told.deleted(o)
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// budget notes whether a budget is met. While its pods become more, it is not yet.
func (k *keeping) budget(b *policyv1.PodDisruptionBudget) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := b.Status
	if s.ObservedGeneration != b.Generation || s.ExpectedPods == 0 {
		return
	}
	if s.CurrentHealthy >= s.DesiredHealthy {
		k.budgets[b.UID] = s.ExpectedPods
		return
	}
	if met, was := k.budgets[b.UID]; was && met == s.ExpectedPods {
		k.broken = append(k.broken, fmt.Sprintf("%s/%s: %d of %d pods were healthy, and it wants %d",
			b.Namespace, b.Name, s.CurrentHealthy, s.ExpectedPods, s.DesiredHealthy))
	}
	delete(k.budgets, b.UID) // told once
}

// pod notes a pod that ends otherwise than by an eviction or by its owner.
func (k *keeping) pod(p *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.Namespace != metav1.NamespaceDefault || k.ended[p.UID] {
		return
	}
	why := ""
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
			c.Reason != "EvictionByEvictionAPI" && c.Reason != corev1.PodReasonPreemptionByScheduler {
			why = c.Reason
		}
	}
	if why == "" && p.Status.Phase == corev1.PodFailed {
		why = "failed " + p.Status.Reason
	}
	if why != "" {
		k.ended[p.UID] = true
		k.lost = append(k.lost, fmt.Sprintf("%s on %s: %s", p.Name, p.Spec.NodeName, strings.TrimSpace(why)))
	}
}

func (k *keeping) podGone(p *corev1.Pod) {
	k.pod(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.Namespace == metav1.NamespaceDefault {
		k.gone[p.Name] = labels.Set(p.Labels)
	}
}

func (k *keeping) node(n *corev1.Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !disrupted(n) {
		delete(k.disrupted, n.Name)
		return
	}
	k.disrupted[n.Name] = true
	if len(k.disrupted) <= k.most {
		return
	}
	going, err := k.terminating()
	if err != nil {
		k.failed = err
		return
	}
	count := 0
	for name := range k.disrupted {
		if !going[name] {
			count++
		}
	}
	k.most = max(k.most, count)
}

func (k *keeping) nodeGone(n *corev1.Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.disrupted, n.Name)
}

// expectKept says whether budgets were met all the time, no pod was lost, or no more nodes
// were being removed at once.
func (r *runner) expectKept(what string, args []string) error {
	k := r.world.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if what == "disrupted-at-once" {
		most, err := strconv.Atoi(strings.TrimPrefix(args[0], "<="))
		if err != nil || !strings.HasPrefix(args[0], "<=") {
			return fmt.Errorf("%q is not <=N", args[0])
		}
		if k.failed != nil {
			return fmt.Errorf("it is not known which machines were going: %w", k.failed)
		}
		if k.most > most {
			return fmt.Errorf("%d nodes were being removed at once", k.most)
		}
		return nil
	}
	found, known := map[string][]string{"budgets": k.broken, "pods": k.lost}[args[0]]
	switch {
	case !known:
		return fmt.Errorf("kept %q: allowed are budgets, pods", args[0])
	case len(found) > 0:
		return fmt.Errorf("%s", strings.Join(found, "; "))
	}
	return nil
}

// expectUnmoved says whether no pod that a selector chooses was deleted since the scenario
// began.
func (r *runner) expectUnmoved(args []string) error {
	selector, err := labels.Parse(strings.Join(args, ""))
	if err != nil {
		return err
	}
	k := r.world.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, l := range k.gone {
		if selector.Matches(l) {
			return fmt.Errorf("pod %s is gone", name)
		}
	}
	return nil
}
