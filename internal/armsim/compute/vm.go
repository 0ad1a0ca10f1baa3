package compute

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// phase is where a machine is in its life. The values are those of
// provisioningState, except the last.
type phase string

const (
	phaseCreating    phase = "Creating"
	phaseSucceeded   phase = "Succeeded"
	phaseFailed      phase = "Failed"
	phaseDeleting    phase = "Deleting"
	phaseDeallocated phase = "Deallocated" // evicted with the policy Deallocate
)

// VM is a machine: its resource and what only the simulator knows of it. The
// resource is the VM's, except for the fixed machines of agent pools, which have
// that of the agent pool machine.
type VM struct {
	*arm.Resource `json:"-"`

	VMID       string      `json:"id"`                   // vmId: a namesake made later has another
	Spec       Spec        `json:"spec"`                 // as it was created
	Phase      phase       `json:"phase"`                // see phase
	CustomData string      `json:"customData,omitempty"` // base64, as sent; never shown again
	Operation  string      `json:"operation,omitempty"`  // ID of the operation of its creation
	Failure    *arm.Error  `json:"failure,omitempty"`    // what its creation will end with or has ended with
	Booted     bool        `json:"booted,omitempty"`     // its kubelet has started and was not stopped
	BootLost   bool        `json:"bootLost,omitempty"`   // a fault took its boot
	Broken     *BrokenBoot `json:"broken,omitempty"`     // a fault ends its provisioning
	// Provisioned is how its provisioning has ended, nil before.
	Provisioned *Provisioning `json:"provisioned,omitempty"`
	Counted     bool          `json:"counted,omitempty"`   // it counts in the books of quota and capacity
	EvictAt     time.Time     `json:"evictAt,omitzero"`    // end of the eviction notice; zero without one
	EvictedBy   string        `json:"evictedBy,omitempty"` // ID of the fault that evicts it
	CreatedAt   time.Time     `json:"createdAt"`           // when it was accepted
	BootedAt    time.Time     `json:"bootedAt,omitzero"`   // zero before Booted
	Address     string        `json:"address"`             // primary private IP
	AKS         *AKSMachine   `json:"aks,omitempty"`       // nil for machines that were bought as VMs
	// AKSOperation is the operation of the creation of the agent pool machine, which lasts
	// to the end of the provisioning.
	AKSOperation string `json:"aksOperation,omitempty"`
	AKSID        string `json:"aksId,omitempty"` // ID of the agent pool machine in front of this VM
}

// Running says that the kubelet of the machine runs.
func (v *VM) Running() bool {
	return v.Booted && (v.Phase == phaseSucceeded || v.Phase == phaseDeleting)
}

// State is the phase in the words of provisioningState.
func (v *VM) State() string { return string(v.Phase) }

// Failed says that the creation has failed.
func (v *VM) Failed() bool { return v.Phase == phaseFailed }

// table holds the machines.
type table struct {
	sub        *arm.Subscription
	extensions *extensions
	byKey      map[string]*VM // by key of the resource
}

// find looks a machine up by the ID of its resource; nil when there is none.
func (t *table) find(id string) *VM { return t.byKey[arm.Key(id)] }

// insert adds a machine whose resource has its ID.
func (t *table) insert(v *VM) { t.byKey[arm.Key(v.ID)] = v }

// sorted lists the machines by ID.
func (t *table) sorted() []*VM {
	return slices.SortedFunc(maps.Values(t.byKey), func(a, b *VM) int { return cmp.Compare(arm.Key(a.ID), arm.Key(b.ID)) })
}

// running lists the machines whose kubelet runs, in no order.
func (t *table) running() []*VM {
	return slices.DeleteFunc(slices.Collect(maps.Values(t.byKey)), func(v *VM) bool { return !v.Running() })
}

