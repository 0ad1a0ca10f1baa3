package kube

import (
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// diskNeeds is what a disk needs of the machine that attaches it: driver is the disk's CSI
// driver, parameters are those of its StorageClass or the attributes of its volume. Names of
// parameters mean the same in any case, as Azure's driver reads them. Azure refuses to attach a
// premium disk to a size without premium storage, and the scheduler does not look. A node that
// does not say what it can attach, such as one of an agent pool, may attach all.
func diskNeeds(driver string, parameters map[string]string) model.Requirements {
	if driver != AzureDiskDriver {
		return nil
	}
	for name, value := range parameters {
		if !diskSKU(name) {
			continue
		}
		switch strings.ToLower(value) {
		case "premium_lrs", "premium_zrs", "premiumv2_lrs":
			return model.Requirements{lacksNot(model.LabelPremiumStorage)}
		case "ultrassd_lrs":
			return model.Requirements{lacksNot(model.LabelUltraSSD)}
		}
	}
	return nil
}

// diskSKU reports whether a parameter of a StorageClass says of what kind its disks are.
func diskSKU(parameter string) bool {
	return strings.EqualFold(parameter, "skuName") || strings.EqualFold(parameter, "storageAccountType")
}

// lacksNot holds unless a node says that it has not what the label is about.
func lacksNot(label string) model.Requirement {
	return model.Requirement{Key: label, Operator: model.NotIn, Values: []string{"false"}}
}

// withNeeds adds what a disk needs to each of the places where it can be attached, which are
// OR-ed; no place means anywhere.
func withNeeds(places []model.Requirements, needs model.Requirements) []model.Requirements {
	if len(needs) == 0 {
		return places
	}
	if len(places) == 0 {
		return []model.Requirements{needs}
	}
	for i := range places {
		places[i] = append(places[i], needs...)
	}
	return places
}
