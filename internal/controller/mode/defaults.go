package mode

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// defaults are the default NodePools and their AKSNodeClasses. Their source is AKS's page
// on node pools of node auto-provisioning, and the examples of its Karpenter provider.
//
//go:embed defaults.yaml
var defaults string

// dataplaneCilium is the network dataplane of which nodes carry a taint until its program
// on the node is ready.
const dataplaneCilium = "cilium"

// Defaults are the default objects, classes first, in a cluster with this network
// dataplane. Every call returns new objects.
func Defaults(dataplane string) ([]client.Object, error) {
	var out []client.Object
	for doc := range strings.SplitSeq(defaults, "\n---\n") {
		var object client.Object = &v1beta1.AKSNodeClass{}
		pool := &karpv1.NodePool{}
		if strings.Contains(doc, "kind: NodePool") {
			object = pool
		}
		if err := yaml.UnmarshalStrict([]byte(doc), object); err != nil {
			return nil, fmt.Errorf("reading the default objects: %w", err)
		}
		object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "nap"})
		if dataplane == dataplaneCilium && object == client.Object(pool) {
			pool.Spec.Template.Spec.StartupTaints = []corev1.Taint{
				{Key: "node.cilium.io/agent-not-ready", Value: "true", Effect: corev1.TaintEffectNoExecute},
			}
		}
		out = append(out, object)
	}
	return out, nil
}

// wanted says whether default objects are made in a cluster that has no
// NodeAutoProvisioning yet: where a setting says nothing, they are unless there are
// NodePools.
func (k *Keeper) wanted(ctx context.Context) (v1alpha1.DefaultNodePools, error) {
	if k.DefaultNodePools != "" {
		return k.DefaultNodePools, nil
	}
	var pools karpv1.NodePoolList
	if err := k.Kube.List(ctx, &pools); err != nil {
		return "", fmt.Errorf("listing NodePools: %w", err)
	}
	if len(pools.Items) > 0 {
		return v1alpha1.DefaultNodePoolsNone, nil
	}
	return v1alpha1.DefaultNodePoolsAuto, nil
}

// makeDefaults makes the default objects that have never been there, and says how that
// went. What exists under the name of one is the user's, and counts as made.
func (k *Keeper) makeDefaults(ctx context.Context, object *v1alpha1.NodeAutoProvisioning) error {
	c := metav1.Condition{
		Type: v1alpha1.ConditionDefaultNodePools, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDefaultsMade,
		Message: "The NodePools default and system-surge have been made; they are yours to change and to delete",
	}
	if object.Spec.DefaultNodePools == v1alpha1.DefaultNodePoolsNone {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonDefaultsNone, "spec.defaultNodePools is None: none are made"
		k.write(object, c)
		return nil
	}
	if k.defaults == nil {
		all, err := Defaults(k.Dataplane)
		if err != nil {
			return err
		}
		k.defaults = all
	}
	for _, o := range k.defaults {
		name := o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetName()
		if slices.Contains(object.Status.DefaultsMade, name) {
			continue
		}
		made, _ := o.DeepCopyObject().(client.Object) // what is an Object stays one
		if err := k.Kube.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
			c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonDefaultsFailed
			c.Message = fmt.Sprintf("%s could not be made, trying again: %v", name, err)
			break
		}
		object.Status.DefaultsMade = append(object.Status.DefaultsMade, name)
	}
	k.write(object, c)
	return nil
}
