package providertest

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

const (
	diskSet      = "Microsoft.Compute/diskEncryptionSets/keys"
	diskSetReads = "calls Microsoft.Compute/diskEncryptionSets/read"
)

// useDiskSet makes the next process encrypt disks with a set, and names it.
func (w *world) useDiskSet(t *testing.T) string {
	t.Helper()
	w.stop()
	w.config.DiskEncryptionSetID = "/subscriptions/" + w.SubscriptionID + "/resourceGroups/" + w.NodeResourceGroup + "/providers/" + diskSet
	w.start(t)
	return w.config.DiskEncryptionSetID
}

func TestDiskEncryptionSetOnEveryOSDisk(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		set := w.useDiskSet(t)
		w.send(t, http.MethodPut, diskSet, `{"location":"eastus","properties":{}}`)
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
			t.Fatal(err)
		}
		if body := w.get(t, "Microsoft.Compute/virtualMachines/aks-general-abc12"); !strings.Contains(body,
			`"diskEncryptionSet":{"id":"`+set+`"}`) {
			t.Errorf("the machine's disk lacks the set: %s", body)
		}
	})
}

// The rows of the error map about disk encryption sets: nothing is blocked, and
// what is wrong is known before a machine is asked for.
func TestErrorMapOfDiskEncryptionSets(t *testing.T) {
	for _, row := range []struct {
		name   string
		status int
		want   error
		advice string
	}{
		{"401 GET DES", http.StatusUnauthorized, azure.ErrDiskSetForbidden, "give nap's identity the role Reader on it"},
		{"403 GET DES", http.StatusForbidden, azure.ErrDiskSetForbidden, "give nap's identity the role Reader on it"},
		{"404 GET DES", http.StatusNotFound, azure.ErrDiskSetNotFound, "correct NODE_OSDISK_DISKENCRYPTIONSET_ID"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				set := w.useDiskSet(t)
				w.send(t, http.MethodPut, diskSet, `{"location":"eastus","properties":{}}`)
				fault, err := w.Server.AddFault(refusal("Microsoft.Compute/diskEncryptionSets/read", row.status, "Refused"))
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // a refusal is not remembered
					if err := w.provider.ValidateDiskEncryption(t.Context()); !errors.Is(err, row.want) ||
						!strings.Contains(err.Error(), set) || !strings.Contains(err.Error(), row.advice) {
						t.Errorf("got %v, want %v with %q", err, row.want, row.advice)
					}
				}
				if err := w.Server.RemoveFault(fault.ID); err != nil {
					t.Fatal(err)
				}
				before := w.Server.Stats()[diskSetReads]
				for range 3 { // what is well is, for an hour
					if err := w.provider.ValidateDiskEncryption(t.Context()); err != nil {
						t.Errorf("once it can be read: %v", err)
					}
				}
				time.Sleep(time.Hour)
				if err := w.provider.ValidateDiskEncryption(t.Context()); err != nil {
					t.Error(err)
				}
				if n := w.Server.Stats()[diskSetReads] - before; n != 2 {
					t.Errorf("the set was read %d times in an hour, want at its beginning and its end", n)
				}
			})
		})
	}
}

func TestDiskEncryptionSetWithoutReaderRoleIsRefused(t *testing.T) {
	others := slices.DeleteFunc(config.Actions(), func(a string) bool { return a == "Microsoft.Compute/diskEncryptionSets/read" })
	inWorld(t, func(t *testing.T, w *world) {
		w.ownNetwork(t) // and its owner's keys
		w.stop()
		w.start(t)
		if err := w.provider.ValidateDiskEncryption(t.Context()); !errors.Is(err, azure.ErrDiskSetForbidden) {
			t.Errorf("the class: %v, want %v", err, azure.ErrDiskSetForbidden)
		}
		_, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
		var refused *launch.Refused
		if !errors.As(err, &refused) || refused.Failure.Code != "LinkedAuthorizationFailed" ||
			!strings.Contains(err.Error(), "Microsoft.Compute/diskEncryptionSets/read") {
			t.Errorf("a launch all the same: %v", err)
		}
		if _, err := w.provider.CollectNICs(t.Context(), noClaims); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		w.noLeaks(t)
	}, principals(others))
}
