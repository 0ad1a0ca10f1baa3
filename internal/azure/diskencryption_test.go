package azure_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure"
)

func TestTheDiskEncryptionSetIsCheckedAndOnEverySystemDisk(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		set := "/subscriptions/" + w.SubscriptionID + "/resourceGroups/" + w.NodeResourceGroup + "/providers/Microsoft.Compute/diskEncryptionSets/keys"
		w.config.DiskEncryptionSetID = set
		w.start(t)
		if err := w.provider.ValidateDiskEncryption(t.Context()); !errors.Is(err, azure.ErrDiskSetNotFound) {
			t.Errorf("before it exists: %v", err)
		}
		w.send(t, http.MethodPut, "Microsoft.Compute/diskEncryptionSets/keys", `{"location":"eastus","properties":{}}`)
		fault, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/diskEncryptionSets/read", Status: 403, Code: "AuthorizationFailed", Message: "No."})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.provider.ValidateDiskEncryption(t.Context()); !errors.Is(err, azure.ErrDiskSetForbidden) || !strings.Contains(err.Error(), "role Reader") {
			t.Errorf("without permission: %v", err)
		}
		if err := w.Server.RemoveFault(fault.ID); err != nil {
			t.Fatal(err)
		}
		if err := w.provider.ValidateDiskEncryption(t.Context()); err != nil {
			t.Errorf("with permission: %v", err)
		}
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
			t.Fatal(err)
		}
		if body := w.get(t, "Microsoft.Compute/virtualMachines/aks-general-abc12"); !strings.Contains(body, `"diskEncryptionSet":{"id":"`+set+`"}`) {
			t.Errorf("the machine's disk lacks the set: %s", body)
		}
	})
}
