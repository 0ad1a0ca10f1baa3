package fleet

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// DeviceClaimRef is a resource claim of a pod: Name is the pod's own word for it. It has
// either the name of a ResourceClaim in Claim, or in Template that of the
// ResourceClaimTemplate from which the pod gets a claim of its own.
type DeviceClaimRef struct {
	Name, Claim, Template string
}

// DeviceClass is the record of a DeviceClass: Selectors are CEL expressions, which a
// device must all meet.
type DeviceClass struct {
	Name      string
	Selectors []string
	// Resource is the extended resource by which pods may ask for such devices, too
	// (spec.extendedResourceName); empty for most classes.
	Resource string
}

// DeviceDemand is what a resource claim asks for.
type DeviceDemand struct {
	Requests []DeviceRequest
	// Unplanned says what of the claim nap does not plan; empty for most claims.
	Unplanned string
}

// DeviceRequest is one request of a claim. Of several options the first counts that a node
// can meet.
type DeviceRequest struct {
	Name    string
	Options []DeviceOption
}

// DeviceOption asks a DeviceClass for devices that meet further selectors: for Count of
// them, or for all of them that a node has.
type DeviceOption struct {
	Class     string
	Selectors []string
	Count     int64
	All       bool
}

// DeviceClaimTemplate is the record of a ResourceClaimTemplate.
type DeviceClaimTemplate struct {
	Namespace, Name string
	Demand          DeviceDemand
}

// DeviceClaim is the record of a ResourceClaim.
type DeviceClaim struct {
	Namespace, Name string
	Demand          DeviceDemand
	// PodUID is that of the pod for which it was made from a template; empty for a claim
	// that users wrote.
	PodUID string
	// Allocation is nil until the scheduler has chosen devices.
	Allocation *DeviceAllocation
	Deleting   bool
}

// DeviceAllocation is what the scheduler chose for a claim.
type DeviceAllocation struct {
	// Where are the labels of the nodes that can use the devices; empty for all nodes.
	Where model.Requirements
	// Unplanned says why Where does not tell; empty for most claims.
	Unplanned string
	// Devices are those that no other claim can have.
	Devices []DeviceID
}

// DeviceID names a device of a driver.
type DeviceID struct {
	Driver, Pool, Device string
}

// Device is a device of a node, or one that a machine of a size will have.
type Device struct {
	DeviceID
	Traits DeviceTraits
}

// DeviceTraits is what is known of a device.
type DeviceTraits interface {
	// Meets reports whether the device meets a CEL expression; unknown says why that is
	// not known, in which case the answer means nothing.
	Meets(selector string) (meets bool, unknown string)
}

// DeviceSlice is the record of a ResourceSlice with devices of one node.
type DeviceSlice struct {
	Name string
	// Node is the name of the node; empty for devices that are not one node's, which are
	// not planned.
	Node         string
	Driver, Pool string
	// Slices is of how many slices of a Generation the pool is made. An older generation
	// does not count.
	Generation, Slices int64
	// Devices can be given to one claim each. Those that several claims share, that are cut
	// from others or that have taints are not among them.
	Devices []Device
}

func (c *DeviceClass) put(t *tables) bool  { t.deviceClasses.put(c.Name, c); return true }
func (c *DeviceClass) drop(t *tables) bool { return t.deviceClasses.remove(c.Name) }

func (c *DeviceClaimTemplate) put(t *tables) bool {
	t.deviceTemplates.put(objectKey{c.Namespace, c.Name}, c)
	return true
}

func (c *DeviceClaimTemplate) drop(t *tables) bool {
	return t.deviceTemplates.remove(objectKey{c.Namespace, c.Name})
}

func (c *DeviceClaim) put(t *tables) bool {
	t.deviceClaims.put(objectKey{c.Namespace, c.Name}, c)
	return true
}

func (c *DeviceClaim) drop(t *tables) bool {
	return t.deviceClaims.remove(objectKey{c.Namespace, c.Name})
}

func (s *DeviceSlice) put(t *tables) bool  { t.deviceSlices.put(s.Name, s); return true }
func (s *DeviceSlice) drop(t *tables) bool { return t.deviceSlices.remove(s.Name) }

// deviceTables is what a snapshot knows of devices.
type deviceTables struct {
	classes   map[string]*DeviceClass
	templates map[objectKey]*DeviceClaimTemplate
	claims    map[objectKey]*DeviceClaim
	slices    map[string]*DeviceSlice
	// ofGPU is as in Store.PlanDevices.
	ofGPU func(*model.GPU) Device
}

// resources are the extended resources, sorted, by which pods may ask for devices. There
// are none where pods with resource claims are left alone.
func (t *deviceTables) resources() []string {
	if t.ofGPU == nil {
		return nil
	}
	var out []string
	for _, c := range t.classes {
		if c.Resource != "" && !slices.Contains(out, c.Resource) {
			out = append(out, c.Resource)
		}
	}
	slices.Sort(out)
	return out
}

// PlanDevices has pods with resource claims planned. ofGPU describes a GPU as its driver
// will list it; it may be called from any goroutine. Until then such pods are left alone.
func (s *Store) PlanDevices(ofGPU func(*model.GPU) Device) {
	s.write(func(t *tables) bool {
		t.ofGPU = ofGPU
		return true
	})
}
