package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Config is everything a Fleet needs to know.
type Config struct {
	// APIServer is a privileged connection, used for all that a machine does
	// not have to prove: watching, heartbeats, status, pods. Machines join with
	// the credentials in their boot data, never with this.
	APIServer *rest.Config
	// Clock is the time source; the real clock when nil.
	Clock clock.WithTicker
	// Delays say how long things take.
	Delays Delays
	// LeaseRenew is the heartbeat period, 10 s when zero as in a real kubelet.
	// Longer saves work at the control plane; it must stay well below the
	// node monitor grace period of the controller manager (50 s by default).
	LeaseRenew time.Duration
	// MemoryOverhead is the share of a size's memory that the operating system
	// does not see. DefaultMemoryOverhead when zero; set it differently from
	// what a provider assumes to see what its error does. Must be below 1.
	MemoryOverhead float64
	// VMExists answers whether the machine of a resource ID exists; it must
	// ignore case. With it, Node objects of machines that are gone are deleted
	// once they are not ready. Without it, nobody deletes them.
	VMExists func(id string) bool
	// Trouble, where set, is told what keeps a machine from becoming a node, and ""
	// once it is one, as the machine's agent tells Azure.
	Trouble func(id, reason string)
	// Logger receives what goes wrong; slog.Default when nil.
	Logger *slog.Logger
}

// Delays say how long the steps of a machine's and a pod's life take. Zero means
// at once.
type Delays struct {
	// Register is the time from boot to the kubelet's first request.
	Register time.Duration
	// Ready is the time from registration to a ready node (network plugin).
	Ready time.Duration
	// DevicePlugin is the time from ready to GPUs being announced.
	DevicePlugin time.Duration
	// PodStart is the time from a pod being bound to its containers running.
	PodStart time.Duration
	// PodStop is the time containers take to end after they were asked to;
	// a pod's grace period limits it.
	PodStop time.Duration
	// PreemptionNotice is how long before a spot eviction the node's condition
	// says so: 30 s on Azure. Zero: as soon as the fleet is told.
	PreemptionNotice time.Duration
}

// Periods of a real kubelet that nothing in the lab needs to change.
const (
	defaultLeaseRenew   = 10 * time.Second
	statusRefresh       = 5 * time.Minute // node status is written this often even when nothing changed
	orphanCheckInterval = 5 * time.Second // the cloud node lifecycle controller's period
)

// Workers per queue. Requests wait for the API server, not for a processor.
const (
	machineWorkers = 16
	leaseWorkers   = 8
	podWorkers     = 24
)

// Fleet runs the kubelets of all machines. Its methods may be called from any
// goroutine.
type Fleet struct {
	cfg    Config
	client kubernetes.Interface
	doors  doors

	nodes cache.SharedIndexInformer
	pods  cache.SharedIndexInformer

	machines *loop[string]               // by resource ID: joining and node status
	leases   *loop[string]               // by resource ID: heartbeats
	podSync  *loop[types.NamespacedName] // by pod
	orphans  *loop[string]               // by node name

	podIPs atomic.Uint32 // addresses handed out

	mu     sync.Mutex
	byID   map[string]*vm
	byNode map[string]*vm // registered and not gone
	seen   map[types.UID]podRecord
}

