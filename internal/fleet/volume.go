package fleet

import (
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// VolumeClaim is the record of a PersistentVolumeClaim.
type VolumeClaim struct {
	Namespace, Name string
	// Volume is the PersistentVolume that it is bound to, or asks for by name.
	Volume string
	// Bound says that the binding is complete.
	Bound bool
	// Class is its StorageClass; NoClass says that it wants none, not even the
	// default one.
	Class    string
	NoClass  bool
	Lost     bool
	Deleting bool
	// New claims are those of files, which no API server has yet.
	New bool
	// OnePod claims may be used by one pod at a time (access mode ReadWriteOncePod).
	OnePod bool
	// Node is the one for which the volume is being made, as the scheduler has chosen; empty
	// where it has not.
	Node string
}

// Volume is the record of a PersistentVolume.
type Volume struct {
	Name string
	// Driver is the CSI driver that attaches it, empty when attachments are not
	// limited.
	Driver string
	// Alternatives are where it can be attached, OR-ed; empty means anywhere.
	Alternatives []model.Requirements
	Deleting     bool
	// CSI volumes name their driver themselves; the others are of a plugin that was once part of
	// Kubernetes.
	CSI bool
	// OfHost volumes are a disk or a folder of one host (local, hostPath): their data
	// do not outlive it.
	OfHost bool
}

// Attachment is the record of a VolumeAttachment: a volume that is attached to a node, or is about
// to be, whether or not a pod uses it there.
type Attachment struct {
	Name string
	// Node, Driver and Volume are the node, the CSI driver and the PersistentVolume.
	Node, Driver, Volume string
}

// StorageClass is the record of a StorageClass.
type StorageClass struct {
	Name   string
	Driver string
	// Immediate classes bind before a pod is placed: an unbound claim of one
	// cannot be planned for, unless it is new.
	Immediate bool
	// Default classes serve claims that name none, the newest first.
	Default bool
	Created time.Time
	// Alternatives are its allowed topologies, OR-ed; empty means anywhere.
	Alternatives []model.Requirements
}

// Namespace is the record of a Namespace, for namespace selectors.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Deleting is set while it is being deleted.
	Deleting bool
}
