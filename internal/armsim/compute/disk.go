package compute

import (
	"fmt"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// disks are the OS disks of machines. Ephemeral disks are no resources.
type disks struct{ sub *arm.Subscription }

// id is the ID of a managed disk.
func (d disks) id(group, name string) string {
	return d.sub.Path() + "/resourceGroups/" + group + "/providers/Microsoft.Compute/disks/" + name
}

// create makes the OS disk of a machine, unless it is there.
func (d disks) create(v *VM) {
	id := d.id(v.Group, v.Spec.OSDisk)
	if v.Spec.Ephemeral || d.sub.Resources.Find(id) != nil {
		return
	}
	sku, tier := "StandardSSD_LRS", "Standard"
	if size, known := d.sub.SKUTable.Size(v.Spec.Size); known && size.PremiumStorage {
		sku, tier = "Premium_LRS", "Premium"
	}
	doc := arm.Document{
		"id": id, "name": arm.LastSegment(id), "type": "Microsoft.Compute/disks", "location": d.sub.Region,
		"managedBy": v.ID, "sku": arm.Document{"name": sku, "tier": tier},
		"properties": arm.Document{"osType": "Linux", "diskSizeGB": v.Spec.OSDiskGB, "diskState": "Attached",
			"provisioningState": "Succeeded", "timeCreated": arm.Timestamp(d.sub.Clock.Now())},
	}
	if tags, ok := v.Doc["tags"].(arm.Document); ok {
		doc["tags"] = tags
	}
	if v.Spec.Zone != "0" {
		doc["zones"] = []any{v.Spec.Zone}
	}
	d.sub.Resources.Put(&arm.Resource{ID: id, Type: TypeDisk, Group: v.Group}, doc)
	d.sub.Audit.Event("disk.created", id, fmt.Sprintf("%s %d", sku, v.Spec.OSDiskGB))
}

// release ends the use of the OS disk by a machine that goes: the disk goes along
// or, where it is to be kept, belongs to no machine.
func (d disks) release(v *VM) {
	r := d.sub.Resources.Find(d.id(v.Group, v.Spec.OSDisk))
	if r == nil || arm.Key(arm.Text(r.Doc, "managedBy")) != arm.Key(v.ID) {
		return
	}
	if !v.Spec.KeepDisk {
		d.sub.Resources.Drop(r)
		d.deleted(r)
		return
	}
	doc := arm.Clone(r.Doc)
	delete(doc, "managedBy")
	arm.Section(doc, "properties")["diskState"] = "Unattached"
	d.sub.Resources.Put(r, doc)
}

// deleted records that a disk is gone.
func (d disks) deleted(r *arm.Resource) { d.sub.Audit.Event("disk.deleted", r.ID, "") }
