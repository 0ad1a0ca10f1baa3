package disruption

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// testCatalogs sells machines of 2, 4, 8 and 16 cores, dearer by the core.
type testCatalogs struct{}

func (testCatalogs) Catalog(context.Context, string) (*fleet.Catalog, error) {
	c := &fleet.Catalog{Axes: model.NewAxes()}
	for cores := int64(2); cores <= 16; cores *= 2 {
		c.InstanceTypes = append(c.InstanceTypes, model.InstanceType{
			Name:     fmt.Sprintf("D%d", cores),
			Labels:   map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"},
			Capacity: model.Resources{cores * 1000, cores * 4 << 30, 128e9, 110},
			Overhead: model.Resources{100, 1 << 30, 10e9, 0},
			Offerings: []model.Offering{
				{Zone: "eastus-1", CapacityType: model.OnDemand, Price: model.USD(0.05 * float64(cores)), Available: true},
			},
		})
	}
	return c, nil
}

func nodePool(change ...func(*karpv1.NodePool)) *karpv1.NodePool {
	np := &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "pool", Generation: 1},
		Spec: karpv1.NodePoolSpec{
			Disruption: karpv1.Disruption{
				ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: karpv1.MustParseNillableDuration("0s"),
				Budgets: []karpv1.Budget{{Nodes: "100%"}},
			},
			Template: karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{
				NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"},
				Requirements: []karpv1.NodeSelectorRequirementWithMinValues{{
					Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"},
				}},
			}},
		},
	}
	np.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
	np.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
	for _, c := range change {
		c(np)
	}
	return np
}

func nodeOf(claim, size string) *corev1.Node {
	var cores int64
	_, _ = fmt.Sscanf(size, "D%d", &cores)
	room := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cores*1000-100, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(cores*4<<30-1<<30, resource.BinarySI),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + claim, UID: types.UID("node-" + claim), Labels: map[string]string{
			karpv1.NodePoolLabelKey: "general", karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true",
			corev1.LabelInstanceTypeStable: size, corev1.LabelTopologyZone: "eastus-1", karpv1.CapacityTypeLabelKey: "on-demand",
			corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelHostname: "node-" + claim,
		}},
		Spec: corev1.NodeSpec{ProviderID: "azure:///" + claim},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// machine is a claim with its node.
func machine(name, size string) []client.Object {
	c := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Finalizers: []string{karpv1.TerminationFinalizer}, Labels: map[string]string{
				karpv1.NodePoolLabelKey: "general", karpv1.CapacityTypeLabelKey: "on-demand",
			}},
		Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}},
	}
	c.Status.NodeName, c.Status.ProviderID = "node-"+name, "azure:///"+name
	c.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
	return []client.Object{c, nodeOf(name, size)}
}

// running are n pods of so many cores on a machine.
func running(n int, app, cpu, on string) []client.Object {
	var out []client.Object
	for i := range n {
		name := fmt.Sprintf("%s-%s-%d", app, on, i)
		out = append(out, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": app},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: types.UID(app), Controller: new(bool),
				}}},
			Spec: corev1.PodSpec{NodeName: "node-" + on, Containers: []corev1.Container{{
				Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("256Mi"),
				}},
			}}},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	return out
}

func all(lists ...[]client.Object) []client.Object {
	return slices.Concat(append([][]client.Object{{nodePool()}}, lists...)...)
}
