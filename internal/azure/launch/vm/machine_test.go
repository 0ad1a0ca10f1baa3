package vm

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/model"
)

// vmText is a virtual machine as Azure writes it.
func vmText(tags, more string) string {
	return `{"name": "aks-general-a", "tags": {` + tags + `}, ` + more + `}`
}

const clusterTag = `"karpenter.azure.com_cluster": "c"`

// Azure bills nodes by this extension, which it takes in these words alone.
func TestBillingExtensionIsWhatAzureKnows(t *testing.T) {
	a := &azure{answer: always(http.StatusCreated, `{}`)}
	v := a.launcher(t)
	v.config.Location = "eastus"
	if err := v.Finish(t.Context(), launch.Machine{Claim: "general-a", Missing: []string{billingExtension}, Tags: map[string]string{"team": "blue"}}); err != nil {
		t.Fatal(err)
	}
	want := `{"location":"eastus","properties":{"autoUpgradeMinorVersion":true,"publisher":"Microsoft.AKS","settings":{},` +
		`"type":"Compute.AKS.Linux.Billing","typeHandlerVersion":"1.0"},"tags":{"team":"blue"}}`
	if got := a.sent["PUT computeakslinuxbilling"]; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// A machine that cannot be finished yet is one for the watcher to try again.
func TestRefusedExtensionIsAnError(t *testing.T) {
	for _, name := range []string{billingExtension, bootstrap.ProvisioningExtension().Name} {
		v := (&azure{answer: always(http.StatusConflict, `{"error": {"code": "Busy"}}`)}).launcher(t)
		if err := v.Finish(t.Context(), launch.Machine{Claim: "general-a", Missing: []string{name}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a machine is, is read from Azure alone, so that every process sees the same.
func TestMachineIsWhatAzureSaysOfIt(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	extensions := []string{bootstrap.ProvisioningExtension().Name, billingExtension}
	for name, c := range map[string]struct {
		text string
		want launch.Machine
	}{
		"everything": {
			vmText(clusterTag+`, "karpenter.sh_nodepool": "general"`, `"zones": ["2"], "resources": [
				{"id": "/x/extensions/`+strings.ToUpper(extensions[0])+`"}, {"name": "`+extensions[1]+`", "properties": {"provisioningState": "Succeeded"}}],
				"properties": {"provisioningState": "Succeeded", "priority": "Spot", "timeCreated": "2026-01-02T03:04:05Z",
				"hardwareProfile": {"vmSize": "Standard_D4s_v5"}, "storageProfile": {"imageReference": {"communityGalleryImageId": "/c", "id": "/i"}}}`),
			launch.Machine{Pool: "general", Zone: "2", State: launch.Succeeded, CapacityType: model.Spot, Created: created, Size: "Standard_D4s_v5", ImageID: "/c"},
		},
		"an image of one's own, and a bill that failed": {
			vmText(clusterTag, `"resources": [null, {"name": "`+extensions[1]+`", "properties": {"provisioningState": "Failed"}}],
				"properties": {"provisioningState": "Creating", "storageProfile": {"imageReference": {"id": "/i"}}}`),
			launch.Machine{State: launch.Creating, CapacityType: model.OnDemand, ImageID: "/i", Missing: extensions},
		},
		"provisioning that failed, and a bill without a state": {
			vmText(clusterTag, `"resources": [{"name": "`+extensions[0]+`", "properties": {"provisioningState": "Failed"}}, {"name": "`+extensions[1]+`"}],
				"properties": {"storageProfile": {}}`),
			launch.Machine{State: launch.Creating, CapacityType: model.OnDemand},
		},
		"little": {vmText(clusterTag, `"properties": {}`), launch.Machine{State: launch.Creating, CapacityType: model.OnDemand, Missing: extensions}},
	} {
		v := (&azure{answer: always(http.StatusOK, c.text)}).launcher(t)
		v.config.Cloud = config.Cloud{Name: config.CloudPublic}
		got, err := v.Get(t.Context(), "general-a")
		if err != nil {
			t.Fatal(err)
		}
		c.want.Claim, c.want.ProviderID, c.want.Tags = "general-a", "azure:///subscriptions//resourceGroups/g/providers/Microsoft.Compute/virtualMachines/aks-general-a", got.Tags
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Machines of others are neither found nor listed.
func TestMachinesOfOthersAreNotNaps(t *testing.T) {
	for name, text := range map[string]string{
		"of another cluster": vmText(`"karpenter.azure.com_cluster": "another"`, `"properties": {}`),
		"of no cluster":      vmText("", `"properties": {}`),
		"of an AKS machine":  vmText(clusterTag+`, "karpenter.azure.com_aksmachine_nodeclaim": "general-a"`, `"properties": {}`),
		"named by AKS":       `{"name": "aks-pool-general-a-12345678-vm", "tags": {` + clusterTag + `}, "properties": {}}`,
		"named by somebody":  `{"name": "jumpbox", "tags": {` + clusterTag + `}, "properties": {}}`,
		"without a name":     `{"tags": {` + clusterTag + `}, "properties": {}}`,
		"without a property": vmText(clusterTag, `"id": "x"`),
	} {
		if _, err := (&azure{answer: always(http.StatusOK, text)}).launcher(t).Get(t.Context(), "general-a"); !errors.Is(err, launch.ErrForeign) {
			t.Errorf("%s: %v, want ErrForeign", name, err)
		}
		list, err := (&azure{answer: always(http.StatusOK, `{"value": [null, `+text+`]}`)}).launcher(t).List(t.Context())
		if err != nil || len(list) > 0 {
			t.Errorf("%s: listed %+v, %v", name, list, err)
		}
	}
}

// A deletion is asked for once, and what it leaves is looked after when the machine is gone.
func TestDeletionIsAskedForOnce(t *testing.T) {
	const get, remove, nic = "GET aks-general-a", "DELETE aks-general-a", "DELETE aks-general-a"
	machine := func(state string) string {
		return vmText(clusterTag, `"properties": {"provisioningState": "`+state+`"}`)
	}
	for name, c := range map[string]struct {
		get, remove int // statuses
		state       string
		gone, fails bool
		asked       []string
	}{
		"it runs":             {200, 200, "Succeeded", false, false, []string{get, remove}},
		"it is being deleted": {200, 500, "Deleting", false, false, []string{get}},
		"it is gone":          {404, 404, "", true, true, []string{get, nic}},
		"it is gone just now": {200, 404, "Succeeded", false, false, []string{get, remove}},
		"it cannot be read":   {500, 200, "", false, true, []string{get}},
		"it is kept":          {200, 409, "Succeeded", false, true, []string{get, remove}},
	} {
		a := &azure{answer: func(request string) (int, string) {
			if request == get {
				return c.get, machine(c.state)
			}
			return c.remove, `{}`
		}}
		err := a.launcher(t).Delete(t.Context(), "general-a")
		if errors.Is(err, launch.ErrNotFound) != c.gone || (err != nil) != c.fails || !slices.Equal(a.asked, c.asked) {
			t.Errorf("%s: %v, asked %v, want %v", name, err, a.asked, c.asked)
		}
	}
}

// Why a machine failed is what Azure says of it; one that runs has not, unless its system
// never reported ready.
func TestWhyMachineFailed(t *testing.T) {
	status := func(codes ...string) string {
		return `{"statuses": [null, {"code": "` + strings.Join(codes, `"}, {"code": "`) + `"}]}`
	}
	for text, want := range map[string]string{
		status("ProvisioningState/failed/AllocationFailed"):                             "AllocationFailed",
		status("ProvisioningState/failed/AllocationFailed", "PowerState/running"):       "",
		status("PowerState/running", "ProvisioningState/failed/OSProvisioningTimedOut"): "OSProvisioningTimedOut",
		status("PowerState/running", "ProvisioningState/updating"):                      "",
		status("PowerState/stopped"):                                                    "ProvisioningFailed",
	} {
		v := (&azure{answer: always(http.StatusOK, text)}).launcher(t)
		failure, err := v.Failure(t.Context(), "general-a")
		if err != nil || (failure == nil) != (want == "") || failure != nil && failure.Code != want {
			t.Errorf("%s: %v, %v, want %q", text, failure, err, want)
		}
	}
	for status, gone := range map[int]bool{http.StatusNotFound: true, http.StatusConflict: false} {
		failure, err := (&azure{answer: always(status, `{}`)}).launcher(t).Failure(t.Context(), "general-a")
		if (failure != nil) != gone || (err != nil) == gone || gone && failure.Code != "MachineGone" {
			t.Errorf("status %d: %v, %v, want that it is gone: %t", status, failure, err, gone)
		}
	}
}

// Of two processes that ask at once one makes the machine, and both get it.
func TestMachineThatAnotherProcessMadeIsTaken(t *testing.T) {
	for code, c := range map[string]struct {
		status int
		taken  bool
	}{
		"":                         {http.StatusPreconditionFailed, true},
		"PropertyChangeNotAllowed": {http.StatusConflict, true},
		"AllocationFailed":         {http.StatusConflict, false},
	} {
		a := &azure{answer: always(c.status, `{"error": {"code": "`+code+`"}}`)}
		v := a.launcher(t)
		_, err := v.Get(t.Context(), "general-a")
		a.answer = always(http.StatusOK, vmText(clusterTag, `"properties": {}`))
		var answered interface{ Unwrap() error }
		if !errors.As(err, &answered) {
			t.Fatal(err)
		}
		if m, made := v.madeByOthers(t.Context(), "general-a", err); made != c.taken || (m.Claim != "") != c.taken {
			t.Errorf("%d %s: %+v, %t, want it taken: %t", c.status, code, m, made, c.taken)
		}
		a.answer = always(http.StatusNotFound, `{}`)
		if _, made := v.madeByOthers(t.Context(), "general-a", err); made {
			t.Errorf("%d %s: a machine that is not there was taken", c.status, code)
		}
	}
}
