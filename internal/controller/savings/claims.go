package savings

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// BoundClaims are volume claims that pods with a node name and objects lack, in the order of
// their names, each with its volume. A pod runs only when its claims are bound, so they count as
// bound to a disk in the zone of the pod's node. What pods of several zones share is no disk of a
// zone: it counts as a file share, which all zones can mount.
func BoundClaims(objects []client.Object) []client.Object {
	zones, there := map[string]string{}, map[client.ObjectKey]bool{}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			zones[o.Name] = diskZoneOf(o)
		case *corev1.PersistentVolumeClaim:
			there[client.ObjectKeyFromObject(o)] = true
		}
	}
	missing := map[client.ObjectKey][]string{}
	for _, o := range objects {
		pod, is := o.(*corev1.Pod)
		if !is {
			continue
		}
		zone, runs := zones[pod.Spec.NodeName]
		for i := range pod.Spec.Volumes {
			claim := pod.Spec.Volumes[i].PersistentVolumeClaim
			if claim == nil || !runs {
				continue
			}
			key := client.ObjectKey{Namespace: pod.Namespace, Name: claim.ClaimName}
			if !there[key] && !slices.Contains(missing[key], zone) {
				missing[key] = append(missing[key], zone)
			}
		}
	}
	keys := make([]client.ObjectKey, 0, len(missing))
	for key := range missing {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y client.ObjectKey) int { return strings.Compare(x.String(), y.String()) })
	var out []client.Object
	for _, key := range keys {
		out = append(out, boundClaim(key, missing[key])...)
	}
	return out
}

// diskZoneOf is the zone in which a node has its disks, "" where it is in none: nodes of a region
// without zones have a number for it.
func diskZoneOf(n *corev1.Node) string {
	zone := n.Labels[corev1.LabelTopologyZone]
	if !strings.Contains(zone, "-") {
		return ""
	}
	return zone
}

// boundClaim is a claim with its volume, which pods in some zones use.
func boundClaim(key client.ObjectKey, zones []string) []client.Object {
	name := "volume-of-" + key.Namespace + "-" + key.Name
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	source := &corev1.CSIPersistentVolumeSource{Driver: kube.AzureDiskDriver, VolumeHandle: name}
	volume.Spec.CSI = source
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: key.Namespace, Name: key.Name}
	volume.Status.Phase = corev1.VolumeBound
	switch {
	case len(zones) > 1:
		source.Driver = kube.AzureFileDriver
	case zones[0] != "":
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: kube.CSIZoneLabel, Operator: corev1.NodeSelectorOpIn, Values: zones}},
		}}}}
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"},
		},
		Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: name},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	return []client.Object{claim, volume}
}
