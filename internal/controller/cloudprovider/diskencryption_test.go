package cloudprovider

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

func TestClassNotReadyWithUnreadableDiskEncryptionSet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fault, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultError, Operation: "Microsoft.Compute/diskEncryptionSets/read",
			Status: 403, Code: "AuthorizationFailed", Message: "No.",
		})
		if err != nil {
			t.Fatal(err)
		}
		w.restart(t, func(c *config.Config) {
			c.DiskEncryptionSetID = "/subscriptions/" + w.SubscriptionID + "/resourceGroups/" +
				w.NodeResourceGroup + "/providers/Microsoft.Compute/diskEncryptionSets/keys"
		})
		check := func(status metav1.ConditionStatus, reason string) {
			t.Helper()
			w.resolve(t)
			got := w.class.StatusConditions().Get(v1beta1.ConditionValidationSucceeded)
			if got.Status != status || got.Reason != reason || got.Message == "" {
				t.Errorf("ValidationSucceeded is %s with reason %s (%s), want %s with %s", got.Status, got.Reason, got.Message, status, reason)
			}
		}
		check(metav1.ConditionFalse, v1beta1.ReasonDiskEncryptionSetRBACMissing)
		if _, err := w.port.Create(t.Context(), claim("a")); !karpcloud.IsNodeClassNotReadyError(err) ||
			!strings.Contains(err.Error(), "role Reader") {
			t.Errorf("buying with it: %v, want that the class is not ready and what to do", err)
		}
		if err := w.Server.RemoveFault(fault.ID); err != nil {
			t.Fatal(err)
		}
		check(metav1.ConditionFalse, reasonDiskSetNotFound)
	})
}
