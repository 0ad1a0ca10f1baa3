package vm

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

func TestTrap23DiskControllerOfNVMeOnlySize(t *testing.T) {
	v := &Launcher{config: &config.Config{}}
	spec := launch.NodeSpec{Claim: "general-abc12", Class: &nodeclass.NodeClass{}, SKU: &instancetype.SKU{Name: "Standard_D4s_v5"}}
	if got := v.storage(spec).DiskControllerType; got != nil {
		t.Errorf("a size with both controllers gets %s, want the platform's choice", *got)
	}
	sku := *spec.SKU
	sku.NVMeOnly = true
	spec.SKU = &sku
	if got := v.storage(spec).DiskControllerType; got == nil || *got != armcompute.DiskControllerTypesNVMe {
		t.Errorf("a size with NVMe alone gets %v, want NVMe", got)
	}
}

// Azure takes vTPM and secure boot only with the word for what they are.
func TestTrustedLaunchIsNamed(t *testing.T) {
	got := security(launch.NodeSpec{Class: &nodeclass.NodeClass{VTPM: true}})
	if got == nil || got.SecurityType == nil || *got.SecurityType != armcompute.SecurityTypesTrustedLaunch ||
		!*got.UefiSettings.VTpmEnabled || *got.UefiSettings.SecureBootEnabled {
		t.Errorf("got %+v, want a trusted launch with a vTPM alone", got)
	}
	if got := security(launch.NodeSpec{Class: &nodeclass.NodeClass{}}); got != nil {
		t.Errorf("a class that says nothing gets %+v", got)
	}
}
