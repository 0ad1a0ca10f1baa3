package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
)

// Config is everything Kubelets need to know.
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
	// once they are not ready. Without it they stay.
	VMExists func(id string) bool
	// WithoutCilium says that Cilium's agent does not run on nodes: its taint stays.
	WithoutCilium bool
	// Network is what machines reach.
	Network Network
	// Provisioned, where set, is told how the provisioning of a machine has ended, as the
	// extension that waits for it is. Provisioning that is never started has no end.
	Provisioned func(id string, end bootdata.Result)
	// Logger receives what goes wrong; slog.Default when nil.
	Logger *slog.Logger
}

// Delays say how long the steps of a machine's and a pod's life take. Zero means
// at once.
type Delays struct {
	// Register is the time from boot to the kubelet's first request.
	Register time.Duration
	// Lookup is how long a machine asks for the API server's name before its
	// provisioning fails, and Connect how long it tries to connect.
	Lookup  time.Duration
	Connect time.Duration
	// Ready is the time from registration to a ready node (network plugin).
	Ready time.Duration
	// DevicePlugin is the time from ready to GPUs being announced by the plugin of a DaemonSet.
	// Machines that run a plugin themselves started it before the kubelet: no time passes.
	DevicePlugin time.Duration
	// PodStart is the time from a pod being bound to its containers running.
	PodStart time.Duration
	// PodStop is the time containers take to end after they were asked to;
	// a pod's grace period limits it.
	PodStop time.Duration
	// PreemptionNotice is how long before a spot eviction the node's condition
	// says so: 30 s on Azure. Zero: as soon as the kubelets are told.
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

// Kubelets runs the kubelets of all machines. Its methods may be called from any
// goroutine.
type Kubelets struct {
	cfg      Config
	registry *registry
	machines *loop[string] // by resource ID: joining and node status

	joiner     *joiner
	nodes      *nodes
	pods       *pods
	heartbeats *heartbeats
	orphans    *orphans
}

// New checks the configuration and prepares Kubelets; [Kubelets.Run] starts them.
func New(cfg Config) (*Kubelets, error) {
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
	return newKubelets(cfg.withDefaults(), client)
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

// newKubelets builds Kubelets on a client.
func newKubelets(cfg Config, client kubernetes.Interface) (*Kubelets, error) {
	k := &Kubelets{cfg: cfg, registry: &registry{byID: map[string]*vm{}, byNode: map[string]*vm{}}}
	k.machines = newLoop("machine", machineWorkers, cfg, k.syncMachine)
	wake := k.machines.queue.Add
	k.heartbeats = newHeartbeats(cfg, client, k.registry)
	k.orphans = newOrphans(cfg, client)
	k.pods = newPods(cfg, client, k.registry)
	k.nodes = &nodes{cfg: cfg, client: client, registry: k.registry, wake: wake, becameReady: k.pods.queueOf, strange: k.orphans.suspect}
	k.joiner = &joiner{cfg: cfg, connections: connections{network: cfg.Network}, registry: k.registry, wake: wake, registered: func(v *vm) {
		k.heartbeats.queue.queue.Add(v.machine.ID)
		k.pods.queueOf(v.machine.NodeName())
	}}
	err := errors.Join(k.nodes.watch(), k.pods.watch())
	k.orphans.nodes = k.nodes.informer
	return k, err
}

// Run works until the context ends and returns when every goroutine of the kubelets
// has. While the API server is not there it waits for it.
func (k *Kubelets) Run(ctx context.Context) error {
	defer k.joiner.connections.close()
	defer k.shutDown()
	var wg sync.WaitGroup
	defer wg.Wait()
	// What the watches say about themselves belongs into the configured log, not
	// onto the process's standard error.
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(k.cfg.Logger.Handler()))
	wg.Go(func() { k.nodes.informer.RunWithContext(ctx) })
	wg.Go(func() { k.pods.informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), k.nodes.informer.HasSynced, k.pods.informer.HasSynced) {
		return nil // the context ended first
	}
	wg.Go(func() { k.machines.run(ctx) })
	wg.Go(func() { k.heartbeats.queue.run(ctx) })
	wg.Go(func() { k.pods.queue.run(ctx) })
	wg.Go(func() { k.orphans.queue.run(ctx) })
	<-ctx.Done()
	return nil
}

// shutDown ends the queues' timers.
func (k *Kubelets) shutDown() {
	k.machines.queue.ShutDown()
	k.heartbeats.queue.queue.ShutDown()
	k.pods.queue.queue.ShutDown()
	k.orphans.queue.queue.ShutDown()
}

// Booted starts the kubelet of a machine. A machine that is already known, or was gone, has
// rebooted and starts again; the latter with the certificate on its disk.
func (k *Kubelets) Booted(m Machine) {
	now := k.cfg.Clock.Now()
	k.registry.add(&vm{machine: m, bootedAt: now, life: life{phase: Booting, since: now}})
	k.machines.queue.AddAfter(m.ID, k.cfg.Delays.Register)
}

// EvictionNotice says that the machine will be evicted at the given time.
func (k *Kubelets) EvictionNotice(id string, at time.Time) {
	v := k.registry.machine(id)
	if v == nil {
		return
	}
	v.life.mu.Lock()
	v.life.evictAt = at
	v.life.mu.Unlock()
	k.machines.queue.Add(id)
}

// Gone ends the kubelet of a machine at once; it says nothing to the API server.
func (k *Kubelets) Gone(id string) {
	if node := k.registry.remove(id, k.cfg.Clock.Now()); node != "" {
		k.orphans.queue.queue.AddAfter(node, orphanCheckInterval)
	}
}

// syncMachine takes the next step of a machine's life. A step that fails is
// tried again with growing delay, and its error is the machine's reason.
func (k *Kubelets) syncMachine(ctx context.Context, id string) (time.Duration, error) {
	v := k.registry.machine(id)
	if v == nil {
		return 0, nil
	}
	var again time.Duration
	var err error
	switch phase, _, _ := v.life.current(); phase {
	case Booting:
		again = k.joiner.start(v)
	case Provisioning:
		again = k.joiner.provision(ctx, v)
	case Bootstrapping:
		err = k.joiner.requestCertificate(ctx, v)
	case AwaitingCertificate:
		again, err = k.joiner.awaitCertificate(ctx, v)
	case Registering:
		err = k.joiner.register(ctx, v)
	case NotReady, Ready:
		again, err = k.nodes.sync(ctx, v)
	default: // the other phases have nothing to tell
	}
	if err != nil {
		v.life.blame(err.Error())
	}
	return again, err
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
func (k *Kubelets) Status(id string) (Status, bool) {
	v := k.registry.machine(id)
	if v == nil {
		return Status{}, false
	}
	phase, since, reason := v.life.current()
	return Status{Node: v.machine.NodeName(), Phase: phase, Since: since, Reason: reason}, true
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
func (c Config) watchFailed(_ context.Context, _ *cache.Reflector, err error) {
	c.Logger.Debug("watch ended, trying again", "error", err)
}
