package compute

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Provisioning is how the provisioning of a machine has ended, as the program says that an
// extension runs to wait for it.
type Provisioning struct {
	ExitCode int    `json:"exitCode"` // of the program
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr,omitempty"`
}

// BrokenBoot is a provisioning that a fault ends.
type BrokenBoot struct {
	ExitCode int    `json:"exitCode"` // of the provisioning scripts
	Output   string `json:"output"`   // its last lines
}

// end is what the program says that waits for the provisioning; b is nil without a fault.
func (b *BrokenBoot) end() Provisioning {
	status := struct{ ExitCode, Output, Error, ExecDuration string }{ExitCode: "0", ExecDuration: "1"}
	out := Provisioning{}
	if b != nil {
		status.ExitCode, status.Output, out.ExitCode = strconv.Itoa(b.ExitCode), b.Output, 1
	}
	text, err := json.Marshal(status)
	if err != nil {
		return Provisioning{ExitCode: 1, Stderr: err.Error()} // cannot happen: texts alone
	}
	out.Stdout = string(text) + "\n"
	return out
}

// message is what an extension says about the run of the program.
func (p Provisioning) message() string {
	streams := "\n[stdout]\n" + p.Stdout + "\n[stderr]\n" + p.Stderr
	if p.ExitCode == 0 {
		return "Enable succeeded: " + streams
	}
	return fmt.Sprintf("Enable failed: failed to execute command: command terminated with exit status=%d%s", p.ExitCode, streams)
}

// Failure is the error of the extension, of that name, that has waited for the provisioning;
// nil when that went well.
func (p Provisioning) Failure(extension string) *arm.Error {
	if p.ExitCode == 0 {
		return nil
	}
	return scriptFailure(extension, p.message())
}

func scriptFailure(extension, message string) *arm.Error {
	return arm.NewError(http.StatusConflict, "VMExtensionProvisioningError", "VM has reported a failure when processing extension '%s' "+
		"(publisher 'Microsoft.Azure.Extensions' and type 'CustomScript'). Error message: '%s'. "+
		"More information on troubleshooting is available at https://aka.ms/VMExtensionCSELinuxTroubleshoot. ", extension, message)
}

// ScriptTimeout is the error of an extension for which Azure has waited ExtensionTimeout.
func ScriptTimeout(extension string) *arm.Error {
	return arm.NewError(http.StatusConflict, "VMExtensionProvisioningTimeout", "Provisioning of VM extension %s has timed out. "+
		"Extension provisioning has taken too long to complete. The extension last reported \"Plugin enabled\".\r\n\r\n"+
		"More information on troubleshooting is available at https://aka.ms/VMExtensionCSELinuxTroubleshoot", extension)
}

// provisionWait is the command by which an extension waits for the provisioning of an AKS
// node image.
const provisionWait = "/opt/azure/containers/aks-node-controller provision-wait"

// taskExtensionLate: an extension has taken too long.
const taskExtensionLate arm.TaskKind = "extension.late"

// ExtensionTimeout is how long Azure waits for an extension.
const ExtensionTimeout = 90 * time.Minute

// isScript reports whether an extension runs a script on Linux, version 2.
func isScript(doc arm.Document) bool {
	return strings.EqualFold(arm.Text(doc, "properties", "publisher"), "Microsoft.Azure.Extensions") &&
		strings.EqualFold(arm.Text(doc, "properties", "type"), "CustomScript")
}

// await has a script's operation end when the machine's provisioning has.
func (s *extensions) await(vm *VM, r *arm.Resource, op string) {
	s.sub.Tasks.After(ExtensionTimeout, arm.Task{Kind: taskExtensionLate, Key: arm.Key(r.ID), Op: op, Life: vm.VMID})
	if vm.Provisioned != nil {
		s.complete(vm, r)
	}
}

// provisioned ends the extensions that have waited for a machine's provisioning.
func (s *extensions) provisioned(vm *VM) {
	for _, r := range s.of(vm.ID) {
		if isScript(r.Doc) && s.running(r) && s.own(r).Failure == nil && s.own(r).Message == "" {
			s.complete(vm, r)
		}
	}
}

