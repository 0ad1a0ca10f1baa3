package armsim_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

const provisionWait = "/opt/azure/containers/aks-node-controller provision-wait"

// script puts the extension that waits for a machine's provisioning.
func (u *subscriber) script(vm, command string) *runtime.Poller[armcompute.VirtualMachineExtensionsClientCreateOrUpdateResponse] {
	u.t.Helper()
	p, err := u.exts.BeginCreateOrUpdate(u.t.Context(), u.NodeResourceGroup, vm, "cse", armcompute.VirtualMachineExtension{
		Location: to.Ptr(u.Region),
		Properties: &armcompute.VirtualMachineExtensionProperties{
			Publisher: to.Ptr("Microsoft.Azure.Extensions"), Type: to.Ptr("CustomScript"), TypeHandlerVersion: to.Ptr("2.0"),
			AutoUpgradeMinorVersion: to.Ptr(true), ProtectedSettings: map[string]any{"commandToExecute": command},
		},
	}, nil)
	if err != nil {
		u.t.Fatal(err)
	}
	return p
}

// status is what the agent of a machine says about its only extension.
func (u *subscriber) status(vm string) armcompute.InstanceViewStatus {
	u.t.Helper()
	view, err := u.vms.InstanceView(u.t.Context(), u.NodeResourceGroup, vm, nil)
	if err != nil || len(view.Extensions) != 1 || *view.Extensions[0].Type != "Microsoft.Azure.Extensions.CustomScript" {
		u.t.Fatalf("extensions %v, %v", view.Extensions, err)
	}
	own, err := u.exts.Get(u.t.Context(), u.NodeResourceGroup, vm, "cse",
		&armcompute.VirtualMachineExtensionsClientGetOptions{Expand: to.Ptr("instanceView")})
	if err != nil || *own.Properties.InstanceView.Statuses[0].Code != *view.Extensions[0].Statuses[0].Code {
		u.t.Errorf("the extension says %+v, %v, its machine %+v", own.Properties, err, view.Extensions[0].Statuses[0])
	}
	return *view.Extensions[0].Statuses[0]
}

// reportsProvisioning lets the test say how provisioning ends, and ask for that as often as it likes.
func reportsProvisioning(c *armsim.Config) { c.ReportsProvisioning, c.Limits = true, []armsim.Limit{} }

func TestScriptEndsAsMachineProvisioning(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		end     *armsim.Provisioning // nil: the provisioning never ends
		noBoot  bool
		early   bool // the provisioning ends before the extension is put
		code    string
		words   []string // of the operation's error, or of the status
	}{
		"success":        {end: &armsim.Provisioning{Stdout: "{\"ExitCode\":\"0\"}\n"}, words: []string{"Enable succeeded: \n[stdout]\n{\"ExitCode\":\"0\"}"}},
		"success before": {end: &armsim.Provisioning{Stdout: "{\"ExitCode\":\"0\"}\n"}, early: true, words: []string{"Enable succeeded"}},
		"failure": {end: &armsim.Provisioning{ExitCode: 1, Stdout: "{\"ExitCode\":\"52\"}\n", Stderr: "provision failed"},
			code: "VMExtensionProvisioningError", words: []string{"'cse' (publisher 'Microsoft.Azure.Extensions' and type 'CustomScript')",
				"exit status=1\n[stdout]\n{\"ExitCode\":\"52\"}", "[stderr]\nprovision failed"}},
		"other command": {command: "join now", end: &armsim.Provisioning{}, code: "VMExtensionProvisioningError",
			words: []string{"exit status=127", "join: not found"}},
		"no end":  {code: "VMExtensionProvisioningTimeout", words: []string{"extension cse has timed out"}},
		"no boot": {noBoot: true, code: "VMAgentStatusCommunicationError", words: []string{"has not reported status for VM agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := subscribe(t, armtest.Realistic, reportsProvisioning)
				if c.noBoot {
					u.fault(armsim.Fault{Kind: armsim.FaultNoBoot})
				}
				u.mustBuy("a", machine{size: "Standard_D4s_v5"})
				report := func() {
					time.Sleep(3 * time.Minute) // it has booted
					if c.end != nil {
						u.Server.ReportProvisioned("/subscriptions/"+u.SubscriptionID+"/resourceGroups/"+u.NodeResourceGroup+
							"/providers/Microsoft.Compute/virtualMachines/a", *c.end)
					}
				}
				if c.early {
					report()
				}
				command := c.command
				if command == "" {
					command = provisionWait
				}
				p := u.script("a", command)
				if !c.early {
					time.Sleep(2 * time.Minute)
					if got := u.status("a"); *got.Code != "ProvisioningState/transitioning" || p.Done() {
						t.Errorf("before the end the status is %s", *got.Code)
					}
					report()
				}
				_, err := p.PollUntilDone(t.Context(), nil)
				status := u.status("a")
				if c.code == "" {
					if err != nil || *status.Code != "ProvisioningState/succeeded" {
						t.Errorf("status %s, %v", *status.Code, err)
					}
				} else {
					wantError(t, err, c.code, c.words[0])
					if *status.Code != "ProvisioningState/failed/1" || *status.Level != armcompute.StatusLevelTypesError {
						t.Errorf("status %+v", status)
					}
				}
				for _, word := range c.words {
					if text := *status.Message; !strings.Contains(text, word) && (err == nil || !strings.Contains(plain(err), word)) {
						t.Errorf("neither the status %q nor the error %v says %q", text, err, word)
					}
				}
			})
		})
	}
}