// New checks the configuration and prepares a Fleet; [Fleet.Run] starts it.
func New(cfg Config) (*Fleet, error) {
	if cfg.APIServer == nil {
		return nil, errors.New("kubelet: Config.APIServer is not set; the fleet needs a privileged connection to the API server")
	}
	if cfg.MemoryOverhead < 0 || cfg.MemoryOverhead >= 1 {
		return nil, fmt.Errorf("kubelet: Config.MemoryOverhead is %v; want a fraction from 0 to below 1", cfg.MemoryOverhead)
	}
	rc := rest.CopyConfig(cfg.APIServer)
	rc.ContentType = "application/vnd.kubernetes.protobuf"
	rc.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	rc.QPS = -1 // the queues' workers bound the load
	rc.UserAgent = "nap-lab-kubelet"
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("kubelet: API server connection %s: %w", rc.Host, err)
	}
	return newFleet(cfg.withDefaults(), client)
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.MemoryOverhead == 0 {
		c.MemoryOverhead = DefaultMemoryOverhead
	}
	if c.LeaseRenew == 0 {
		c.LeaseRenew = defaultLeaseRenew
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// newFleet builds a Fleet on a client.
func newFleet(cfg Config, client kubernetes.Interface) (*Fleet, error) {
	f := &Fleet{
		cfg: cfg, client: client,
		byID: map[string]*vm{}, byNode: map[string]*vm{}, seen: map[types.UID]podRecord{},
	}
	f.machines = newLoop("machine", machineWorkers, cfg, f.syncMachine)
	f.leases = newLoop("lease", leaseWorkers, cfg, f.renewLease)
	f.podSync = newLoop("pod", podWorkers, cfg, f.syncPod)
	f.orphans = newLoop("orphan", 1, cfg, f.syncOrphan)
	return f, errors.Join(f.watchNodes(), f.watchPods())
}

// Run works until the context ends and returns when every goroutine of the fleet
// has. While the API server is not there it waits for it.
func (f *Fleet) Run(ctx context.Context) error {
	defer f.doors.close()
	defer f.shutDown()
	var wg sync.WaitGroup
	defer wg.Wait()
	// What the watches say about themselves belongs into the fleet's log, not
	// onto the process's standard error.
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(f.cfg.Logger.Handler()))
	wg.Go(func() { f.nodes.RunWithContext(ctx) })
	wg.Go(func() { f.pods.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), f.nodes.HasSynced, f.pods.HasSynced) {
		return nil // the context ended first
	}
	wg.Go(func() { f.machines.run(ctx) })
	wg.Go(func() { f.leases.run(ctx) })
	wg.Go(func() { f.podSync.run(ctx) })
	wg.Go(func() { f.orphans.run(ctx) })
	<-ctx.Done()
	return nil
}

// shutDown ends the queues' timers.
func (f *Fleet) shutDown() {
	f.machines.queue.ShutDown()
	f.leases.queue.ShutDown()
	f.podSync.queue.ShutDown()
	f.orphans.queue.ShutDown()
}

// Booted starts the kubelet of a machine. A machine that is already known has
// rebooted and starts again.
func (f *Fleet) Booted(m Machine) {
	now := f.cfg.Clock.Now()
	v := &vm{Machine: m, phase: Booting, since: now, bootedAt: now}
	f.mu.Lock()
	if old := f.byID[m.ID]; old != nil && f.byNode[old.NodeName()] == old {
		delete(f.byNode, old.NodeName())
	}
	f.byID[m.ID] = v
	f.mu.Unlock()
	f.machines.queue.AddAfter(m.ID, f.cfg.Delays.Register)
}

// EvictionNotice says that the machine will be evicted at the given time.
func (f *Fleet) EvictionNotice(id string, at time.Time) {
	v := f.machine(id)
	if v == nil {
		return
	}
	v.mu.Lock()
	v.evictAt = at
	v.mu.Unlock()
	f.machines.queue.Add(id)
}

// Gone ends the kubelet of a machine at once; it says nothing to the API server.
func (f *Fleet) Gone(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.byID[id]
	if v == nil {
		return
	}
	delete(f.byID, id)
	if name := v.NodeName(); f.byNode[name] == v {
		delete(f.byNode, name)
		f.orphans.queue.AddAfter(name, orphanCheckInterval)
	}
}

// machine returns the machine with the resource ID, nil when it is gone.
func (f *Fleet) machine(id string) *vm {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[id]
}

// kubeletOf returns the machine that runs the node, nil when it is not one of
// the fleet's or has not registered.
func (f *Fleet) kubeletOf(node string) *vm {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byNode[node]
}

// Status is what is known about a machine's kubelet.
type Status struct {
	Node  string
	Phase Phase
	// Since is when the phase was entered.
	Since time.Time
	// Reason says what the kubelet waits for or why it failed; empty when all
	// is well. It is what a machine's boot diagnostics would show.
	Reason string
}

// Status reports on one machine; false when it never booted or is gone.
func (f *Fleet) Status(id string) (Status, bool) {
	v := f.machine(id)
	if v == nil {
		return Status{}, false
	}
	return v.status(), true
}

// watchHandler adapts a function of an object to informer events.
func watchHandler[T any](changed func(T), gone func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { changed(o.(T)) },
		UpdateFunc: func(_, o any) { changed(o.(T)) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if t, ok := o.(T); ok {
				gone(t)
			}
		},
	}
}

// watchFailed keeps lost watches out of the process's standard error: informers
// try again by themselves.
func (f *Fleet) watchFailed(_ context.Context, _ *cache.Reflector, err error) {
	f.cfg.Logger.Debug("watch ended, trying again", "error", err)
}
