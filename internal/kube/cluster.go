package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
)

// listPage is how many objects one request asks for, so that a large cluster
// does not answer with one huge document.
const listPage = 500

// ListCluster reads every object of a live cluster that planning looks at, node
// classes included (unstructured). Kinds that the cluster does not know, because
// their CRDs are not installed, are named in missing, those that may not be listed in
// forbidden.
func ListCluster(ctx context.Context, config *rest.Config) (objects []client.Object, missing, forbidden []string, err error) {
	return listLive(ctx, config, plannedKinds())
}

// ListForDefaultSpread is ListCluster for what [DefaultSpread] looks at beside that and
// [ListForPodsToCome].
func ListForDefaultSpread(ctx context.Context, config *rest.Config) (objects []client.Object, missing, forbidden []string, err error) {
	return listLive(ctx, config, []plannedKind{
		{"Services", &corev1.ServiceList{}}, {"ReplicaSets", &appsv1.ReplicaSetList{}},
		{"ReplicationControllers", &corev1.ReplicationControllerList{}},
	})
}

// ListForPodsToCome is ListCluster for the StatefulSets, of which nodes may wait for the next pod
// for minutes, and for the ResourceQuotas, in which pods that do not exist yet have to fit. Other
// owners of pods create theirs within seconds.
func ListForPodsToCome(ctx context.Context, config *rest.Config) (objects []client.Object, missing, forbidden []string, err error) {
	return listLive(ctx, config, []plannedKind{
		{"StatefulSets", &appsv1.StatefulSetList{}}, {"ResourceQuotas", &corev1.ResourceQuotaList{}},
	})
}

func listLive(ctx context.Context, config *rest.Config, kinds []plannedKind) (
	objects []client.Object, missing, forbidden []string, err error) {
	known, err := ClusterScheme()
	if err != nil {
		return nil, nil, nil, err
	}
	c, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		return nil, nil, nil, err
	}
	return listKinds(kinds, func(list client.ObjectList) ([]client.Object, error) { return listAll(ctx, c, list) })
}

// ListCached is ListCluster for a reader that watches, which knows the kinds of
// [ClusterScheme]. The objects are the reader's own and must not be changed.
func ListCached(ctx context.Context, reader client.Reader) (objects []client.Object, missing []string, err error) {
	objects, missing, forbidden, err := listKinds(plannedKinds(), func(list client.ObjectList) ([]client.Object, error) {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		var out []client.Object
		err := meta.EachListItem(list, func(o runtime.Object) error {
			if object, ok := o.(client.Object); ok {
				out = append(out, object)
			}
			return nil
		})
		return out, err
	})
	if err == nil && len(forbidden) > 0 {
		err = fmt.Errorf("%w %s", ErrMayNotList, strings.Join(forbidden, ", "))
	}
	return objects, missing, err
}

// ClusterScheme knows the kinds that planning looks at.
func ClusterScheme() (*runtime.Scheme, error) {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return nil, err
	}
	karpenter := schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
	known.AddKnownTypes(karpenter, &v1.NodePool{}, &v1.NodePoolList{}, &v1.NodeClaim{}, &v1.NodeClaimList{})
	metav1.AddToGroupVersion(known, karpenter)
	alpha := schema.GroupVersion{Group: "karpenter.sh", Version: "v1alpha1"}
	known.AddKnownTypes(alpha, &v1alpha1.NodeOverlay{}, &v1alpha1.NodeOverlayList{})
	metav1.AddToGroupVersion(known, alpha)
	return known, nil
}

// plannedKind is a kind that planning looks at.
type plannedKind struct {
	name string
	list client.ObjectList
}

// plannedKinds are those that planning looks at.
func plannedKinds() []plannedKind {
	classes := &unstructured.UnstructuredList{}
	classes.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.azure.com", Version: "v1beta1", Kind: "AKSNodeClassList"})
	return []plannedKind{
		{"Pods", &corev1.PodList{}}, {"Nodes", &corev1.NodeList{}}, {"NodeClaims", &v1.NodeClaimList{}}, {"NodePools", &v1.NodePoolList{}},
		{"DaemonSets", &appsv1.DaemonSetList{}}, {"PersistentVolumeClaims", &corev1.PersistentVolumeClaimList{}},
		{"PersistentVolumes", &corev1.PersistentVolumeList{}}, {"StorageClasses", &storagev1.StorageClassList{}},
		{"CSINodes", &storagev1.CSINodeList{}}, {"VolumeAttachments", &storagev1.VolumeAttachmentList{}},
		{"Namespaces", &corev1.NamespaceList{}},
		{"PodDisruptionBudgets", &policyv1.PodDisruptionBudgetList{}}, {"LimitRanges", &corev1.LimitRangeList{}},
		{"RuntimeClasses", &nodev1.RuntimeClassList{}}, {"PriorityClasses", &schedulingv1.PriorityClassList{}},
		{"AKSNodeClasses", classes}, {"NodeOverlays", &v1alpha1.NodeOverlayList{}},
		{"DeviceClasses", &resourcev1.DeviceClassList{}}, {"ResourceClaims", &resourcev1.ResourceClaimList{}},
		{"ResourceClaimTemplates", &resourcev1.ResourceClaimTemplateList{}}, {"ResourceSlices", &resourcev1.ResourceSliceList{}},
	}
}

// listKinds lists kinds; the names of kinds that the cluster does not have, and those
// that may not be listed, are told.
func listKinds(of []plannedKind, list func(client.ObjectList) ([]client.Object, error)) (
	objects []client.Object, missing, forbidden []string, err error) {
	for _, l := range of {
		found, err := list(l.list)
		switch {
		case (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)) && optional(l.list):
			// Where the kind is not known, none has an effect.
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			missing = append(missing, l.name)
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, l.name)
		case err != nil:
			return nil, nil, nil, fmt.Errorf("list %s: %w", l.name, err)
		}
		objects = append(objects, found...)
	}
	return objects, missing, forbidden, nil
}

// optional reports whether a cluster need not have a kind.
func optional(list client.ObjectList) bool {
	switch list.(type) {
	case *v1alpha1.NodeOverlayList, *resourcev1.DeviceClassList, *resourcev1.ResourceClaimList, *resourcev1.ResourceClaimTemplateList,
		*resourcev1.ResourceSliceList:
		return true
	}
	return false
}

// ErrMayNotList is in the errors of [MayListCluster] and [ListCached] where permissions are missing.
var ErrMayNotList = errors.New("these credentials may not list")

// MayListCluster reports what of [ListCluster] these credentials may not list, in one
// sentence.
func MayListCluster(ctx context.Context, config *rest.Config) error {
	known, err := ClusterScheme()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		return err
	}
	_, _, forbidden, err := listKinds(plannedKinds(), func(list client.ObjectList) ([]client.Object, error) {
		return nil, c.List(ctx, list, client.Limit(1))
	})
	if err != nil {
		return fmt.Errorf("read the cluster at %s: %w", config.Host, err)
	}
	if len(forbidden) > 0 {
		return fmt.Errorf("read the cluster at %s: %w %s", config.Host, ErrMayNotList, strings.Join(forbidden, ", "))
	}
	return nil
}

func listAll(ctx context.Context, c client.Client, list client.ObjectList) ([]client.Object, error) {
	var out []client.Object
	for next := ""; ; {
		if err := c.List(ctx, list, client.Limit(listPage), client.Continue(next)); err != nil {
			return nil, err
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			if object, ok := o.DeepCopyObject().(client.Object); ok {
				out = append(out, object)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if next = list.GetContinue(); next == "" {
			return out, nil
		}
	}
}
