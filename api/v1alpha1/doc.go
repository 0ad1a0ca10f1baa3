// Package v1alpha1 is nap itself as objects: the NodeAutoProvisioning, by which it is
// switched; a Snapshot, which is what the controller knows and decides now, small enough
// to be read at a glance, and its SnapshotShards, which hold all of it, compressed. The
// controller alone writes the last two; commands read them, so that they say what the
// controller says.
//
// +kubebuilder:object:generate=true
// +groupName=nap.azure.com
package v1alpha1
