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
)

// The reasons for which a machine is out of date, in the order in which they are
// looked for.
const (
	DriftNodeClass       karpcloud.DriftReason = "NodeClassDrift"
	DriftVersion         karpcloud.DriftReason = "K8sVersionDrift"
	DriftKubeletIdentity karpcloud.DriftReason = "KubeletIdentityDrift"
	DriftImage           karpcloud.DriftReason = "ImageDrift"
	DriftClusterConfig   karpcloud.DriftReason = "ClusterConfigDrift"
)

// IsDrifted says why a claim's machine is out of date, or "". An old image counts
// within the maintenance window alone.
func (p *Port) IsDrifted(ctx context.Context, claim *karpv1.NodeClaim) (karpcloud.DriftReason, error) {
	class, err := p.nodeClass(ctx, claim.Spec.NodeClassRef)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if hashDrifted(claim, class) {
		return DriftNodeClass, nil
	}
	node, err := p.node(ctx, claim)
	if err != nil {
		return "", err
	}
	// While the status does not speak for the spec nothing can be said about
	// versions and images, and nothing is replaced.
	if version, err := class.KubernetesVersion(); err == nil && node != nil {
		if running := strings.TrimPrefix(node.Status.NodeInfo.KubeletVersion, "v"); running != "" && running != version {
			return DriftVersion, nil
		}
	}
	if p.identityDrifted(claim, node) {
		return DriftKubeletIdentity, nil
	}
	if images, err := class.Images(); err == nil && claim.Status.ImageID != "" {
		current := func(i v1beta1.NodeImage) bool { return strings.EqualFold(i.ID, claim.Status.ImageID) }
		if !slices.ContainsFunc(images, current) && p.mayReplaceImages(ctx, class) {
			return DriftImage, nil
		}
	}
	if p.azure.IsAKSMachine(claim.Status.ProviderID) {
		drifted, err := p.azure.ClusterDrifted(ctx, claim.Name)
		if err != nil {
			return "", err
		}
		if drifted {
			return DriftClusterConfig, nil
		}
	}
	return "", nil
}

// identityDrifted compares the identity that a node was given with the present
// one. The identity of AKS machines is AKS's matter, and without one configured or
// on the node there is nothing to compare.
func (p *Port) identityDrifted(claim *karpv1.NodeClaim, node *corev1.Node) bool {
	want := p.azure.Config().KubeletIdentityClientID
	if node == nil || want == "" || p.azure.IsAKSMachine(claim.Status.ProviderID) {
		return false
	}
	has, labelled := node.Labels[v1beta1.LabelKubeletIdentity]
	return labelled && has != want
}

// hashDrifted compares fingerprints that were computed in the same way.
func hashDrifted(claim *karpv1.NodeClaim, class *v1beta1.AKSNodeClass) bool {
	was, is := claim.Annotations, class.Annotations
	if was[v1beta1.AnnotationHash] == "" || is[v1beta1.AnnotationHash] == "" ||
		was[v1beta1.AnnotationHashVersion] != is[v1beta1.AnnotationHashVersion] {
		return false
	}
	return was[v1beta1.AnnotationHash] != is[v1beta1.AnnotationHash]
}

// node reads the claim's node; nil while there is none.
func (p *Port) node(ctx context.Context, claim *karpv1.NodeClaim) (*corev1.Node, error) {
	if claim.Status.NodeName == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := p.kube.Get(ctx, types.NamespacedName{Name: claim.Status.NodeName}, node); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("read Node %s: %w", claim.Status.NodeName, err)
	}
	return node, nil
}
