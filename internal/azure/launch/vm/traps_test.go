package vm

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// What the node image brings, the boot data leave to it: the cloud it runs in,
// where to download from, and which version of what.
func TestTrap9BootDataHasNoCloudName(t *testing.T) {
	data := BootData(&config.Config{
		ClusterEndpoint: "nap.hcp.usgovvirginia.cx.aks.containerservice.azure.us", Location: "usgovvirginia", NetworkPlugin: "azure",
	}, bootSpec())
	for _, foreign := range []string{"AzurePublicCloud", "azureedge.net", "windows.net",
		"management.azure.com", "mcr.microsoft.com", "cni-plugins", "CNI_"} {
		if strings.Contains(data, foreign) {
			t.Errorf("the boot data of a cluster in a national cloud contain %s", foreign)
		}
	}
	for _, own := range []string{"API_SERVER_NAME='nap.hcp.usgovvirginia.cx.aks.containerservice.azure.us'",
		"LOCATION='usgovvirginia'", "KUBERNETES_VERSION='1.35.1'"} {
		if !strings.Contains(data, own) {
			t.Errorf("the boot data lack %s:\n%s", own, data)
		}
	}
}

func TestTrap23DiskControllerOfNVMeOnlySize(t *testing.T) {
	v := &Launcher{config: &config.Config{}}
	spec := bootSpec()
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
