package cli

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// aksStorageClasses are those that AKS creates in every cluster. Volumes of all are bound
// when their pod is scheduled; those of Azure Files are in fact bound earlier, which
// makes no difference to where the pod may run. In clusters of several zones those of disks make
// zone-redundant ones of the same kind, which need no other machines.
func aksStorageClasses() []*storagev1.StorageClass {
	const disk, file = kube.AzureDiskDriver, kube.AzureFileDriver
	var out []*storagev1.StorageClass
	for _, c := range []struct{ name, driver, sku string }{
		{"default", disk, "StandardSSD_LRS"}, {"managed", disk, "StandardSSD_LRS"}, {"managed-csi", disk, "StandardSSD_LRS"},
		{"managed-premium", disk, "Premium_LRS"}, {"managed-csi-premium", disk, "Premium_LRS"},
		{"azurefile", file, "Standard_LRS"}, {"azurefile-csi", file, "Standard_LRS"},
		{"azurefile-premium", file, "Premium_LRS"}, {"azurefile-csi-premium", file, "Premium_LRS"},
	} {
		mode := storagev1.VolumeBindingWaitForFirstConsumer
		class := &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: c.name}, Provisioner: c.driver, Parameters: map[string]string{"skuname": c.sku},
			VolumeBindingMode: &mode,
		}
		if c.name == "default" {
			class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}
		out = append(out, class)
	}
	return out
}

// assumedStorageClasses are those of AKS that volume claims of files need and the input lacks, and a note
// of them. A StorageClass with a UID comes from a cluster, and the input then has all of that cluster's;
// one without is the user's own beside those of AKS, as in a chart.
func assumedStorageClasses(objects []client.Object) (classes []*storagev1.StorageClass, note string) {
	own := map[string]bool{}
	var claims []*corev1.PersistentVolumeClaim
	byDefault := false
	for _, o := range objects {
		switch o := o.(type) {
		case *storagev1.StorageClass:
			if o.UID != "" {
				return nil, ""
			}
			own[o.Name] = true
			byDefault = byDefault || kube.IsDefaultClass(o)
		case *corev1.PersistentVolumeClaim:
			claims = append(claims, o)
		}
	}
	for _, class := range aksStorageClasses() {
		if own[class.Name] {
			continue
		}
		if byDefault {
			class.Annotations = nil
		}
		classes = append(classes, class)
	}
	switch {
	case len(claims) == 0:
		return nil, ""
	case len(own) == 0:
		return classes, "no StorageClass in the input: planning with those that AKS creates"
	case slices.ContainsFunc(claims, func(c *corev1.PersistentVolumeClaim) bool { return lacksClass(c, classes, byDefault) }):
		return classes, "planning with the StorageClasses that AKS creates beside those of the input, which come from no cluster"
	}
	return nil, ""
}

// lacksClass reports whether a claim is served by a StorageClass that is only assumed.
func lacksClass(c *corev1.PersistentVolumeClaim, assumed []*storagev1.StorageClass, byDefault bool) bool {
	if c.Spec.VolumeName != "" {
		return false
	}
	name := kube.ClassOfClaim(c)
	if name == "" {
		return c.Spec.StorageClassName == nil && !byDefault
	}
	return slices.ContainsFunc(assumed, func(class *storagev1.StorageClass) bool { return class.Name == name })
}

// openZones is a note on claims of files whose disks are made before their pods are placed, or "": only
// the cluster will tell in which zone.
func openZones(objects []client.Object) string {
	early := map[string]bool{}
	byDefault := ""
	for _, class := range objectsOf[*storagev1.StorageClass](objects) {
		if kube.DiskBeforePod(class) {
			early[class.Name] = true
		}
		if kube.IsDefaultClass(class) {
			byDefault = class.Name
		}
	}
	n, first := 0, ""
	for _, c := range objectsOf[*corev1.PersistentVolumeClaim](objects) {
		class := kube.ClassOfClaim(c)
		if class == "" && c.Spec.StorageClassName == nil {
			class = byDefault
		}
		if kube.NewClaim(c) && c.Spec.VolumeName == "" && early[class] {
			first = cmp.Or(first, c.Namespace+"/"+c.Name)
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of StorageClasses that bind immediately planned in any zone, the first is %s: "+
		"Azure makes the disk before the pod has a node, and its zone decides; volumeBindingMode: WaitForFirstConsumer lets the pod decide",
		plural(n, "volume claim"), first)
}
