package differential

import (
	"fmt"
	"maps"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// drawNodes draws nodes that exist, with pods on them, and machines that are on
// their way. Some nodes belong to no NodePool.
func (d *drawer) drawNodes() {
	for i := range d.scale * pick(d.rng, 0, 0, 1, 2, 4) {
		t := pick(d.rng, d.catalog.InstanceTypes...)
		if len(t.Offerings) == 0 {
			continue
		}
		o := pick(d.rng, t.Offerings...)
		pool := pick(d.rng, d.pools...)
		labels := maps.Clone(t.Labels)
		labels[corev1.LabelInstanceTypeStable] = t.Name
		labels[corev1.LabelTopologyZone] = o.Zone
		labels[v1.CapacityTypeLabelKey] = o.CapacityType
		if d.maybe(0.2) {
			d.node(fmt.Sprintf("node-%d", i), &t, labels, nil)
			continue
		}
		labels[v1.NodePoolLabelKey] = pool.Name
		maps.Copy(labels, pool.Spec.Template.Labels)
		claim := d.claim(fmt.Sprintf("claim-%d", i), &t, labels, pool)
		d.objects.add(claim)
		if d.maybe(0.75) {
			claim.Status.NodeName = fmt.Sprintf("node-%d", i)
			d.node(claim.Status.NodeName, &t, labels, claim)
		}
	}
}

func (d *drawer) claim(name string, t *kube.FileInstanceType, labels map[string]string, pool *v1.NodePool) *v1.NodeClaim {
	c := &v1.NodeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)},
	}
	c.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
	c.Spec.Taints = pool.Spec.Template.Spec.Taints
	c.Spec.StartupTaints = pool.Spec.Template.Spec.StartupTaints
	c.Status.ProviderID = "test:///" + name
	c.Status.Capacity, c.Status.Allocatable = room(t)
	c.Status.Conditions = []status.Condition{{Type: v1.ConditionTypeLaunched, Status: metav1.ConditionTrue, Reason: "Launched"}}
	return c
}

// room is the capacity and the allocatable part of a size.
func room(t *kube.FileInstanceType) (capacity, allocatable corev1.ResourceList) {
	capacity, allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for name, text := range t.Capacity {
		q := resource.MustParse(text)
		capacity[corev1.ResourceName(name)] = q.DeepCopy()
		if kept, ok := t.Overhead[name]; ok {
			q.Sub(resource.MustParse(kept))
		}
		allocatable[corev1.ResourceName(name)] = q
	}
	return capacity, allocatable
}

// node is a node that is up, with some pods of the apps that also wait.
func (d *drawer) node(name string, t *kube.FileInstanceType, labels map[string]string, claim *v1.NodeClaim) {
	n := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)},
	}
	n.Labels[corev1.LabelHostname] = name
	n.Spec.ProviderID = "test:///" + name
	n.Status.Capacity, n.Status.Allocatable = room(t)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if claim != nil {
		n.Spec.ProviderID = claim.Status.ProviderID
		n.Spec.Taints = claim.Spec.Taints
		n.Labels[v1.NodeRegisteredLabelKey] = "true"
		n.Labels[v1.NodeInitializedLabelKey] = "true"
		for _, c := range []string{v1.ConditionTypeRegistered, v1.ConditionTypeInitialized} {
			claim.Status.Conditions = append(claim.Status.Conditions, status.Condition{Type: c, Status: metav1.ConditionTrue, Reason: c})
		}
	}
	d.objects.add(n)
	for i := range d.IntN(4) {
		p := &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", name, i), Namespace: "default", Labels: map[string]string{"app": fmt.Sprintf("app-%d", d.IntN(4))},
			},
			Spec: podSpec(pick(d.rng, 100, 250, 400), pick(d.rng, 128, 256)),
		}
		p.Spec.NodeName, p.Status.Phase = name, corev1.PodRunning
		if d.maybe(0.1) {
			affinity(&p.Spec).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", d.IntN(4))}},
				TopologyKey:   corev1.LabelHostname,
			}}}
		}
		d.objects.add(p)
	}
}
