package model

import "strings"

// GPU is what is known of the GPUs of an instance type before a machine of it runs. All
// of a machine are alike.
type GPU struct {
	// Count is how many GPUs a machine has.
	Count int64
	// Product, Architecture and ComputeCapability (three numbers with dots) are as
	// NVIDIA's driver lists them.
	Product, Architecture, ComputeCapability string
	// MemoryLeast and MemoryMost bound the memory of one GPU in bytes: how much of it is
	// listed depends on error correction and on the version of the driver.
	MemoryLeast, MemoryMost int64
}

const (
	deviceAxis      = "devices of "
	wholeDeviceAxis = "all devices of "
	deviceLabel     = "devices for "
)

// DeviceAxis is the name of the axis that counts the devices of a driver.
func DeviceAxis(driver string) string { return deviceAxis + driver }

// WholeDeviceAxis is the name of the axis by which a pod takes all devices of a driver on
// its node: it asks for [WholeDevices] there, and a pod that asks for some of them for as
// many, so that no two of which one takes all share a node.
func WholeDeviceAxis(driver string) string { return wholeDeviceAxis + driver }

// WholeDevices is what a node with devices has on [WholeDeviceAxis]. It is more than any
// node has devices.
const WholeDevices = 1 << 20

// DeviceDriver is the driver whose devices an axis counts, empty for axes of resources.
func DeviceDriver(axis string) string {
	if driver, whole := strings.CutPrefix(axis, wholeDeviceAxis); whole {
		return driver
	}
	driver, is := strings.CutPrefix(axis, deviceAxis)
	if !is {
		return ""
	}
	return driver
}

// DeviceLabel is the key of a label that marks nodes and instance types with devices of a
// kind; what says which devices those are, in words. No user can set such a label.
func DeviceLabel(what string) string { return deviceLabel + what }

// KindOfDevices is what a label marks, as [DeviceLabel] was told; empty for labels of
// other things.
func KindOfDevices(label string) string {
	what, is := strings.CutPrefix(label, deviceLabel)
	if !is {
		return ""
	}
	return what
}
