package differential

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// wideNodes adds the traits of a cluster to its nodes and to what runs on them.
type wideNodes struct {
	rng
	has   traits
	rules *wideRules
	disks *wideDisks
	// objects has the nodes, and gets the pods of DaemonSets.
	objects *objectList
}

// widen changes nodes and what runs on them.
func (w *wideNodes) widen() {
	claims := map[string]*v1.NodeClaim{}
	for _, o := range w.objects.all {
		if c, ok := o.(*v1.NodeClaim); ok && c.Status.NodeName != "" {
			claims[c.Status.NodeName] = c
		}
	}
	for _, o := range w.objects.all {
		switch o := o.(type) {
		case *corev1.Node:
			if w.has["starting"] && claims[o.Name] != nil && w.maybe(0.5) {
				w.starting(o, claims[o.Name])
			}
			if w.has["taints"] && w.maybe(0.2) {
				o.Spec.Unschedulable = true
				o.Spec.Taints = append(o.Spec.Taints[:len(o.Spec.Taints):len(o.Spec.Taints)],
					corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
			}
			if w.has["disks"] && w.maybe(0.7) {
				w.disks.slots(o)
			}
			if w.has["daemons"] {
				w.present(o)
			}
		case *corev1.Pod:
			if o.Spec.NodeName != "" && o.Labels["app"] != "" {
				w.widenRunning(o)
			}
		}
	}
}

// starting is a node that has joined and is not initialized yet.
func (w *wideNodes) starting(n *corev1.Node, c *v1.NodeClaim) {
	delete(n.Labels, v1.NodeInitializedLabelKey)
	taints := []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	taints = append(taints, c.Spec.StartupTaints...)
	n.Spec.Taints = append(n.Spec.Taints[:len(n.Spec.Taints):len(n.Spec.Taints)], taints...)
	n.Status.Conditions[0].Status = corev1.ConditionFalse
	kept := c.Status.Conditions[:0:0]
	for _, cond := range c.Status.Conditions {
		if cond.Type != v1.ConditionTypeInitialized {
			kept = append(kept, cond)
		}
	}
	c.Status.Conditions = kept
	if w.maybe(0.5) {
		delete(n.Status.Allocatable, corev1.ResourceEphemeralStorage)
		delete(n.Status.Capacity, corev1.ResourceEphemeralStorage)
	}
}

// present puts pods of the DaemonSets on a node that has them already.
func (w *wideNodes) present(n *corev1.Node) {
	controller := true
	for _, o := range w.objects.all {
		ds, ok := o.(*appsv1.DaemonSet)
		if !ok || w.maybe(0.5) {
			continue
		}
		p := &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Name: ds.Name + "-" + n.Name, Namespace: ds.Namespace, Labels: ds.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "DaemonSet", Name: ds.Name, UID: ds.UID, Controller: &controller,
				}},
			},
			Spec: *ds.Spec.Template.Spec.DeepCopy(),
		}
		p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
		w.objects.add(p)
	}
}

func (w *wideNodes) widenRunning(p *corev1.Pod) {
	if w.has["namespaces"] && w.maybe(0.6) {
		p.Namespace = pick(w.rng, "east", "west")
		w.rules.lookAround(&p.Spec)
	}
	if w.has["revisions"] {
		revise(p, pick(w.rng, "v1", "v2"))
	}
	if w.has["ports"] && w.maybe(0.3) {
		hostPorts(w.rng, &p.Spec)
	}
	if w.has["containers"] && w.maybe(0.3) {
		moreContainers(w.rng, &p.Spec)
	}
	if w.has["topologies"] && w.maybe(0.3) {
		affinity(&p.Spec).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: w.rules.app(), TopologyKey: pick(w.rng, corev1.LabelTopologyZone, familyLabel, v1.CapacityTypeLabelKey),
		}}}
	}
	if w.has["starting"] && w.maybe(0.1) {
		p.Status.Phase = corev1.PodSucceeded
	}
	if w.has["disks"] && w.maybe(0.3) {
		w.disks.made(p, "disk-"+p.Name,
			[]corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpExists,
			}}}})
	}
}
