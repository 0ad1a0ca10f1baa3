package differential

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// drawApps draws pods that wait, some alike ones at a time.
func (d *drawer) drawApps() {
	apps := d.scale * (1 + d.IntN(7))
	for i := range apps {
		labels := map[string]string{"app": fmt.Sprintf("app-%d", i)}
		milliCPU := pick(d.rng, 100, 250, 500, 1000, 1500, 3000, 6000)
		spec := podSpec(milliCPU, int(float64(milliCPU)*pick(d.rng, 0.5, 1, 2, 4, 8)))
		d.rules.placeByNode(&spec)
		d.rules.placeByPods(&spec, labels, apps)
		if d.maybe(0.08) {
			spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8000 + d.IntN(2)), Protocol: corev1.ProtocolTCP}}
		}
		if d.maybe(0.06) {
			d.volume(&spec, i)
		}
		for j := range pick(d.rng, 1, 2, 3, 5, 8, 12) {
			d.objects.add(&corev1.Pod{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%d-%02d", i, j), Namespace: "default", Labels: labels},
				Spec:       *spec.DeepCopy(),
			})
		}
	}
}

// volume gives the pods of an app a shared disk that lives in one zone.
func (d *drawer) volume(spec *corev1.PodSpec, app int) {
	name := fmt.Sprintf("disk-%d", app)
	class := "zonal"
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	d.objects.add(
		&corev1.PersistentVolume{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: class,
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: "disk.csi.azure.com", VolumeHandle: name,
				}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{d.zone()},
					}},
				}}}},
			},
		},
		&corev1.PersistentVolumeClaim{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "default", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"},
			},
			Spec: corev1.PersistentVolumeClaimSpec{
				VolumeName: name, StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				Resources: corev1.VolumeResourceRequirements{Requests: size},
			},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		})
	spec.Volumes = []corev1.Volume{{
		Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}},
	}}
}
