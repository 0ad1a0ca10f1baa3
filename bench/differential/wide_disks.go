package differential

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// diskDriver is the CSI driver of all disks.
const diskDriver = "disk.csi.azure.com"

// wideDisks draws disks of all kinds and the objects that they consist of.
type wideDisks struct {
	rng
	// objects is where it adds volumes, claims, StorageClasses and CSINodes.
	objects *objectList
}

// disk gives a pod a disk: its own or one that the app shares, made or still to be
// made, here or there.
func (w *wideDisks) disk(p *corev1.Pod, app, index, kind int) {
	name := fmt.Sprintf("data-%d", app)
	if kind < 4 {
		name += fmt.Sprintf("-%d", index)
	}
	zones := func(z ...string) []corev1.NodeSelectorTerm {
		var terms []corev1.NodeSelectorTerm
		for _, zone := range z {
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone},
			}}})
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
		p.Spec.Volumes = append(p.Spec.Volumes,
			corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec("anywhere", "")},
			}}})
	case 4:
		if index == 0 {
			w.made(p, name, zones("zone-1", "zone-2"))
		} else {
			mount(p, name)
		}
	case 5:
		// Two disks of one's own.
		w.diskClaim(p, name+fmt.Sprintf("-a-%d", index), "anywhere", "")
		w.diskClaim(p, name+fmt.Sprintf("-b-%d", index), "in-zones", "")
	case 6:
		w.diskClaim(p, name+fmt.Sprintf("-%d", index), pick(w.rng, "anywhere", "at-once", "missing"), "")
	}
}

func mount(p *corev1.Pod, claim string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
		Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
	})
}

func claimSpec(class, volume string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		VolumeName: volume, StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
	}
}

// diskClaim asks for a disk of a class; with a volume, it has it.
func (w *wideDisks) diskClaim(p *corev1.Pod, name, class, volume string) {
	c := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace},
		Spec:       claimSpec(class, volume),
	}
	if volume != "" {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		c.Status.Phase = corev1.ClaimBound
	}
	w.objects.add(c)
	mount(p, name)
}

// made is a disk that exists, reachable by any of the terms.
func (w *wideDisks) made(p *corev1.Pod, name string, terms []corev1.NodeSelectorTerm) {
	w.objects.add(&corev1.PersistentVolume{
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

func (w *wideDisks) storageClasses() {
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	class := func(name string, mode *storagev1.VolumeBindingMode, terms ...corev1.TopologySelectorTerm) {
		w.objects.add(&storagev1.StorageClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: diskDriver, VolumeBindingMode: mode, AllowedTopologies: terms,
		})
	}
	in := func(zones ...string) corev1.TopologySelectorTerm {
		return corev1.TopologySelectorTerm{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: zones}},
		}
	}
	class("anywhere", &wait)
	class("at-once", &now)
	oneTerm := []corev1.TopologySelectorTerm{in("zone-1", "zone-2")}
	twoTerms := []corev1.TopologySelectorTerm{in("zone-1"), in("zone-3")}
	class("in-zones", &wait, pick(w.rng, oneTerm, twoTerms)...)
}

// slots limits the disks of a node.
func (w *wideDisks) slots(n *corev1.Node) {
	count := int32(1 + w.IntN(3))
	w.objects.add(&storagev1.CSINode{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSINode"},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: diskDriver, NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &count}},
		}},
	})
}
