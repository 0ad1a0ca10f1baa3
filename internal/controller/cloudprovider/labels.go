package cloudprovider

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// RegisterLabels tells Karpenter which labels Azure's nodes have. It changes Karpenter's
// global tables, so call it first at the start of the process; further calls change nothing.
func RegisterLabels() { registerOnce() }

var registerOnce = sync.OnceFunc(registerLabels)

func registerLabels() {
	karpv1.RestrictedLabelDomains.Insert(v1beta1.Group)
	for key := range instancetype.KnownLabels() {
		karpv1.WellKnownLabels.Insert(key)
	}
	karpv1.WellKnownLabels.Insert(v1beta1.LabelNodeClass, instancetype.LabelAKSEBPFDataplane)
	karpv1.NormalizedLabels["topology.disk.csi.azure.com/zone"] = model.LabelZone
	karpv1.NormalizedLabelValues[model.LabelZone] = map[string]string{"": instancetype.RegionalZone}
	maps.Copy(karpv1.WellKnownValuesForRequirements, wellKnownValues())
}

// wellKnownValues are the only values that make sense for some labels.
func wellKnownValues() map[string]sets.Set[string] {
	return map[string]sets.Set[string]{
		karpv1.CapacityTypeLabelKey:          sets.New(karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot),
		instancetype.LabelSKUAcceleratedNet:  sets.New("true", "false"),
		instancetype.LabelSKUPremium:         sets.New("true", "false"),
		instancetype.LabelSKUUltraSSD:        sets.New("true", "false"),
		instancetype.LabelSKUGPUManufacturer: sets.New(instancetype.NVIDIA, instancetype.AMD),
		instancetype.LabelPlacementScope:     sets.New(instancetype.ScopeZonal, instancetype.ScopeRegional),
		instancetype.LabelAKSMode:            sets.New("system", "user"),
		instancetype.LabelAKSScaleSet:        sets.New("regular", "spot"),
		instancetype.LabelAKSPriority:        sets.New("regular", "spot"),
		instancetype.LabelAKSOSSKU:           sets.New("Ubuntu", "AzureLinux"),
		instancetype.LabelAKSFIPS:            sets.New("true"),
	}
}
