package systemnode

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// pods run what is bound to the node, each pod by a worker of its own.
type pods struct {
	cfg      Config
	env      lab.Environment
	client   kubernetes.Interface
	informer cache.SharedIndexInformer

	mu        sync.Mutex
	workers   map[types.UID]*worker
	addresses map[int]bool    // last numbers of pod addresses that are taken
	names     map[string]bool // names of processes that are taken
}

func newPods(cfg Config, env lab.Environment, client kubernetes.Interface) *pods {
	p := &pods{cfg: cfg, env: env, client: client, workers: map[types.UID]*worker{}, addresses: map[int]bool{}, names: map[string]bool{}}
	p.informer = coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", cfg.Name).String()
		})
	return p
}

// run watches the node's pods until ctx is done, and returns when their processes have
// ended.
func (p *pods) run(ctx context.Context) error {
	var running sync.WaitGroup
	seen := func(object any) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return
		}
		p.mu.Lock()
		w := p.workers[pod.UID]
		if w == nil {
			w = newWorker(p, pod)
			p.workers[pod.UID] = w
			running.Go(func() {
				w.run(ctx)
				p.mu.Lock()
				delete(p.workers, pod.UID)
				p.mu.Unlock()
			})
		}
		p.mu.Unlock()
		w.see(pod)
	}
	_, err := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(_, now any) { seen(now) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				p.gone(pod.UID)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch the pods of node %s: %w", p.cfg.Name, err)
	}
	p.informer.RunWithContext(ctx)
	running.Wait()
	return nil
}

// gone tells a pod's worker that its pod is no more.
func (p *pods) gone(uid types.UID) {
	p.mu.Lock()
	w := p.workers[uid]
	p.mu.Unlock()
	if w != nil {
		w.see(nil)
	}
}

// find is the worker of a pod by name, nil if the pod does not run here.
func (p *pods) find(namespace, name string) *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if w.key.Namespace == namespace && w.key.Name == name {
			return w
		}
	}
	return nil
}

// takeAddress gives out an address for a pod; giveBack takes it back.
func (p *pods) takeAddress() (address string, giveBack func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const last = 254
	for n := 1; n <= last; n++ {
		if p.addresses[n] {
			continue
		}
		p.addresses[n] = true
		return fmt.Sprintf(podIPs, n), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.addresses, n)
		}, nil
	}
	return "", nil, fmt.Errorf("node %s has no address left for a pod", p.cfg.Name)
}

// takeName gives out the first free name of a program's processes.
func (p *pods) takeName(program string) (name string, giveBack func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name = program
	for n := 2; p.names[name]; n++ {
		name = program + "-" + strconv.Itoa(n)
	}
	p.names[name] = true
	return name, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.names, name)
	}
}
