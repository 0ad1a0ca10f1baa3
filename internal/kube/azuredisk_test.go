package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Azure attaches a premium disk to no size without premium storage, and an ultra disk only where
// these are switched on. What says nothing of itself may attach all.
func TestDisksNeedMachinesThatCanAttachThem(t *testing.T) {
	premium := model.Requirements{{Key: model.LabelPremiumStorage, Operator: model.NotIn, Values: []string{"false"}}}
	ultra := model.Requirements{{Key: model.LabelUltraSSD, Operator: model.NotIn, Values: []string{"false"}}}
	for _, c := range []struct {
		driver, parameters string
		want               []model.Requirements
	}{
		{"disk.csi.azure.com", "skuName: Premium_LRS", []model.Requirements{premium}},
		{"disk.csi.azure.com", "skuname: Premium_ZRS", []model.Requirements{premium}},
		{"disk.csi.azure.com", "storageAccountType: PremiumV2_LRS", []model.Requirements{premium}},
		{"disk.csi.azure.com", "storageaccounttype: UltraSSD_LRS", []model.Requirements{ultra}},
		{"disk.csi.azure.com", "skuName: StandardSSD_ZRS", nil},
		{"disk.csi.azure.com", "cachingMode: None", nil},
		{"file.csi.azure.com", "skuName: Premium_LRS", nil},
	} {
		decoded := func(text string) any {
			found, err := Decode(strings.NewReader(text), "file")
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return found[0].Object
		}
		class := decoded("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: c}, provisioner: " + c.driver +
			", parameters: {" + c.parameters + "}}").(*storagev1.StorageClass)
		if diff := cmp.Diff(c.want, storageClass(class).Alternatives); diff != "" {
			t.Errorf("a class of %s with %s (-want +got):\n%s", c.driver, c.parameters, diff)
		}
		made := decoded("{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {csi: {driver: " + c.driver +
			", volumeHandle: h, volumeAttributes: {" + c.parameters + "}}}}").(*corev1.PersistentVolume)
		if diff := cmp.Diff(c.want, volume(made).Alternatives); diff != "" {
			t.Errorf("a volume of %s with %s (-want +got):\n%s", c.driver, c.parameters, diff)
		}
	}
}

// Each place where a premium disk may be has to attach it; the classes of disks that were once
// part of Kubernetes are read alike.
func TestDisksNeedThemInEachPlace(t *testing.T) {
	found, err := Decode(strings.NewReader(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: c}
provisioner: kubernetes.io/azure-disk
parameters: {storageaccounttype: Premium_LRS}
allowedTopologies:
- matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [z-1]}]
- matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [z-2]}]
`), "file")
	if err != nil {
		t.Fatal(err)
	}
	const premium = "karpenter.azure.com/sku-storage-premium-capable NotIn [false]"
	want := "[topology.kubernetes.io/zone In [z-1], " + premium + " or topology.kubernetes.io/zone In [z-2], " + premium + "]"
	if got := places(storageClass(found[0].Object.(*storagev1.StorageClass)).Alternatives); got != want {
		t.Errorf("the class makes disks for %s, want %s", got, want)
	}
}
