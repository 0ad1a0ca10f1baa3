package differential

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// drawApps draws pods that wait, some alike ones at a time.
func (d *drawer) drawApps() {
	apps := d.scale * (1 + d.IntN(7))
	for i := range apps {
		labels := map[string]string{"app": fmt.Sprintf("app-%d", i)}
		milliCPU := pick(d, 100, 250, 500, 1000, 1500, 3000, 6000)
		spec := podSpec(milliCPU, int(float64(milliCPU)*pick(d, 0.5, 1, 2, 4, 8)))
		d.placeByNode(&spec)
		d.placeByPods(&spec, labels, apps)
		if d.maybe(0.08) {
			spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8000 + d.IntN(2)), Protocol: corev1.ProtocolTCP}}
		}
		if d.maybe(0.06) {
			d.volume(&spec, i)
		}
		for j := range pick(d, 1, 2, 3, 5, 8, 12) {
			d.objects = append(d.objects, &corev1.Pod{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%d-%02d", i, j), Namespace: "default", Labels: labels},
				Spec:       *spec.DeepCopy(),
			})
		}
	}
}

// placeByNode draws what a pod wants of its node.
func (d *drawer) placeByNode(spec *corev1.PodSpec) {
	selector := map[string]string{}
	if d.maybe(0.12) {
		selector[corev1.LabelTopologyZone] = d.zone()
	}
	if d.maybe(0.08) {
		selector[v1.CapacityTypeLabelKey] = pick(d, "spot", "on-demand")
	}
	if d.maybe(0.08) {
		selector[familyLabel] = pick(d, "general", "memory", "compute")
	}
	if d.maybe(0.08) {
		selector[teamLabel] = pick(d, "red", "blue")
	}
	if len(selector) > 0 {
		spec.NodeSelector = selector
	}
	if d.maybe(0.3) {
		spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	if !d.maybe(0.2) {
		return
	}
	// "OR-ed node affinity terms are exact": Karpenter tries the first term alone
	// and goes on only when nothing fits, so that its price is never below ours.
	var terms []corev1.NodeSelectorTerm
	for range 1 + d.IntN(2) {
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{d.nodeRule()}})
	}
	affinity(spec).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

func (d *drawer) nodeRule() corev1.NodeSelectorRequirement {
	return pick(d,
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-1", "zone-2"}},
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{d.zone()}},
		corev1.NodeSelectorRequirement{Key: cpuLabel, Operator: corev1.NodeSelectorOpGt, Values: []string{pick(d, "3", "7")}},
		corev1.NodeSelectorRequirement{Key: cpuLabel, Operator: corev1.NodeSelectorOpLt, Values: []string{pick(d, "9", "17")}},
		corev1.NodeSelectorRequirement{Key: teamLabel, Operator: corev1.NodeSelectorOpExists},
		corev1.NodeSelectorRequirement{Key: teamLabel, Operator: corev1.NodeSelectorOpDoesNotExist},
		corev1.NodeSelectorRequirement{Key: familyLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"general"}},
	)
}

// placeByPods draws what a pod wants of the pods around it.
func (d *drawer) placeByPods(spec *corev1.PodSpec, own map[string]string, apps int) {
	self := &metav1.LabelSelector{MatchLabels: own}
	other := &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", d.IntN(apps))}}
	if d.maybe(0.2) {
		d.spread(spec, corev1.LabelTopologyZone, self)
	}
	if d.maybe(0.12) {
		d.spread(spec, corev1.LabelHostname, self)
	}
	anti := func(selector *metav1.LabelSelector, key string) {
		a := affinity(spec)
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: key})
	}
	if d.maybe(0.15) {
		anti(self, corev1.LabelHostname)
	}
	if d.maybe(0.08) {
		anti(other, corev1.LabelHostname)
	}
	if d.maybe(0.03) {
		anti(self, corev1.LabelTopologyZone)
	}
	if d.maybe(0.1) {
		affinity(spec).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: pick(d, self, self, other), TopologyKey: pick(d, corev1.LabelTopologyZone, corev1.LabelHostname),
		}}}
	}
}

func (d *drawer) spread(spec *corev1.PodSpec, key string, selector *metav1.LabelSelector) {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + d.IntN(2)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
	}
	if key == corev1.LabelTopologyZone && d.maybe(0.2) {
		least := int32(1 + d.IntN(3))
		c.MinDomains = &least
	}
	if d.maybe(0.15) {
		honor := corev1.NodeInclusionPolicyHonor
		c.NodeTaintsPolicy = &honor
	}
	if d.late.Float64() < 0.15 {
		ignore := corev1.NodeInclusionPolicyIgnore
		c.NodeAffinityPolicy = &ignore
	}
	spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
}

func affinity(spec *corev1.PodSpec) *corev1.Affinity {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	return spec.Affinity
}

// volume gives the pods of an app a shared disk that lives in one zone.
func (d *drawer) volume(spec *corev1.PodSpec, app int) {
	name := fmt.Sprintf("disk-%d", app)
	class := "zonal"
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	d.objects = append(d.objects,
		&corev1.PersistentVolume{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: class,
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.csi.azure.com", VolumeHandle: name}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{d.zone()}}},
				}}}},
			},
		},
		&corev1.PersistentVolumeClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				VolumeName: name, StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				Resources: corev1.VolumeResourceRequirements{Requests: size},
			},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		})
	spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
}
