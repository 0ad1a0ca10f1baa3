package cloudprovider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/image"
)

// The reasons for which a machine is out of date, in the order in which they are
// looked for.
const (
	DriftNodeClass       karpcloud.DriftReason = "NodeClassDrift"
	DriftVersion         karpcloud.DriftReason = "K8sVersionDrift"
	DriftKubeletIdentity karpcloud.DriftReason = "KubeletIdentityDrift"
	DriftImage           karpcloud.DriftReason = "ImageDrift"
	DriftSSHKey          karpcloud.DriftReason = "SSHKeyDrift"
	DriftClusterConfig   karpcloud.DriftReason = "ClusterConfigDrift"
)

// drift answers whether machines are out of date. It has no state of its own.
type drift struct {
	kube    client.Reader
	azure   *azure.Provider
	classes classReader
	windows *windows
}

// reason says why a claim's machine is out of date, or "".
func (d drift) reason(ctx context.Context, claim *karpv1.NodeClaim) (karpcloud.DriftReason, error) {
	class, err := d.classes.peek(ctx, claim.Spec.NodeClassRef)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if hashDrifted(claim, class) {
		return DriftNodeClass, nil
	}
	node, err := d.node(ctx, claim)
	if err != nil {
		return "", err
	}
	upgrades := versionDiffers(node, class)
	if upgrades && d.windows.mayUpgrade(ctx, class) {
		return DriftVersion, nil
	}
	if d.identityDrifted(claim, node) {
		return DriftKubeletIdentity, nil
	}
	// The image of another Kubernetes version waits with the version.
	if !upgrades && imageDiffers(claim, class) && d.windows.mayReplaceImages(ctx, class) {
		return DriftImage, nil
	}
	if has := claim.Annotations[v1beta1.AnnotationSSHKeyHash]; has != "" && has != azure.SSHKeyHash(d.azure.Config()) &&
		d.windows.mayReplaceImages(ctx, class) {
		return DriftSSHKey, nil
	}
	if d.ofAKS(claim) {
		drifted, err := d.azure.ClusterDrifted(ctx, claim.Name)
		if err != nil {
			return "", err
		}
		if drifted {
			return DriftClusterConfig, nil
		}
	}
	return "", nil
}

// ofAKS reports whether a claim's machine is one that AKS has made.
func (d drift) ofAKS(claim *karpv1.NodeClaim) bool {
	_, is := azure.AKSMachineID(d.azure.Config(), claim.Status.ProviderID)
	return is
}

// versionDiffers reports whether a node's kubelet is of another version than those of new
// machines. While the class's status does not speak for its spec nothing can be said about
// versions and images, and nothing is replaced.
func versionDiffers(node *corev1.Node, class *v1beta1.AKSNodeClass) bool {
	version, err := class.KubernetesVersion()
	if err != nil || node == nil {
		return false
	}
	running := strings.TrimPrefix(node.Status.NodeInfo.KubeletVersion, "v")
	return running != "" && running != version
}

// imageDiffers reports whether new machines have another image than a claim's. Karpenter's Azure
// provider names the image of an AKS machine as AKS does, and not by its resource id.
func imageDiffers(claim *karpv1.NodeClaim, class *v1beta1.AKSNodeClass) bool {
	images, err := class.Images()
	if err != nil || claim.Status.ImageID == "" {
		return false
	}
	return !slices.ContainsFunc(images, func(i v1beta1.NodeImage) bool {
		return strings.EqualFold(i.ID, claim.Status.ImageID) || strings.EqualFold(image.NodeImageVersion(i.ID), claim.Status.ImageID)
	})
}

// identityDrifted compares the identity that a node was given with the present
// one. The identity of AKS machines is AKS's matter, and without one configured or
// on the node there is nothing to compare.
func (d drift) identityDrifted(claim *karpv1.NodeClaim, node *corev1.Node) bool {
	want := d.azure.Config().KubeletIdentityClientID
	if node == nil || want == "" || d.ofAKS(claim) {
		return false
	}
	has, labelled := node.Labels[v1beta1.LabelKubeletIdentity]
	return labelled && has != want
}

// hashDrifted compares fingerprints that were computed in the same way. While the class does
// not carry the hash of its spec yet, its claims may be about to be stamped, and have not drifted.
func hashDrifted(claim *karpv1.NodeClaim, class *v1beta1.AKSNodeClass) bool {
	was, is := claim.Annotations, class.Annotations
	if was[v1beta1.AnnotationHash] == "" || is[v1beta1.AnnotationHash] == "" ||
		was[v1beta1.AnnotationHashVersion] != is[v1beta1.AnnotationHashVersion] {
		return false
	}
	if now, err := class.Hash(); err != nil || now != is[v1beta1.AnnotationHash] {
		return false
	}
	return was[v1beta1.AnnotationHash] != is[v1beta1.AnnotationHash]
}

// node reads the claim's node, which must not be changed; nil while there is none.
func (d drift) node(ctx context.Context, claim *karpv1.NodeClaim) (*corev1.Node, error) {
	if claim.Status.NodeName == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := d.kube.Get(ctx, types.NamespacedName{Name: claim.Status.NodeName}, node, client.UnsafeDisableDeepCopy); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("read Node %s: %w", claim.Status.NodeName, err)
	}
	return node, nil
}