// plain undoes the quoting of a JSON document in an error's text.
func plain(err error) string { return strings.ReplaceAll(err.Error(), `\"`, `"`) }

func TestAKSMachineEndsAsItsProvisioning(t *testing.T) {
	for name, c := range map[string]struct {
		end         *armsim.Provisioning
		state, code string
	}{
		"success": {&armsim.Provisioning{Stdout: "{}"}, "Succeeded", ""},
		"failure": {&armsim.Provisioning{ExitCode: 1, Stdout: `{"ExitCode":"51"}`}, "Failed", "VMExtensionProvisioningError"},
		"no end":  {nil, "Failed", "VMExtensionProvisioningTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := subscribe(t, armtest.Realistic, reportsProvisioning)
				status, header, body := u.raw("PUT", u.machinePath("default-abcde"), previewVersion, nil, aksMachine("Standard_D4s_v5", "1"))
				if status != 201 {
					t.Fatalf("%d %v", status, body)
				}
				operation, _, _ := strings.Cut(strings.TrimPrefix(header.Get("Azure-AsyncOperation"), armtest.Endpoint), "?")
				look := func(state, operationState string) map[string]any {
					t.Helper()
					_, _, machine := u.raw("GET", u.machinePath("default-abcde"), previewVersion, nil, nil)
					_, _, op := u.raw("GET", operation, previewVersion, nil, nil)
					properties := machine["properties"].(map[string]any)
					if properties["provisioningState"] != state || op["status"] != operationState {
						t.Errorf("machine %v, operation %v; want %s, %s", properties["provisioningState"], op["status"], state, operationState)
					}
					return properties["status"].(map[string]any)
				}
				time.Sleep(5 * time.Minute)
				look("Creating", "InProgress")
				if c.end != nil {
					u.Server.ReportProvisioned(u.Server.Machines()[0].ID, *c.end)
				}
				time.Sleep(2 * time.Hour)
				failure, _ := look(c.state, c.state)["provisioningError"].(map[string]any)
				if got, _ := failure["code"].(string); got != c.code {
					t.Errorf("the machine's error is %v, want %s", failure, c.code)
				}
				if text, _ := failure["message"].(string); c.end != nil && c.code != "" && !strings.Contains(text, `{"ExitCode":"51"}`) {
					t.Errorf("the message is %q", text)
				}
			})
		})
	}
}
