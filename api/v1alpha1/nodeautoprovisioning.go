package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeAutoProvisioningName is the name of the one NodeAutoProvisioning of a cluster.
const NodeAutoProvisioningName = "default"

// Mode says whether nap provisions nodes. The names are those of AKS's
// nodeProvisioningProfile.mode.
//
// +kubebuilder:validation:Enum=Auto;Manual
type Mode string

// The modes.
const (
	// ModeAuto has nap buy nodes for pending pods, and remove nodes that are not needed.
	ModeAuto Mode = "Auto"
	// ModeManual has nap buy nothing and remove nothing voluntarily.
	ModeManual Mode = "Manual"
)

// DefaultNodePools says whether nap makes NodePools of its own accord. The names are those
// of AKS's nodeProvisioningProfile.defaultNodePools.
//
// +kubebuilder:validation:Enum=Auto;None
type DefaultNodePools string

// What there is of default NodePools.
const (
	// DefaultNodePoolsAuto has the NodePools default and system-surge made once, each with
	// its AKSNodeClass.
	DefaultNodePoolsAuto DefaultNodePools = "Auto"
	// DefaultNodePoolsNone makes none. Those that there are stay.
	DefaultNodePoolsNone DefaultNodePools = "None"
)

// The conditions of a NodeAutoProvisioning.
const (
	// ConditionProvisioning is True while nodes are bought for pending pods.
	ConditionProvisioning = "Provisioning"
	// ConditionPrerequisites is False while the cluster or the subscription does not let nap
	// buy, or a check of nap doctor fails; the message says what to change, or names the
	// first checks. It is Unknown until the checks have run.
	ConditionPrerequisites = "Prerequisites"
	// ConditionBootstrapToken is False while plain machines could not join.
	ConditionBootstrapToken = "BootstrapToken"
	// ConditionDisableBlocked is True while mode Manual is refused; the message names the
	// nodes and NodePools for which it is.
	ConditionDisableBlocked = "DisableBlocked"
	// ConditionUpgraded is False while nodes have an older image, an older Kubernetes version
	// or another SSH key than new ones get, and are replaced for it; the message counts them.
	ConditionUpgraded = "Upgraded"
	// ConditionDefaultNodePools is True when every default object has been made, and False
	// while one is missing that should be made; the message says why.
	ConditionDefaultNodePools = "DefaultNodePools"
)

// The reasons of these conditions, beside those that what is watched has of its own.
const (
	ReasonAuto           = "ModeAuto"
	ReasonManual         = "ModeManual"
	ReasonMet            = "Met"
	ReasonNotMet         = "NotMet"
	ReasonNotChecked     = "NotChecked"
	ReasonValid          = "Valid"
	ReasonNothingBlocks  = "NothingBlocks"
	ReasonNodesOrLimits  = "NodesOrLimitsRemain"
	ReasonAllUpgraded    = "AllUpgraded"
	ReasonNodesAreOld    = "NodesAreOld"
	ReasonDefaultsMade   = "Made"
	ReasonDefaultsNone   = "NotWanted"
	ReasonDefaultsFailed = "Refused"
)

// NodeAutoProvisioning is the switch of nap in a cluster, and what there is to know of it
// at one glance. There is one, which the controller makes where it is missing. Mode Manual
// is refused while it would leave machines behind, as AKS refuses it: while nodes of nap
// exist, or NodePools may buy.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nodeautoprovisionings,singular=nodeautoprovisioning,scope=Cluster,categories={nap},shortName={napmode}
// +kubebuilder:printcolumn:name="Mode",type="string",JSONPath=".spec.mode"
// +kubebuilder:printcolumn:name="Provisioning",type="string",JSONPath=".status.conditions[?(@.type=='Provisioning')].status"
// +kubebuilder:printcolumn:name="Nodes",type="integer",JSONPath=".status.nodes"
// +kubebuilder:printcolumn:name="NodePools",type="integer",JSONPath=".status.nodePools"
// +kubebuilder:printcolumn:name="Defaults",type="string",JSONPath=".spec.defaultNodePools"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Blocking",type="string",JSONPath=".status.disableBlockedBy",priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="a cluster has one NodeAutoProvisioning, which is called default"
// +kubebuilder:validation:XValidation:rule="self.spec.mode != 'Manual' || oldSelf.spec.mode == 'Manual' || !has(self.status) || !has(self.status.disableBlockedBy) || size(self.status.disableBlockedBy) == 0",reason=FieldValueForbidden,fieldPath=".spec.mode",messageExpression="'mode Manual would leave machines behind: ' + self.status.disableBlockedBy + '; nap disable removes them step by step'"
type NodeAutoProvisioning struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec   NodeAutoProvisioningSpec   `json:"spec,omitempty"`
	Status NodeAutoProvisioningStatus `json:"status,omitempty"`
}

// NodeAutoProvisioningSpec is what the cluster's administrator wants.
type NodeAutoProvisioningSpec struct {
	// Mode is Auto, or Manual: nap buys nothing and removes nothing voluntarily.
	//
	// +kubebuilder:default=Auto
	Mode Mode `json:"mode,omitempty"`
	// DefaultNodePools is Auto, and nap makes the NodePools default and system-surge once,
	// each with its AKSNodeClass, or None. They are the user's from then on: what is changed
	// stays, and what is deleted is not made again.
	//
	// +kubebuilder:default=Auto
	DefaultNodePools DefaultNodePools `json:"defaultNodePools,omitempty"`
}

// NodeAutoProvisioningStatus is kept by the controller.
type NodeAutoProvisioningStatus struct {
	// Nodes is how many NodeClaims there are: nodes of nap and machines under way.
	//
	// +optional
	Nodes int32 `json:"nodes"`
	// NodePools is how many NodePools there are.
	//
	// +optional
	NodePools int32 `json:"nodePools"`
	// DisableBlockedBy names the nodes and NodePools for which mode Manual is refused, the
	// first of each; empty when nothing blocks it.
	//
	// +kubebuilder:validation:MaxLength=2000
	DisableBlockedBy string `json:"disableBlockedBy,omitempty"`
	// DefaultsMade are the default objects that have been there once, by kind and name, such
	// as NodePool/default. They are not made again.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	DefaultsMade []string `json:"defaultsMade,omitempty"`
	// UnmetPrerequisites are the checks of docs/prerequisites.md that were not met when the
	// controller looked last, by name, such as outbound-path. The condition Prerequisites
	// says more, and nap doctor says it all.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	UnmetPrerequisites []string `json:"unmetPrerequisites,omitempty"`
	// Outbound is how machines reach the internet, and whether that has changed.
	//
	// +optional
	Outbound *Outbound `json:"outbound,omitempty"`
	// ObservedGeneration is the generation of the spec that the controller acts on.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Provisioning, Prerequisites, BootstrapToken, DisableBlocked and
	// DefaultNodePools.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Outbound is what the controller has noted of the cluster's outbound type.
type Outbound struct {
	// Type is networkProfile.outboundType of the managed cluster, such as loadBalancer.
	Type string `json:"type"`
	// Before is what it was before it changed. It is empty when no machine is left that was
	// made before.
	Before string `json:"before,omitempty"`
	// Changed is when that was noticed. It is empty when no machine is left that was made
	// before.
	//
	// +optional
	Changed *metav1.Time `json:"changed,omitempty"`
}

// NodeAutoProvisioningList lists the one.
//
// +kubebuilder:object:root=true
type NodeAutoProvisioningList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeAutoProvisioning `json:"items"`
}
