// Package v1alpha2 is the deprecated version of AKSNodeClass that preview
// clusters still apply. It is served with the same schema as v1beta1, in which
// objects are stored, so that no conversion is needed.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.azure.com
package v1alpha2
