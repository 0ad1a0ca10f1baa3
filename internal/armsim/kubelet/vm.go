package kubelet

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Phase is how far a machine's kubelet has come.
type Phase string

// The phases, in the order of a machine's life.
const (
	Booting             Phase = "Booting"             // the operating system starts
	Bootstrapping       Phase = "Bootstrapping"       // asking for a client certificate
	AwaitingCertificate Phase = "AwaitingCertificate" // asked, not signed yet
	Registering         Phase = "Registering"         // creating the Node object
	NotReady            Phase = "NotReady"            // registered
	Ready               Phase = "Ready"
	Failed              Phase = "Failed"       // boot data unusable; only a new machine helps
	Deregistered        Phase = "Deregistered" // somebody deleted the Node object
)

// vm is a machine and its kubelet.
type vm struct {
	Machine
	bootedAt time.Time

	// The machine queue alone uses these; it has one worker per machine. boot
	// and nodeUID do not change any more once the machine has registered.
	boot      BootData
	join      joinAttempt
	nodeUID   types.UID
	cloudDone bool // labels of the cloud node manager are written

	// The lease queue alone uses these. leaseVersion is the resource version of
	// the last written lease, with which the next heartbeat is one write
	// without a read.
	leaseVersion string
	beats        uint32

	mu     sync.Mutex // guards all below
	phase  Phase
	since  time.Time
	reason string

	gpusFound  bool      // the device plugin has announced the GPUs
	preempting bool      // the condition PreemptionScheduled is written
	evictAt    time.Time // zero: no notice
	writtenAt  time.Time // last write of the node's status
	// disputed is set when the control plane's view of Ready differs from ours.
	disputed bool
}

// enter moves to a phase. The caller holds mu. The reason stays until the machine
// has a node, so that one that tries again and again always says why.
func (v *vm) enter(p Phase, now time.Time) {
	v.phase, v.since = p, now
}

// registered reports whether the machine has a Node object that is its own.
func (v *vm) registered() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.phase == NotReady || v.phase == Ready
}

// networkReady reports whether pods other than host-network ones can start.
func (v *vm) networkReady() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.phase == Ready
}

func (v *vm) status() Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	return Status{Node: v.NodeName(), Phase: v.phase, Since: v.since, Reason: v.reason}
}

// nodeIP is the address pods on the host network have.
func (v *vm) nodeIP() string {
	if v.boot.Flags.NodeIP != "" {
		return v.boot.Flags.NodeIP
	}
	return v.PrivateIP
}

// cloudTaint is the taint of a node that the cloud node manager has not seen.
var cloudTaint = corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}
