package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the objects by which nap tells of itself and is switched.
const Group = "nap.azure.com"

// GroupVersion is the version that this package describes.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: "v1alpha1"}
}

// AddToScheme makes a scheme know the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Snapshot{}, &SnapshotList{}, &SnapshotShard{}, &SnapshotShardList{},
		&NodeAutoProvisioning{}, &NodeAutoProvisioningList{}, &LedgerPage{}, &LedgerPageList{},
		&ShadowReport{}, &ShadowReportList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
