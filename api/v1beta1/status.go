package v1beta1

import (
	"fmt"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions of an AKSNodeClass. Ready is true when all of them are.
const (
	ConditionKubernetesVersionReady = "KubernetesVersionReady"
	ConditionImagesReady            = "ImagesReady"
	ConditionSubnetsReady           = "SubnetsReady"
	ConditionValidationSucceeded    = "ValidationSucceeded"
	ConditionLocalDNSReady          = "LocalDNSReady"
)

// ConditionBooted is False on a NodeClaim whose machine has said why it does not become
// a node.
const ConditionBooted = "Booted"

// ConditionAzureAvailable says whether Azure answers, so that machines can be
// launched. Ready does not depend on it: what waits goes on once it does.
const ConditionAzureAvailable = "AzureAvailable"

// ConditionLaunchesAllowed says whether the cluster lets nap buy: it does not while
// AKS provisions nodes itself, or while the cluster is stopped. Ready does not depend
// on it.
const ConditionLaunchesAllowed = "LaunchesAllowed"

// ConditionBootstrapTokenReady says whether there is a token with which new machines
// can join. Ready does not depend on it.
const ConditionBootstrapTokenReady = "BootstrapTokenReady"

// ConditionNodeRegistrationHealthy is False while machines of the class do not register
// as nodes, so that little or nothing is bought with it. Ready does not depend on it.
// NodePools have a condition of the same name.
const ConditionNodeRegistrationHealthy = "NodeRegistrationHealthy"

// The reasons of conditions that are not true.
const (
	ReasonBootstrapTokenMissing        = "BootstrapTokenMissing"
	ReasonBootstrapTokenExpiring       = "BootstrapTokenExpiring"
	ReasonBootFailed                   = "BootFailed"
	ReasonAzureUnavailable             = "AzureUnavailable"
	ReasonSIGRequiredForFIPS           = "SIGRequiredForFIPS"
	ReasonDiskEncryptionSetRBACMissing = "DiskEncryptionSetRBACMissing"
	ReasonImagesNotFound               = "ImagesNotFound"
	ReasonKubernetesUpgrade            = "KubernetesUpgrade"
	ReasonSubnetNotFound               = "SubnetNotFound"
	ReasonSubnetIDInvalid              = "SubnetIDInvalid"
	ReasonSubnetUnknownError           = "SubnetUnknownError"
	ReasonSubnetFull                   = "SubnetFull"
)

// LocalDNSState says what LocalDNS has come to.
type LocalDNSState string

// The states of LocalDNS.
const (
	LocalDNSStateEnabled  LocalDNSState = "Enabled"
	LocalDNSStateDisabled LocalDNSState = "Disabled"
)

// NodeImage is an image that new machines may run.
type NodeImage struct {
	// id of the image version in its gallery.
	ID string `json:"id"`
	// requirements that a machine must meet to run the image: architecture and
	// hypervisor generation.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// AKSNodeClassStatus is what nap has found out about the class.
type AKSNodeClassStatus struct {
	// images in order of preference: the first one whose requirements a machine
	// meets is used.
	// +optional
	Images []NodeImage `json:"images,omitempty"`
	// kubernetesVersion of new machines.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty"`
	// localDNSState says whether new machines run a DNS cache.
	// +kubebuilder:validation:Enum={Enabled,Disabled}
	// +optional
	LocalDNSState *LocalDNSState `json:"localDNSState,omitempty"`
	// conditions say whether the class can be used, and if not, why.
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// StatusConditions gives access to the conditions; Ready follows from the others.
func (c *AKSNodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(
		ConditionKubernetesVersionReady,
		ConditionImagesReady,
		ConditionSubnetsReady,
		ConditionValidationSucceeded,
		ConditionLocalDNSReady,
	).For(c, opts...)
}

// GetConditions returns the stored conditions.
func (c *AKSNodeClass) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions replaces the stored conditions.
func (c *AKSNodeClass) SetConditions(conditions []status.Condition) { c.Status.Conditions = conditions }

// ManagesGPUs reports whether AKS, or the machine itself, brings what NVIDIA's GPUs need
// beside their driver.
func (c *AKSNodeClass) ManagesGPUs() bool {
	gpu := c.Spec.GPU
	return gpu != nil && gpu.Nvidia != nil && gpu.Nvidia.ManagementMode != nil && *gpu.Nvidia.ManagementMode == ManagementModeManaged
}

// KubernetesVersion returns the version of new machines, or an error while it is
// unknown or belongs to an older generation of the spec.
func (c *AKSNodeClass) KubernetesVersion() (string, error) {
	if err := c.current(ConditionKubernetesVersionReady); err != nil {
		return "", err
	}
	if c.Status.KubernetesVersion == nil || *c.Status.KubernetesVersion == "" {
		return "", fmt.Errorf("AKSNodeClass %q has no status.kubernetesVersion; it is written once the API server's version is known", c.Name)
	}
	return *c.Status.KubernetesVersion, nil
}

// Images returns the images of new machines in order of preference, or an error
// while they are unknown or belong to an older generation of the spec.
func (c *AKSNodeClass) Images() ([]NodeImage, error) {
	if err := c.current(ConditionImagesReady); err != nil {
		return nil, err
	}
	if len(c.Status.Images) == 0 {
		return nil, fmt.Errorf("AKSNodeClass %q has no status.images; look at its condition %s", c.Name, ConditionImagesReady)
	}
	return c.Status.Images, nil
}

// current reports why a condition does not speak for the present spec.
func (c *AKSNodeClass) current(conditionType string) error {
	for _, cond := range c.Status.Conditions {
		if cond.Type != conditionType {
			continue
		}
		if cond.Status != metav1.ConditionTrue {
			return fmt.Errorf("AKSNodeClass %q: condition %s is %s (%s): %s", c.Name, conditionType, cond.Status, cond.Reason, cond.Message)
		}
		if cond.ObservedGeneration != c.Generation {
			return fmt.Errorf("AKSNodeClass %q: condition %s is about generation %d, the spec is at %d; it will be checked again shortly",
				c.Name, conditionType, cond.ObservedGeneration, c.Generation)
		}
		return nil
	}
	return fmt.Errorf("AKSNodeClass %q has no condition %s yet", c.Name, conditionType)
}
