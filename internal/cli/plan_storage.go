package cli

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// aksStorageClasses are those that AKS creates in every cluster. Volumes of all are bound
// when their pod is scheduled; those of Azure Files are in fact bound earlier, which
// makes no difference to where the pod may run. In clusters of several zones those of disks make
// zone-redundant ones of the same kind, which need no other machines.
func aksStorageClasses() []*storagev1.StorageClass {
	const disk, file = "disk.csi.azure.com", "file.csi.azure.com"
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

// assumedStorageClasses are AKS's where files have volume claims and no storage class.
func assumedStorageClasses(objects []client.Object) []*storagev1.StorageClass {
	claims := false
	for _, o := range objects {
		switch o.(type) {
		case *storagev1.StorageClass:
			return nil
		case *corev1.PersistentVolumeClaim:
			claims = true
		}
	}
	if !claims {
		return nil
	}
	return aksStorageClasses()
}
