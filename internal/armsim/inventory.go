package armsim

import (
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/compute"
	"github.com/nodeautoprovision/nap/internal/armsim/containerservice"
	"github.com/nodeautoprovision/nap/internal/armsim/network"
)

// Inventory is what exists in the subscription that a client must have
// created: resource IDs, sorted. What the subscription came with is not in it.
type Inventory struct {
	VMs         []string `json:"vms"`
	NICs        []string `json:"nics"`
	Disks       []string `json:"disks"`
	Machines    []string `json:"machines"`    // of the AKS machine API
	OrphanNICs  []string `json:"orphanNics"`  // attached to no machine
	OrphanDisks []string `json:"orphanDisks"` // likewise
}

// Empty says that nothing is left.
func (i Inventory) Empty() bool {
	return len(i.VMs)+len(i.NICs)+len(i.Disks)+len(i.Machines) == 0
}

// takeInventory lists everything that was created and still exists; attached is the
// machine that a network interface is attached to.
func takeInventory(resources *arm.Store, attached func(nic string) (vm string)) Inventory {
	var inv Inventory
	for r := range resources.All() {
		if r.Fixed {
			continue
		}
		switch r.Type {
		case compute.TypeVM:
			inv.VMs = append(inv.VMs, r.ID)
		case containerservice.TypeMachine:
			inv.Machines = append(inv.Machines, r.ID)
		case network.TypeInterface:
			inv.NICs = append(inv.NICs, r.ID)
			if vm := attached(r.ID); vm == "" || resources.Find(vm) == nil {
				inv.OrphanNICs = append(inv.OrphanNICs, r.ID)
			}
		case compute.TypeDisk:
			inv.Disks = append(inv.Disks, r.ID)
			if by := arm.Text(r.Doc, "managedBy"); by == "" || resources.Find(by) == nil {
				inv.OrphanDisks = append(inv.OrphanDisks, r.ID)
			}
		}
	}
	for _, ids := range [][]string{inv.VMs, inv.NICs, inv.Disks, inv.Machines, inv.OrphanNICs, inv.OrphanDisks} {
		slices.SortFunc(ids, func(a, b string) int { return strings.Compare(arm.Key(a), arm.Key(b)) })
	}
	return inv
}
