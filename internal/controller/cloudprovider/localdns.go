package cloudprovider

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/controller/event"
)

// localDNSFrom is the Kubernetes version from which mode Preferred may mean
// enabled. AKS has not named one yet: this one stands for it, and comes after all
// that there are.
const localDNSFrom = "1.99.0"

// LocalDNS decides whether machines run a DNS cache. Mode Preferred leaves it to what
// the cluster has: what could break by a cache is not given one, and what has one keeps
// it.
func (f *ClassFinder) LocalDNS(ctx context.Context, class *v1beta1.AKSNodeClass) (v1beta1.LocalDNSState, error) {
	mode := v1beta1.LocalDNSModeDisabled
	if class.Spec.LocalDNS != nil {
		mode = class.Spec.LocalDNS.Mode
	}
	switch {
	case mode == v1beta1.LocalDNSModeRequired:
		return v1beta1.LocalDNSStateEnabled, nil
	case mode != v1beta1.LocalDNSModePreferred:
		return v1beta1.LocalDNSStateDisabled, nil
	case or(class.Status.LocalDNSState, v1beta1.LocalDNSStateDisabled) == v1beta1.LocalDNSStateEnabled:
		// Nodes with and without a cache side by side do not help.
		return v1beta1.LocalDNSStateEnabled, nil
	}
	obstacle, err := f.dns.obstacle(ctx, class)
	if apierrors.IsForbidden(err) {
		f.recorder.Publish(event.LocalDNSUnknown(class, err))
		return v1beta1.LocalDNSStateDisabled, nil
	}
	if err != nil {
		return "", err
	}
	if obstacle {
		return v1beta1.LocalDNSStateDisabled, nil
	}
	return v1beta1.LocalDNSStateEnabled, nil
}

// localDNS knows what in a cluster is in the way of a DNS cache. It has no state of
// its own.
type localDNS struct {
	azure *azure.Provider
	// direct reads past any cache.
	direct client.Reader
}

// obstacle reports whether something speaks against a DNS cache on every
// node: an old Kubernetes, a network that is not AKS's, an image that has none,
// network policies that would not let its traffic pass, or another such cache.
func (d localDNS) obstacle(ctx context.Context, class *v1beta1.AKSNodeClass) (bool, error) {
	c, version := d.azure.Config(), or(class.Status.KubernetesVersion, "")
	if older(version, localDNSFrom) || c.NetworkPlugin == config.PluginNone {
		return true, nil
	}
	value := ClassValue(class)
	release, err := image.ReleaseFor(&value, version)
	if err != nil || release.Name == image.Ubuntu2004 {
		return true, nil //nolint:nilerr // ImagesReady says what is wrong with the images
	}
	if policed, err := d.policed(ctx, c.NetworkPolicy); policed || err != nil {
		return policed, err
	}
	err = d.direct.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "node-local-dns"}, &appsv1.DaemonSet{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read DaemonSet kube-system/node-local-dns: %w", err)
	}
	return true, nil
}

// policed reports whether there are network policies that the engine enforces,
// apart from the one that AKS makes itself.
func (d localDNS) policed(ctx context.Context, engine string) (bool, error) {
	kinds := policyKinds()[engine]
	if kinds == nil {
		return false, nil
	}
	const two = 2 // one of them may be AKS's
	var policies networkingv1.NetworkPolicyList
	if err := d.direct.List(ctx, &policies, client.Limit(two)); err != nil {
		return false, fmt.Errorf("list NetworkPolicies: %w", err)
	}
	for i := range policies.Items {
		if policies.Items[i].Namespace != metav1.NamespaceSystem || policies.Items[i].Name != "konnectivity-agent" {
			return true, nil
		}
	}
	for _, kind := range kinds {
		var found metav1.PartialObjectMetadataList
		found.SetGroupVersionKind(kind)
		err := d.direct.List(ctx, &found, client.Limit(1))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // the cluster does not know the kind
		}
		if err != nil {
			return false, fmt.Errorf("list %s of group %s: %w", kind.Kind, kind.Group, err)
		}
		if len(found.Items) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// policyKinds are the kinds of policies of their own that engines have.
func policyKinds() map[string][]schema.GroupVersionKind {
	cilium := schema.GroupVersion{Group: "cilium.io", Version: "v2"}
	calico := schema.GroupVersion{Group: "crd.projectcalico.org", Version: "v1"}
	return map[string][]schema.GroupVersionKind{
		"cilium": {cilium.WithKind("CiliumNetworkPolicyList"), cilium.WithKind("CiliumClusterwideNetworkPolicyList")},
		"calico": {calico.WithKind("NetworkPolicyList"), calico.WithKind("GlobalNetworkPolicyList")},
	}
}
