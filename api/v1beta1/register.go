package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of AKSNodeClass.
const Group = "karpenter.azure.com"

// GroupVersion is the version that this package describes.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: "v1beta1"} }

// AddToScheme makes a scheme know AKSNodeClass.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &AKSNodeClass{}, &AKSNodeClassList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
