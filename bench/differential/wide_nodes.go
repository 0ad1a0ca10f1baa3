package differential

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// spaces makes the namespaces that pods live in.
func (w *wide) spaces() {
	for _, space := range [][2]string{{"default", ""}, {"east", "right"}, {"west", "left"}} {
		n := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: space[0]}}
		if space[1] != "" {
			n.Labels = map[string]string{"side": space[1]}
		}
		w.objects = append(w.objects, n)
	}
}

// disk gives a pod a disk: its own or one that the app shares, made or still to be
// made, here or there.
func (w *wide) disk(p *corev1.Pod, app, index, kind int) {
	name := fmt.Sprintf("data-%d", app)
	if kind < 4 {
		name += fmt.Sprintf("-%d", index)
	}
	zones := func(z ...string) []corev1.NodeSelectorTerm {
		var terms []corev1.NodeSelectorTerm
		for _, zone := range z {
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}})
		}
		return terms
	}
	switch kind {
	case 0:
		w.diskClaim(p, name, "anywhere", "")
	case 1:
		w.diskClaim(p, name, "in-zones", "")
	case 2:
		w.made(p, name, zones(fmt.Sprintf("zone-%d", 1+index%3)))
	case 3:
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: w.claimSpec("anywhere", "")},
		}}})
	case 4:
		if index == 0 {
			w.made(p, name, zones("zone-1", "zone-2"))
		} else {
			w.mount(p, name)
		}
	case 5:
		// Two disks of one's own.
		w.diskClaim(p, name+fmt.Sprintf("-a-%d", index), "anywhere", "")
		w.diskClaim(p, name+fmt.Sprintf("-b-%d", index), "in-zones", "")
	case 6:
		w.diskClaim(p, name+fmt.Sprintf("-%d", index), pick(w.drawer, "anywhere", "at-once", "missing"), "")
	}
}

func (w *wide) mount(p *corev1.Pod, claim string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
}

func (w *wide) claimSpec(class, volume string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		VolumeName: volume, StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
	}
}

// diskClaim asks for a disk of a class; with a volume, it has it.
func (w *wide) diskClaim(p *corev1.Pod, name, class, volume string) {
	c := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace},
		Spec:       w.claimSpec(class, volume),
	}
	if volume != "" {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		c.Status.Phase = corev1.ClaimBound
	}
	w.objects = append(w.objects, c)
	w.mount(p, name)
}

// made is a disk that exists, reachable by any of the terms.
func (w *wide) made(p *corev1.Pod, name string, terms []corev1.NodeSelectorTerm) {
	w.objects = append(w.objects, &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: "anywhere",
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: p.Namespace, Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: diskDriver, VolumeHandle: name}},
			NodeAffinity:           &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}},
		},
	})
	w.diskClaim(p, name, "anywhere", name)
}

func (w *wide) storageClasses() {
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	class := func(name string, mode *storagev1.VolumeBindingMode, terms ...corev1.TopologySelectorTerm) {
		w.objects = append(w.objects, &storagev1.StorageClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: diskDriver, VolumeBindingMode: mode, AllowedTopologies: terms,
		})
	}
	in := func(zones ...string) corev1.TopologySelectorTerm {
		return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: zones}}}
	}
	class("anywhere", &wait)
	class("at-once", &now)
	class("in-zones", &wait, pick(w.drawer, []corev1.TopologySelectorTerm{in("zone-1", "zone-2")}, []corev1.TopologySelectorTerm{in("zone-1"), in("zone-3")})...)
}

// widenDaemons lets DaemonSets take ports and choose their nodes.
func (w *wide) widenDaemons(has map[string]bool) {
	for _, o := range w.objects {
		ds, ok := o.(*appsv1.DaemonSet)
		if !ok || !has["daemons"] {
			continue
		}
		spec := &ds.Spec.Template.Spec
		switch w.IntN(5) {
		case 0:
			spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8000 + w.IntN(2)), Protocol: corev1.ProtocolTCP}}
		case 1:
			w.mustHave(spec, corev1.NodeSelectorRequirement{Key: cpuLabel, Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}})
		case 2:
			w.mustHave(spec, corev1.NodeSelectorRequirement{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"spot"}})
		case 3:
			w.mustHave(spec, corev1.NodeSelectorRequirement{Key: teamLabel, Operator: pick(w.drawer, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)})
		case 4:
			w.containers(spec)
			spec.Resources = nil
		}
	}
}

// widenNodes changes nodes and what runs on them.
func (w *wide) widenNodes(has map[string]bool) {
	claims := map[string]*v1.NodeClaim{}
	for _, o := range w.objects {
		if c, ok := o.(*v1.NodeClaim); ok && c.Status.NodeName != "" {
			claims[c.Status.NodeName] = c
		}
	}
	for _, o := range w.objects {
		switch o := o.(type) {
		case *corev1.Node:
			if has["starting"] && claims[o.Name] != nil && w.maybe(0.5) {
				w.starting(o, claims[o.Name])
			}
			if has["taints"] && w.maybe(0.2) {
				o.Spec.Unschedulable = true
				o.Spec.Taints = append(o.Spec.Taints[:len(o.Spec.Taints):len(o.Spec.Taints)], corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
			}
			if has["disks"] && w.maybe(0.7) {
				w.slots(o)
			}
			if has["daemons"] {
				w.present(o)
			}
		case *corev1.Pod:
			if o.Spec.NodeName != "" && o.Labels["app"] != "" {
				w.widenRunning(o, has)
			}
		}
	}
}

// starting is a node that has joined and is not initialized yet.
func (w *wide) starting(n *corev1.Node, c *v1.NodeClaim) {
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

// slots limits the disks of a node.
func (w *wide) slots(n *corev1.Node) {
	count := int32(1 + w.IntN(3))
	w.objects = append(w.objects, &storagev1.CSINode{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSINode"},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: diskDriver, NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &count}}}},
	})
}

// present puts pods of the DaemonSets on a node that has them already.
func (w *wide) present(n *corev1.Node) {
	controller := true
	for _, o := range w.objects {
		ds, ok := o.(*appsv1.DaemonSet)
		if !ok || w.maybe(0.5) {
			continue
		}
		p := &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Name: ds.Name + "-" + n.Name, Namespace: ds.Namespace, Labels: ds.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: ds.Name, UID: ds.UID, Controller: &controller}},
			},
			Spec: *ds.Spec.Template.Spec.DeepCopy(),
		}
		p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
		w.objects = append(w.objects, p)
	}
}

func (w *wide) widenRunning(p *corev1.Pod, has map[string]bool) {
	if has["namespaces"] && w.maybe(0.6) {
		p.Namespace = pick(w.drawer, "east", "west")
		w.lookAround(&p.Spec)
	}
	if has["revisions"] {
		w.revise(p, pick(w.drawer, "v1", "v2"))
	}
	if has["ports"] && w.maybe(0.3) {
		w.ports(&p.Spec)
	}
	if has["containers"] && w.maybe(0.3) {
		w.containers(&p.Spec)
	}
	if has["topologies"] && w.maybe(0.3) {
		affinity(&p.Spec).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: w.app(), TopologyKey: pick(w.drawer, corev1.LabelTopologyZone, familyLabel, v1.CapacityTypeLabelKey),
		}}}
	}
	if has["starting"] && w.maybe(0.1) {
		p.Status.Phase = corev1.PodSucceeded
	}
	if has["disks"] && w.maybe(0.3) {
		w.made(p, "disk-"+p.Name, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpExists}}}})
	}
}
