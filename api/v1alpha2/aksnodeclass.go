package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// AKSNodeClass is v1beta1's kind under its older version.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=aksnodeclasses,scope=Cluster,categories={karpenter,nap},shortName={aksnc,aksncs}
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="ImageFamily",type="string",JSONPath=".spec.imageFamily",priority=1
// +kubebuilder:subresource:status
// +kubebuilder:deprecatedversion:warning="karpenter.azure.com/v1alpha2 AKSNodeClass is deprecated; use karpenter.azure.com/v1beta1"
type AKSNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   v1beta1.AKSNodeClassSpec   `json:"spec,omitempty"`
	Status v1beta1.AKSNodeClassStatus `json:"status,omitempty"`
}

// AKSNodeClassList is a list of AKSNodeClasses.
//
// +kubebuilder:object:root=true
type AKSNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AKSNodeClass `json:"items"`
}

// GroupVersion is the version that this package describes.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: v1beta1.Group, Version: "v1alpha2"}
}

// AddToScheme makes a scheme know AKSNodeClass.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &AKSNodeClass{}, &AKSNodeClassList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