// complete plans the end of a script: the machine's agent reports it at its next turn.
func (s *extensions) complete(vm *VM, r *arm.Resource) {
	own := s.own(r)
	end := *vm.Provisioned
	if command, _ := own.Secret["commandToExecute"].(string); strings.TrimSpace(command) != provisionWait {
		if command == "" {
			command = arm.Text(r.Doc, "properties", "settings", "commandToExecute")
		}
		if strings.TrimSpace(command) != provisionWait {
			program, _, _ := strings.Cut(strings.TrimSpace(command), " ")
			end = Provisioning{ExitCode: 127, Stderr: "/bin/sh: 1: " + program + ": not found\n"}
		}
	}
	own.Message = end.message()
	if end.ExitCode != 0 {
		own.Failure = scriptFailure(arm.LastSegment(r.ID), own.Message)
	}
	s.sub.Faults.Schedule(s.sub.Random.Sample(s.latency), s.machines.target(r.ID, actionExtend, vm.Spec),
		arm.Task{Kind: taskExtended, Key: arm.Key(r.ID), Op: own.Operation})
}

// late ends an extension that Azure no longer waits for.
func (s *extensions) late(t arm.Task) {
	r := s.sub.Resources.Find(t.Key)
	if r == nil || s.own(r).Operation != t.Op || s.own(r).Message != "" || !s.running(r) {
		return
	}
	failure := ScriptTimeout(arm.LastSegment(r.ID))
	if vm := s.machineOf(r); vm != nil && !vm.Booted {
		failure = arm.NewError(http.StatusConflict, "VMAgentStatusCommunicationError", "VM '%s' has not reported status for VM agent or "+
			"extensions. Verify that the OS is up and healthy, the VM has a running VM agent, and that it can establish outbound "+
			"connections to Azure storage. Please refer to https://aka.ms/vmextensionlinuxtroubleshoot for additional VM agent "+
			"troubleshooting information.", arm.LastSegment(vm.ID))
	}
	s.own(r).Failure = failure
	s.sub.Operations.Finish(t.Op, s.settled(r))
}

// running reports whether the operation of an extension has not ended.
func (s *extensions) running(r *arm.Resource) bool {
	state := arm.Text(r.Doc, "properties", "provisioningState")
	return state == "Creating" || state == "Updating"
}

// view is what the machine's agent says about an extension.
func (s *extensions) view(r *arm.Resource) arm.Document {
	state := strings.ToLower(arm.Text(r.Doc, "properties", "provisioningState"))
	one := arm.Document{"code": "ProvisioningState/" + state, "level": "Info", "displayStatus": "Provisioning " + state}
	own := s.own(r)
	switch {
	case state == "failed":
		one = arm.Document{"code": "ProvisioningState/failed/1", "level": "Error", "displayStatus": "Provisioning failed", "message": own.Message}
	case state == "creating" || state == "updating":
		one = arm.Document{
			"code": "ProvisioningState/transitioning", "level": "Info", "displayStatus": "Transitioning", "message": "Plugin enabled",
		}
	case own.Message != "":
		one["message"] = own.Message
	}
	return arm.Document{
		"name": arm.LastSegment(r.ID), "statuses": []any{one},
		"type":               arm.Text(r.Doc, "properties", "publisher") + "." + arm.Text(r.Doc, "properties", "type"),
		"typeHandlerVersion": arm.Text(r.Doc, "properties", "typeHandlerVersion") + ".10",
	}
}

// get answers with an extension, and with $expand=instanceView with what the agent says.
func (s *extensions) get(c *arm.Call) (arm.Reply, error) {
	r := s.sub.Resources.Find(c.Path.ID())
	if r == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	doc := r.Doc
	if strings.EqualFold(c.Request.URL.Query().Get("$expand"), "instanceView") {
		doc = arm.WithProperties(doc, arm.Document{"instanceView": s.view(r)})
	}
	return arm.Reply{Status: http.StatusOK, Body: doc}, nil
}
