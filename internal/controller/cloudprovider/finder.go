package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/bootstrap/inputs"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass"
	"github.com/nodeautoprovision/nap/internal/kube/serverversion"
	"k8s.io/client-go/discovery"
)

// ClassFinder answers what AKSNodeClasses mean in this cluster: versions, images,
// subnets, and whether the spec can be had. It is safe for concurrent use.
type ClassFinder struct {
	azure    *azure.Provider
	server   discovery.ServerVersionInterface
	windows  *windows
	recorder *laterRecorder
	dns      localDNS
	// encryption is what Azure last said of encryption at host.
	encryption hostEncryption

	mu sync.Mutex
	// version is what the control plane last answered.
	version serverVersion
}

var _ nodeclass.Finder = (*ClassFinder)(nil)

// reasonDiskSetNotFound is for a disk encryption set that is not there.
const reasonDiskSetNotFound = "DiskEncryptionSetNotFound"

// reasonUnsupported is for settings that the machines could not have.
const reasonUnsupported = "Unsupported"

// serverVersion is the control plane's version, empty before the first answer, and
// when it was asked for.
type serverVersion struct {
	version string
	asked   time.Time
}

// LookAgain is how often classes are looked at for something newer.
func (f *ClassFinder) LookAgain() time.Duration { return config.UpgradesBelieved(f.azure.Config()) }

// KubernetesVersion is the control plane's version, without its build suffix. A
// class never goes back: during an upgrade the servers behind one address answer
// differently. It goes on to a newer version in the maintenance window for Kubernetes
// alone, so that old and new machines are alike until then.
func (f *ClassFinder) KubernetesVersion(ctx context.Context, class *v1beta1.AKSNodeClass) (string, error) {
	now, err := f.controlPlane()
	if err != nil {
		return "", err
	}
	old := or(class.Status.KubernetesVersion, "")
	switch {
	case old == "" || old == now:
		return now, nil
	case older(now, old), !tooOld(old, now) && !f.windows.mayUpgrade(ctx, class):
		return old, nil
	}
	return now, nil
}

// mostMinorsBehind is by how many minor versions a kubelet may be older than its API server
// (kubernetes.io/releases/version-skew-policy).
const mostMinorsBehind = 3

// tooOld reports whether a node of a version is not supported by a control plane of another.
func tooOld(node, controlPlane string) bool {
	n, c := numbers(node), numbers(controlPlane)
	if len(n) < 2 || len(c) < 2 {
		return false
	}
	return n[0] < c[0] || n[0] == c[0] && c[1]-n[1] > mostMinorsBehind
}

func (f *ClassFinder) controlPlane() (string, error) {
	f.mu.Lock()
	known := f.version
	f.mu.Unlock()
	if known.version != "" && time.Since(known.asked) < config.UpgradesBelieved(f.azure.Config()) {
		return known.version, nil
	}
	info, err := f.server.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("read the API server's version: %w", err)
	}
	version := serverversion.Of(info)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version = serverVersion{version, time.Now()}
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
func (f *ClassFinder) Images(ctx context.Context, class *v1beta1.AKSNodeClass) ([]v1beta1.NodeImage, error) {
	version := or(class.Status.KubernetesVersion, "")
	if version == "" {
		return nil, errors.New("the Kubernetes version is not known yet")
	}
	value := ClassValue(class)
	images, err := f.azure.ResolveImages(ctx, &value, version)
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
	return f.settledImages(ctx, class, version, out)
}

// Subnet checks the subnet of the class.
func (f *ClassFinder) Subnet(ctx context.Context, class *v1beta1.AKSNodeClass) error {
	value := ClassValue(class)
	err := f.azure.ValidateSubnet(ctx, &value)
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
func (f *ClassFinder) Validate(ctx context.Context, class *v1beta1.AKSNodeClass) error {
	if err := beyondAKS(&class.Spec); err != nil {
		return &nodeclass.Failure{Reason: reasonUnsupported, Message: err.Error()}
	}
	value := ClassValue(class)
	if err := errors.Join(f.azure.ValidateTags(&value), gcThresholds(class.Spec.Kubelet)); err != nil {
		return &nodeclass.Failure{Reason: reasonUnsupported, Message: err.Error()}
	}
	value.KubernetesVersion = or(class.Status.KubernetesVersion, "")
	if c := f.azure.Config(); !c.StartsAKSMachines() {
		if err := inputs.Check(c, &value); err != nil {
			return &nodeclass.Failure{Reason: reasonUnsupported, Message: strings.ReplaceAll(err.Error(), "\n", "; ")}
		}
	}
	if failure := f.encryption.failure(class); failure != nil {
		return failure
	}
	err := f.azure.ValidateDiskEncryption(ctx)
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
	return fmt.Errorf("spec.kubelet.imageGCHighThresholdPercent %d is not greater than imageGCLowThresholdPercent %d; "+
		"set both: what is not set is %d and %d", high, low, usualHigh, usualLow)
}
