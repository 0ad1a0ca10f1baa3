package armsim

import (
	"cmp"
	"encoding/base64"
	"slices"
	"time"
)

// Machine is what a simulated kubelet may know about the machine that it runs on.
type Machine struct {
	ID           string            `json:"id"` // resource ID of the VM, or of the agent pool machine for fixed ones
	Name         string            `json:"name"`
	ComputerName string            `json:"computerName"` // host name, which kubelets use as node name
	VMID         string            `json:"vmId"`         // changes when a namesake is created anew
	Size         string            `json:"size"`
	VCPUs        int               `json:"vcpus"`
	MemoryBytes  int64             `json:"memoryBytes"`
	GPUs         int               `json:"gpus"`
	GPUVendor    string            `json:"gpuVendor,omitempty"` // nvidia or amd
	Arch         string            `json:"arch"`                // amd64 or arm64
	MaxDataDisks int               `json:"maxDataDisks"`
	OSDiskGB     int               `json:"osDiskGB"`
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
	// SpoiltBoot says that what the machine boots from is to be wrong, whoever wrote
	// it: its token is none that the cluster knows.
	SpoiltBoot bool `json:"spoiltBoot,omitempty"`
	// Guest is what the machine's own agent says went wrong inside.
	Guest     string    `json:"guest,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	BootedAt  time.Time `json:"bootedAt"`
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
	// NoGPUDriver leaves the driver to somebody else.
	NoGPUDriver bool `json:"noGPUDriver,omitempty"`
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
	// Gone means that the machine has stopped for good. Only machines that were
	// reported as booted are reported as gone.
	Gone(id string)
}

// Observe registers an observer. It first hears of every machine that is
// running, in order of creation.
func (s *Server) Observe(o MachineObserver) {
	s.mu.Lock()
	s.observers = append(s.observers, o)
	var running []*resource
	for _, r := range s.st.Resources {
		if r.VM != nil && r.VM.Running() {
			running = append(running, r)
		}
	}
	slices.SortFunc(running, func(a, b *resource) int {
		return cmp.Or(a.VM.CreatedAt.Compare(b.VM.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range running {
		m := s.machine(r)
		s.notes = append(s.notes, func() { o.Booted(m) })
	}
	s.mu.Unlock()
	s.deliver()
}

// notify queues a message to all observers.
func (s *Server) notify(f func(MachineObserver)) {
	observers := slices.Clone(s.observers)
	if len(observers) == 0 {
		return
	}
	s.notes = append(s.notes, func() {
		for _, o := range observers {
			f(o)
		}
	})
}

// deliver sends queued messages without holding the lock. A second caller
// leaves its messages to the first, which keeps them in order.
func (s *Server) deliver() {
	s.mu.Lock()
	if s.delivering {
		s.mu.Unlock()
		return
	}
	s.delivering = true
	for len(s.notes) > 0 {
		notes := s.notes
		s.notes = nil
		s.mu.Unlock()
		for _, n := range notes {
			n()
		}
		s.mu.Lock()
	}
	s.delivering = false
	s.mu.Unlock()
}

// ReportGuest is how a machine's own agent tells Azure what went wrong inside,
// or one of its extensions, by the id of either; the instance view shows it. An
// empty message takes it back.
func (s *Server) ReportGuest(id, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(id)
	switch {
	case r == nil:
		return
	case r.VM != nil:
		r.VM.Guest = message
	case r.Typ == typeExtension:
		r.Trouble = message
	}
	s.dirty()
}

// Machines lists the machines that run, by name.
func (s *Server) Machines() []Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ms []Machine
	for _, r := range s.st.Resources {
		if r.VM != nil && r.VM.Running() {
			ms = append(ms, s.machine(r))
		}
	}
	slices.SortFunc(ms, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	return ms
}

// machine describes a VM to its kubelet.
func (s *Server) machine(r *resource) Machine {
	v := r.VM
	size, _ := s.cat.Size(v.Spec.Size)
	m := Machine{
		ID: r.ID, Name: lastSegment(r.ID), ComputerName: v.Spec.ComputerName, VMID: v.ID,
		Size: size.Name, VCPUs: size.VCPUs, MemoryBytes: int64(size.MemoryGiB * (1 << 30)),
		GPUs: size.GPUs, GPUVendor: size.GPUManufacturer, Arch: size.Arch, MaxDataDisks: size.MaxDataDisks,
		OSDiskGB: v.Spec.OSDiskGB, Region: s.cfg.Region, Zone: v.Spec.Zone, Priority: v.Spec.Priority,
		PrivateIP: v.Address, Image: v.Spec.Image, Tags: tagsOf(r.Doc), AKS: v.AKS, Fixed: r.Fixed, SpoiltBoot: v.BootSpoilt, Guest: v.Guest,
		CreatedAt: v.CreatedAt, BootedAt: v.BootedAt,
	}
	m.CustomData, _ = base64.StdEncoding.DecodeString(v.CustomData) // checked when it was accepted
	for _, e := range s.extensionsOf(r) {
		m.Extensions = append(m.Extensions, extensionOf(e))
	}
	return m
}

// Exists says whether there is a resource with this ID, whatever its case: a
// machine that is being deleted still exists.
func (s *Server) Exists(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(id) != nil
}
