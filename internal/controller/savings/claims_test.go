package savings

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestClaimsThatAreMissingAreBound(t *testing.T) {
	node := func(name, zone string) client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
	}
	pod := func(name, node, claim string) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
		return p
	}
	there := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "there"}}
	objects := []client.Object{
		node("n1", "westeurope-1"), node("n2", "westeurope-2"), node("n0", "0"), there,
		pod("db", "n2", "db"), pod("a", "n1", "shared"), pod("b", "n2", "shared"), pod("c", "n0", "regional"),
		pod("d", "n1", "there"), pod("waits", "", "later"), pod("e", "n2", "twice"), pod("f", "n2", "twice"),
	}
	var got []string
	for _, o := range BoundClaims(objects) {
		v, is := o.(*corev1.PersistentVolume)
		if !is {
			continue
		}
		zones := []string{}
		if v.Spec.NodeAffinity != nil {
			zones = v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values
		}
		got = append(got, fmt.Sprint(v.Spec.ClaimRef.Name, " ", v.Spec.CSI.Driver, " ", zones))
	}
	want := []string{
		"db disk.csi.azure.com [westeurope-2]", "regional disk.csi.azure.com []", "shared file.csi.azure.com []",
		"twice disk.csi.azure.com [westeurope-2]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the volumes are\n%q, want\n%q", got, want)
	}
}
