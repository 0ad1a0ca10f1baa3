package kubelet

import (
	"cmp"
	"crypto/tls"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
)

// Phase is how far a machine's kubelet has come.
type Phase string

// The phases, in the order of a machine's life.
const (
	Booting             Phase = "Booting"             // the operating system starts
	Provisioning        Phase = "Provisioning"        // looking for the API server
	Bootstrapping       Phase = "Bootstrapping"       // asking for a client certificate
	AwaitingCertificate Phase = "AwaitingCertificate" // asked, not signed yet
	Registering         Phase = "Registering"         // creating the Node object
	NotReady            Phase = "NotReady"            // registered
	Ready               Phase = "Ready"
	Failed              Phase = "Failed"       // boot data unusable; only a new machine helps
	Deregistered        Phase = "Deregistered" // its Node object was deleted
)

// vm is a machine and its kubelet.
type vm struct {
	machine  Machine
	bootedAt time.Time
	life     life

	// The machine queue alone uses these; it has one worker per machine. boot
	// and nodeUID do not change any more once the machine has registered.
	boot      bootdata.Data
	join      joinAttempt
	nodeUID   types.UID
	cloudDone bool // labels of the cloud node manager are written

	lease heartbeat

	// cert is the kubelet's own certificate, which stays on the disk. The registry's lock
	// guards it once the machine has registered.
	cert tls.Certificate
}

// life is how far a kubelet has come and what of its node's status is written. Its
// methods take the lock, except those that say so.
type life struct {
	mu     sync.Mutex // guards all below
	phase  Phase
	since  time.Time // when the phase was entered, or Ready last changed
	reason string    // what the kubelet waits for or why it failed; empty when all is well

	gpusFound  bool      // the device plugin has announced the GPUs
	preempting bool      // the condition PreemptionScheduled is written
	evictAt    time.Time // zero: no notice
	writtenAt  time.Time // last write of the node's status
	// disputed is set when the control plane's view of Ready differs from ours.
	disputed bool
}

// moveTo enters a phase. The caller holds mu. The reason stays until the machine has
// a node, so that one that tries again and again always says why.
func (l *life) moveTo(p Phase, now time.Time) {
	l.phase, l.since = p, now
}

// enter enters a phase; a reason that is not empty replaces the old one.
func (l *life) enter(p Phase, reason string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moveTo(p, now)
	l.reason = cmp.Or(reason, l.reason)
}

// blame sets the reason.
func (l *life) blame(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reason = reason
}

// current is the phase, when it was entered, and the reason.
func (l *life) current() (phase Phase, since time.Time, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase, l.since, l.reason
}

// registered reports whether the machine has a Node object that is its own.
func (v *vm) registered() bool {
	phase, _, _ := v.life.current()
	return phase == NotReady || phase == Ready
}

// networkReady reports whether pods other than host-network ones can start.
func (v *vm) networkReady() bool {
	phase, _, _ := v.life.current()
	return phase == Ready
}

// hasDriver reports whether the driver of the machine's GPUs gets installed: NVIDIA's by the
// image where the boot data say so, AMD's by the operator that their users bring.
func (v *vm) hasDriver() bool {
	return v.machine.GPUs > 0 && (v.boot.GPUDriver || v.machine.GPUVendor == "amd")
}

// nodeIP is the address pods on the host network have.
func (v *vm) nodeIP() string {
	if v.boot.Flags.NodeIP != "" {
		return v.boot.Flags.NodeIP
	}
	return v.machine.PrivateIP
}

// registry finds machines. Its methods may be called from any goroutine.
type registry struct {
	mu     sync.Mutex
	byID   map[string]*vm // by resource ID: booted and not gone
	byNode map[string]*vm // registered and not gone
	// disks are what machines that have registered and stopped have on their disks, by
	// resource ID: a machine that boots again needs no bootstrap token.
	disks map[string]disk
}

// disk is what is left of a kubelet on the disk of a machine that has stopped.
type disk struct {
	cert  tls.Certificate
	since time.Time
}

// forgetDisks is how long after a machine has stopped its disk is remembered: longer than
// a reboot takes.
const forgetDisks = 30 * time.Minute

// add takes a machine that has booted; an older one with its ID is forgotten.
func (r *registry) add(v *vm) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.byID[v.machine.ID]; old != nil && r.byNode[old.machine.NodeName()] == old {
		delete(r.byNode, old.machine.NodeName())
	}
	r.byID[v.machine.ID] = v
	if d, kept := r.disks[v.machine.ID]; kept {
		v.cert = d.cert
		delete(r.disks, v.machine.ID)
	}
}

// remove forgets a machine but for its disk, and returns the name of its node, empty when it
// has none.
func (r *registry) remove(id string, now time.Time) (node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.byID[id]
	if v == nil {
		return ""
	}
	delete(r.byID, id)
	for id, d := range r.disks {
		if now.Sub(d.since) > forgetDisks {
			delete(r.disks, id)
		}
	}
	if len(v.cert.Certificate) > 0 {
		if r.disks == nil {
			r.disks = map[string]disk{}
		}
		r.disks[id] = disk{cert: v.cert, since: now}
	}
	if name := v.machine.NodeName(); r.byNode[name] == v {
		delete(r.byNode, name)
		return name
	}
	return ""
}

// register makes a machine the kubelet of a node, with this certificate; false when it is
// gone or has rebooted meanwhile.
func (r *registry) register(v *vm, node string, cert tls.Certificate) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[v.machine.ID] != v {
		return false
	}
	v.cert = cert
	r.byNode[node] = v
	return true
}

// machine returns the machine with the resource ID, nil when it is gone.
func (r *registry) machine(id string) *vm {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

// kubeletOf returns the machine that runs the node, nil when it is not simulated
// here or has not registered.
func (r *registry) kubeletOf(node string) *vm {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byNode[node]
}

// cloudTaint is the taint of a node that the cloud node manager has not seen.
var cloudTaint = corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}
