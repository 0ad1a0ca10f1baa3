// Package devices reads the objects of dynamic resource allocation (resource.k8s.io/v1) for
// planning: what resource claims ask for, what drivers list, and what NVIDIA's driver will
// list of the GPUs of a machine that does not run yet.
//
//	reader := devices.NewReader()
//	record := reader.Record(object) // of package fleet, or nil
//	store.PlanDevices(reader.OfGPU)
//
// Selectors are evaluated by the library with which the scheduler evaluates them. Of a
// machine that does not run yet not all is known: a selector that depends on the rest has
// no answer, and says on what.
package devices
