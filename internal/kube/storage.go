package kube

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

const (
	bindCompleted    = "pv.kubernetes.io/bind-completed"
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
	noProvisioner    = "kubernetes.io/no-provisioner"
	zoneDelimiter    = "__"
	selectedNode     = "volume.kubernetes.io/selected-node"
	betaClassName    = corev1.BetaStorageClassAnnotation
)

// The CSI drivers of Azure's disks, each of which is in a zone, and of its file shares.
const (
	AzureDiskDriver = "disk.csi.azure.com"
	AzureFileDriver = "file.csi.azure.com"
)

// csiDriver returns the CSI driver that serves a provisioner: volume plugins
// that were once part of Kubernetes live on as drivers.
func csiDriver(provisioner string) string {
	switch provisioner {
	case "kubernetes.io/azure-disk":
		return AzureDiskDriver
	case "kubernetes.io/azure-file":
		return AzureFileDriver
	case "kubernetes.io/aws-ebs":
		return "ebs.csi.aws.com"
	case "kubernetes.io/gce-pd":
		return "pd.csi.storage.gke.io"
	case "kubernetes.io/cinder":
		return "cinder.csi.openstack.org"
	case "kubernetes.io/vsphere-volume":
		return "csi.vsphere.vmware.com"
	case noProvisioner:
		return ""
	}
	return provisioner
}

// WithBinding is a claim with the annotation by which the scheduler and Karpenter know that its binding
// is complete. Claims in files often have their phase alone.
func WithBinding(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	if !isBound(c) || c.Annotations[bindCompleted] != "" {
		return c
	}
	c = c.DeepCopy()
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, bindCompleted, "yes")
	return c
}

func isBound(c *corev1.PersistentVolumeClaim) bool {
	return c.Annotations[bindCompleted] != "" || c.Status.Phase == corev1.ClaimBound
}

func volumeClaim(c *corev1.PersistentVolumeClaim) *fleet.VolumeClaim {
	out := &fleet.VolumeClaim{
		Namespace: c.Namespace,
		Name:      c.Name,
		Volume:    c.Spec.VolumeName,
		Bound:     isBound(c),
		Class:     ClassOfClaim(c),
		Lost:      c.Status.Phase == corev1.ClaimLost,
		Deleting:  c.DeletionTimestamp != nil,
		OnePod:    slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod),
		Node:      c.Annotations[selectedNode],
		New:       NewClaim(c),
	}
	if c.Spec.StorageClassName != nil {
		out.NoClass = *c.Spec.StorageClassName == ""
	}
	return out
}

// NewClaim reports whether a claim is of a file and no API server has it yet: those that one has
// have a UID and a phase.
func NewClaim(c *corev1.PersistentVolumeClaim) bool { return c.UID == "" && c.Status.Phase == "" }

// DiskBeforePod reports whether a StorageClass makes a disk of Azure before a pod is placed, in a zone
// that no pod decides.
func DiskBeforePod(c *storagev1.StorageClass) bool {
	class := storageClass(c)
	for name, value := range c.Parameters {
		if diskSKU(name) && strings.HasSuffix(strings.ToLower(value), "_zrs") {
			return false // the disk is in all zones
		}
	}
	return class.Immediate && class.Driver == AzureDiskDriver
}

// ClassOfClaim is the name of the StorageClass that a claim asks for, or "".
func ClassOfClaim(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return c.Annotations[betaClassName]
}

// IsDefaultClass reports whether a StorageClass serves claims that name none.
func IsDefaultClass(c *storagev1.StorageClass) bool {
	return c.Annotations[defaultClass] == "true" || c.Annotations[betaDefaultClass] == "true"
}

func volume(v *corev1.PersistentVolume) *fleet.Volume {
	out := &fleet.Volume{
		Name: v.Name, Deleting: v.DeletionTimestamp != nil, OfHost: v.Spec.Local != nil || v.Spec.HostPath != nil,
	}
	var needs model.Requirements
	switch {
	case v.Spec.CSI != nil:
		out.Driver, out.CSI = v.Spec.CSI.Driver, true
		needs = diskNeeds(out.Driver, v.Spec.CSI.VolumeAttributes)
	case v.Spec.AzureDisk != nil:
		out.Driver = AzureDiskDriver
	case v.Spec.AzureFile != nil:
		out.Driver = AzureFileDriver
	case v.Spec.AWSElasticBlockStore != nil:
		out.Driver = csiDriver("kubernetes.io/aws-ebs")
	}
	labelled := labelledPlaces(v)
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		if len(labelled) > 0 {
			out.Alternatives = append(out.Alternatives, labelled)
		}
		out.Alternatives = withNeeds(out.Alternatives, needs)
		return out
	}
	for i := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		// The API server has checked the terms; one that is empty matches nothing.
		if rs, matches, err := nodeTerm(&v.Spec.NodeAffinity.Required.NodeSelectorTerms[i], "spec.nodeAffinity"); err == nil && matches {
			out.Alternatives = append(out.Alternatives, slices.Concat(rs, labelled))
		}
	}
	out.Alternatives = withNeeds(out.Alternatives, needs)
	return out
}

// labelledPlaces are where a volume can be attached by its labels, as the scheduler's plugin
// VolumeZone reads them: volumes that were made by hand often have nothing else. Several zones
// are parted by __. Labels of which a part is empty count for nothing.
func labelledPlaces(v *corev1.PersistentVolume) model.Requirements {
	var out model.Requirements
	for _, key := range []string{corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		value, has := v.Labels[key]
		values := strings.Split(value, zoneDelimiter)
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		if has && !slices.Contains(values, "") {
			out = append(out, nodeRequirement(key, string(model.In), values))
		}
	}
	return out
}

func storageClass(c *storagev1.StorageClass) *fleet.StorageClass {
	out := &fleet.StorageClass{
		Name:      c.Name,
		Driver:    csiDriver(c.Provisioner),
		Immediate: c.VolumeBindingMode == nil || *c.VolumeBindingMode == storagev1.VolumeBindingImmediate,
		Created:   c.CreationTimestamp.Time,
		Default:   IsDefaultClass(c),
	}
	for _, t := range c.AllowedTopologies {
		var rs model.Requirements
		for _, e := range t.MatchLabelExpressions {
			rs = append(rs, nodeRequirement(e.Key, string(model.In), e.Values))
		}
		if len(rs) > 0 {
			out.Alternatives = append(out.Alternatives, rs)
		}
	}
	out.Alternatives = withNeeds(out.Alternatives, diskNeeds(out.Driver, c.Parameters))
	return out
}

// attachment is of a volume in the pod's own spec where it names no PersistentVolume.
func attachment(a *storagev1.VolumeAttachment) *fleet.Attachment {
	out := &fleet.Attachment{Name: a.Name, Node: a.Spec.NodeName, Driver: a.Spec.Attacher}
	if a.Spec.Source.PersistentVolumeName != nil {
		out.Volume = *a.Spec.Source.PersistentVolumeName
	}
	return out
}

func driverLimits(n *storagev1.CSINode) *fleet.DriverLimits {
	out := &fleet.DriverLimits{Node: n.Name, Limits: map[string]int{}}
	for _, d := range n.Spec.Drivers {
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			out.Limits[d.Name] = int(*d.Allocatable.Count)
		} else {
			out.Unlimited = append(out.Unlimited, d.Name)
		}
	}
	return out
}
