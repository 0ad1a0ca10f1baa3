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
