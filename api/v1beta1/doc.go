// Package v1beta1 is the stored version of nap's own API: AKSNodeClass, the
// Azure half of a NodePool. A NodePool says which machines may be bought; the
// AKSNodeClass that it refers to says what a bought machine looks like: image,
// disk, network, kubelet and security settings.
//
//   - aksnodeclass.go: the kind and its spec
//   - kubelet.go, localdns.go, linuxos.go: the larger parts of the spec
//   - status.go: conditions and their reasons
//   - labels.go: label and annotation keys
//   - hash.go: the fingerprint by which drift is noticed
//
// Group and schema are those that AKS's node auto-provisioning uses, so existing
// manifests apply unchanged. Validation lives in the markers (CEL included), from
// which `make generate` writes the CRD into package crds and the deep copies
// here.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.azure.com
package v1beta1
