package compute

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Machine is what a simulated kubelet may know about the machine that it runs on.
type Machine struct {
	ID           string            `json:"id"` // resource ID of the VM, or of the agent pool machine for fixed ones
	Name         string            `json:"name"`
	ComputerName string            `json:"computerName"` // host name, which kubelets use as node name
	VMID         string            `json:"vmId"`         // another one for a namesake that is created later
	Size         string            `json:"size"`
	VCPUs        int               `json:"vcpus"`
	MemoryBytes  int64             `json:"memoryBytes"`
	GPUs         int               `json:"gpus"`
	GPUVendor    string            `json:"gpuVendor,omitempty"` // nvidia or amd
	Arch         string            `json:"arch"`                // amd64 or arm64
	MaxDataDisks int               `json:"maxDataDisks"`
	OSDiskGB     int               `json:"osDiskGB"`
	LocalOSDisk  bool              `json:"localOSDisk,omitempty"` // ephemeral: no managed disk is billed
	Region       string            `json:"region"`
	Zone         string            `json:"zone"`     // "1"; "0" for a machine without a zone
	Priority     string            `json:"priority"` // Regular or Spot
	PrivateIP    string            `json:"privateIP"`
	CustomData   []byte            `json:"customData,omitempty"` // decoded
	Extensions   []Extension       `json:"extensions,omitempty"` // at the time of booting
	Image        string            `json:"image"`
	Tags         map[string]string `json:"tags,omitempty"`
	// AKS is what the AKS machine API was told, for machines of an agent pool;
	// nil for machines bought as VMs, which carry it in CustomData.
	AKS *AKSMachine `json:"aks,omitempty"`
	// Fixed tells the machines that an agent pool has from the start, which carry
	// their boot data like VMs.
	Fixed bool `json:"fixed,omitempty"`
	// Broken says that a fault ends its provisioning; nil without one.
	Broken *BrokenBoot `json:"broken,omitempty"`
	// Provisioned is how its provisioning has ended; nil before.
	Provisioned *Provisioning `json:"provisioned,omitempty"`
	CreatedAt   time.Time     `json:"createdAt"`
	BootedAt    time.Time     `json:"bootedAt"`
}

// Extension is a VM extension and the settings that were sent with it,
// including the protected ones, which the API never shows again.
type Extension struct {
	Name              string         `json:"name"`
	Publisher         string         `json:"publisher"`
	Type              string         `json:"type"`
	Settings          map[string]any `json:"settings,omitempty"`
	ProtectedSettings map[string]any `json:"protectedSettings,omitempty"`
}

// AKSMachine is the Kubernetes part of an agent pool machine.
type AKSMachine struct {
	Cluster    string            `json:"cluster"` // resource ID
	Pool       string            `json:"pool"`
	Name       string            `json:"name"`
	Mode       string            `json:"mode"`
	Labels     map[string]string `json:"labels,omitempty"`
	Taints     []string          `json:"taints,omitempty"` // key=value:effect; initial and lasting ones
	MaxPods    int               `json:"maxPods,omitempty"`
	Kubernetes string            `json:"kubernetes,omitempty"` // version
	// NoGPUDriver says that AKS installs no GPU driver.
	NoGPUDriver bool `json:"noGPUDriver,omitempty"`
	// ManagedGPU says that AKS installs a device plugin too.
	ManagedGPU bool `json:"managedGPU,omitempty"`
}

// MachineObserver is told about the machines of the subscription. Calls come
// one at a time and in order, on a goroutine of the server that must not be
// held up: hand long work over. Calling the server back is allowed.
type MachineObserver interface {
	// Booted means that the kubelet of the machine would start now.
	Booted(m Machine)
	// EvictionNotice means that the spot machine will be taken away at the given
	// time, as a scheduled event of the metadata service says.
	EvictionNotice(id string, at time.Time)
	// Gone means that the machine has stopped, for good unless it is reported as booted
	// again. Only machines that were reported as booted are reported as gone.
	Gone(id string)
}

// observers are told about machines, in order and without the lock.
type observers struct {
	lock       sync.Locker // of the subscription
	list       []MachineObserver
	notes      []func() // messages that wait for deliver
	delivering bool     // a call of deliver is under way
}

// add registers an observer and queues for it what it has missed: the boots of the
// machines that run, in order of creation.
func (o *observers) add(n MachineObserver, machines *table) {
	o.list = append(o.list, n)
	running := machines.running()
	slices.SortFunc(running, func(a, b *VM) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, v := range running {
		m := machines.describe(v)
		o.notes = append(o.notes, func() { n.Booted(m) })
	}
}

// notify queues a message to all observers.
func (o *observers) notify(f func(MachineObserver)) {
	list := slices.Clone(o.list)
	if len(list) == 0 {
		return
	}
	o.notes = append(o.notes, func() {
		for _, n := range list {
			f(n)
		}
	})
}

// deliver sends queued messages without holding the lock, which it takes. A second
// caller leaves its messages to the first, which keeps them in order.
func (o *observers) deliver() {
	o.lock.Lock()
	if o.delivering {
		o.lock.Unlock()
		return
	}
	o.delivering = true
	for len(o.notes) > 0 {
		notes := o.notes
		o.notes = nil
		o.lock.Unlock()
		for _, n := range notes {
			n()
		}
		o.lock.Lock()
	}
	o.delivering = false
	o.lock.Unlock()
}
