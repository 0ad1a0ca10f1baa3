package bootstrap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExtensionWaitsForProvisioning(t *testing.T) {
	want := Extension{
		Name: "cse-agent-karpenter", Publisher: "Microsoft.Azure.Extensions", Type: "CustomScript", TypeHandlerVersion: "2.0",
		AutoUpgradeMinorVersion: true,
		ProtectedSettings:       map[string]string{"commandToExecute": "/opt/azure/containers/aks-node-controller provision-wait"},
	}
	if diff := cmp.Diff(want, ProvisioningExtension()); diff != "" {
		t.Errorf("extension (-want +got):\n%s", diff)
	}
}

func TestImagesThatUnderstandTheContract(t *testing.T) {
	for version, want := range map[string]bool{
		"202311.07.0": false, "202510.9.0": false, "202510.09.9": false, "202510.11.0": true, "202510.11.1": true, "202606.09.0": true, "": true,
	} {
		if got := Understands(version); got != want {
			t.Errorf("%s: %t, want %t", version, got, want)
		}
	}
}