// describe is a machine as its kubelet may know it.
func (t *table) describe(v *VM) Machine {
	size, _ := t.sub.SKUTable.Size(v.Spec.Size)
	m := Machine{
		ID: v.ID, Name: arm.LastSegment(v.ID), ComputerName: v.Spec.ComputerName, VMID: v.VMID,
		Size: size.Name, VCPUs: size.VCPUs, MemoryBytes: int64(size.MemoryGiB * (1 << 30)),
		GPUs: size.GPUs, GPUVendor: size.GPUManufacturer, Arch: size.Arch, MaxDataDisks: size.MaxDataDisks,
		OSDiskGB: v.Spec.OSDiskGB, LocalOSDisk: v.Spec.Ephemeral, Region: t.sub.Region, Zone: v.Spec.Zone, Priority: v.Spec.Priority,
		PrivateIP: v.Address, Image: v.Spec.Image, Tags: arm.TagsOf(v.Doc), AKS: v.AKS, Fixed: v.Fixed, Broken: v.Broken,
		Provisioned: v.Provisioned,
		CreatedAt:   v.CreatedAt, BootedAt: v.BootedAt,
	}
	m.CustomData, _ = base64.StdEncoding.DecodeString(v.CustomData) // checked when it was accepted
	for _, e := range t.extensions.of(v.ID) {
		m.Extensions = append(m.Extensions, t.extensions.describe(e))
	}
	return m
}

// target is the machine as faults select it; id is that of the resource on which
// the operation works.
func (t *table) target(id, operation string, m Spec) arm.Target {
	size, _ := t.sub.SKUTable.Size(m.Size)
	return arm.Target{Operation: operation, Resource: id, Size: m.Size, Zone: m.Zone, Priority: m.Priority, Family: size.QuotaFamily()}
}

// bootDiagnostics answers where the serial log and the screenshot of a machine lie: two
// blobs, each with a signature that permits to read it.
func (h *handlers) bootDiagnostics(c *arm.Call) (arm.Reply, error) {
	v := h.machines.find(c.Path.Parent())
	if v == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	if enabled, _ := arm.At(v.Doc, "properties", "diagnosticsProfile", "bootDiagnostics", "enabled").(bool); !enabled {
		return arm.Reply{}, arm.NewError(http.StatusConflict, "OperationNotAllowed",
			"Boot diagnostics is not enabled on VM '%s'.", arm.LastSegment(v.ID))
	}
	blob := func(kind string) string {
		return fmt.Sprintf("%s%s%s.%s.%s?sv=2018-03-28&sr=b&sp=r&sig=%s",
			c.Base(), diagnosticsPath, arm.LastSegment(v.ID), v.VMID, kind, signature(v))
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{
		"consoleScreenshotBlobUri": blob("screenshot.bmp"), "serialConsoleLogBlobUri": blob("serialconsole.log"),
	}}, nil
}

// diagnosticsPath is where the blobs of boot diagnostics lie.
const diagnosticsPath = "/bootdiagnostics/"

// signature is that of the addresses of a machine's blobs.
func signature(v *VM) string { return strings.ReplaceAll(v.VMID, "-", "") }

// Endpoints are the rows beside ARM: the storage of boot diagnostics.
func (p *Provider) Endpoints() []arm.Endpoint {
	return []arm.Endpoint{{Method: http.MethodGet, Path: diagnosticsPath + "{blob}", Operation: "storage/blobs", Handle: p.handlers.serialLog}}
}

// serialLog answers with the blob of a serial log. As storage does, it takes the
// signature in the address and no token beside it.
func (h *handlers) serialLog(r *http.Request) (arm.Reply, error) {
	lock := h.machines.sub.Lock
	lock.Lock()
	defer lock.Unlock()
	for _, v := range h.machines.sorted() {
		if r.PathValue("blob") != fmt.Sprintf("%s.%s.serialconsole.log", arm.LastSegment(v.ID), v.VMID) {
			continue
		}
		if r.URL.Query().Get("sig") != signature(v) || r.Header.Get("Authorization") != "" {
			return arm.Reply{}, arm.NewError(http.StatusForbidden, "AuthenticationFailed",
				"Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.")
		}
		header := http.Header{"Content-Type": {"application/octet-stream"}}
		return arm.Reply{Status: http.StatusOK, Header: header, Body: []byte(v.console())}, nil
	}
	return arm.Reply{}, arm.NewError(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
}

// console is what a machine has written to its serial console.
func (v *VM) console() string {
	lines := []string{"[    0.000000] Linux version 5.15.0-1089-azure", "[    0.000000] Command line: root=UUID=0 ro console=ttyS0"}
	switch {
	case !v.Booted:
		lines = append(lines, "[    2.131415] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)")
	case v.Broken != nil:
		lines = append(lines, "[   12.345678] cloud-init[812]: Cloud-init finished", v.Broken.Output)
	default:
		lines = append(lines, "[   12.345678] cloud-init[812]: Cloud-init finished", v.Spec.ComputerName+" login: ")
	}
	return strings.Join(lines, "\r\n") + "\r\n"
}
