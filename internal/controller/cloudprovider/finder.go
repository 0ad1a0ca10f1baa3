package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass"
)

var _ nodeclass.Finder = (*Port)(nil)

// versionFor is how long the control plane's version is believed.
const versionFor = 15 * time.Minute

// reasonDiskSetNotFound is for a disk encryption set that is not there.
const reasonDiskSetNotFound = "DiskEncryptionSetNotFound"

// reasonUnsupported is for settings that the machines could not have.
const reasonUnsupported = "Unsupported"

type serverVersion struct {
	version string
	asked   time.Time
}

// KubernetesVersion is the control plane's version, without its build suffix. A
// class never goes back: during an upgrade the servers behind one address answer
// differently.
func (p *Port) KubernetesVersion(_ context.Context, class *v1beta1.AKSNodeClass) (string, error) {
	now, err := p.controlPlane()
	if err != nil {
		return "", err
	}
	if old := or(class.Status.KubernetesVersion, ""); old != "" && older(now, old) {
		return old, nil
	}
	return now, nil
}

func (p *Port) controlPlane() (string, error) {
	p.mu.Lock()
	known := p.version
	p.mu.Unlock()
	if known.version != "" && time.Since(known.asked) < versionFor {
		return known.version, nil
	}
	info, err := p.server.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("read the API server's version: %w", err)
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(info.GitVersion, "v"), "-")
	version, _, _ = strings.Cut(version, "+")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = serverVersion{version, time.Now()}
	return version, nil
}

// older compares versions of the form 1.34.2 by number.
func older(a, b string) bool { return slices.Compare(numbers(a), numbers(b)) < 0 }

// numbers are the numeric parts of a version, as far as they are numbers.
func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

// Images are the node images of the class for the version in its status.
func (p *Port) Images(ctx context.Context, class *v1beta1.AKSNodeClass) ([]v1beta1.NodeImage, error) {
	version := or(class.Status.KubernetesVersion, "")
	if version == "" {
		return nil, errors.New("the Kubernetes version is not known yet")
	}
	value := ClassValue(class)
	images, err := p.azure.ResolveImages(ctx, &value, version)
	switch {
	case errors.Is(err, image.ErrFIPS):
		return nil, &nodeclass.Failure{Reason: v1beta1.ReasonSIGRequiredForFIPS, Message: err.Error()}
	case errors.Is(err, image.ErrNotFound):
		return nil, &nodeclass.Failure{Reason: v1beta1.ReasonImagesNotFound, Message: err.Error()}
	case err != nil:
		return nil, err
	}
	out := make([]v1beta1.NodeImage, len(images))
	for i := range images {
		out[i] = imageStatus(images[i])
	}
	return p.settledImages(ctx, class, out), nil
}

// Subnet checks the subnet of the class.
func (p *Port) Subnet(ctx context.Context, class *v1beta1.AKSNodeClass) error {
	value := ClassValue(class)
	err := p.azure.ValidateSubnet(ctx, &value)
	switch {
	case errors.Is(err, network.ErrSubnetFull):
		return &nodeclass.Failure{Reason: v1beta1.ReasonSubnetFull, Message: err.Error()}
	case errors.Is(err, network.ErrSubnetInvalid):
		return &nodeclass.Failure{Reason: v1beta1.ReasonSubnetIDInvalid, Message: err.Error()}
	case errors.Is(err, network.ErrSubnetNotFound):
		return &nodeclass.Failure{Reason: v1beta1.ReasonSubnetNotFound, Message: err.Error()}
	}
	return err
}

// Validate refuses what would be ignored otherwise.
func (p *Port) Validate(ctx context.Context, class *v1beta1.AKSNodeClass) error {
	if class.Spec.LinuxOSConfig != nil && !p.azure.Config().StartsAKSMachines() {
		return &nodeclass.Failure{Reason: reasonUnsupported, Message: "spec.linuxOSConfig needs machines of the AKS machine API; remove it, or run with PROVISION_MODE=aksmachineapi"}
	}
	if err := beyondAKS(&class.Spec); err != nil && p.azure.Config().StartsAKSMachines() {
		return &nodeclass.Failure{Reason: reasonUnsupported, Message: err.Error()}
	}
	value := ClassValue(class)
	if err := errors.Join(p.azure.ValidateTags(&value), gcThresholds(class.Spec.Kubelet)); err != nil {
		return &nodeclass.Failure{Reason: reasonUnsupported, Message: err.Error()}
	}
	err := p.azure.ValidateDiskEncryption(ctx)
	switch {
	case errors.Is(err, azure.ErrDiskSetForbidden):
		return &nodeclass.Failure{Reason: v1beta1.ReasonDiskEncryptionSetRBACMissing, Message: err.Error()}
	case errors.Is(err, azure.ErrDiskSetNotFound):
		return &nodeclass.Failure{Reason: reasonDiskSetNotFound, Message: err.Error()}
	}
	return err
}

// gcThresholds refuses a threshold of image garbage collection that contradicts the
// kubelet's own value of the other one: such a kubelet does not start.
func gcThresholds(k *v1beta1.KubeletConfiguration) error {
	const usualHigh, usualLow = 85, 80
	if k == nil {
		return nil
	}
	high, low := or(k.ImageGCHighThresholdPercent, usualHigh), or(k.ImageGCLowThresholdPercent, usualLow)
	if high > low {
		return nil
	}
	return fmt.Errorf("spec.kubelet.imageGCHighThresholdPercent %d is not greater than imageGCLowThresholdPercent %d; set both: what is not set is %d and %d", high, low, usualHigh, usualLow)
}
