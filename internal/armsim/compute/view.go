package compute

import (
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// instanceView is what the platform sees of a machine and its agent.
func (h *handlers) instanceView(v *VM) arm.Document {
	status := func(code, level, display string) arm.Document {
		return arm.Document{"code": code, "level": level, "displayStatus": display}
	}
	state := status("ProvisioningState/"+strings.ToLower(string(v.Phase)), "Info", "Provisioning "+strings.ToLower(string(v.Phase)))
	if f := v.Failure; f != nil && v.Phase == phaseFailed {
		state = status("ProvisioningState/failed/"+f.Code, "Error", "Provisioning failed")
		state["message"] = f.Message
	} else if v.Phase == phaseSucceeded && arm.Text(v.Doc, "properties", "provisioningState") == "Failed" {
		state = status("ProvisioningState/failed/VMExtensionProvisioningError", "Error", "Provisioning failed")
		state["message"] = "VM has reported a failure when processing an extension."
	}
	view := arm.Document{"computerName": v.Spec.ComputerName, "osName": "linux"}
	power := status("PowerState/running", "Info", "VM running")
	agent := status("ProvisioningState/Unavailable", "Warning", "Not Ready")
	agent["message"] = "VM status blob is found but not yet populated."
	switch {
	case v.Phase == phaseFailed || v.Phase == phaseDeallocated:
		power = status("PowerState/deallocated", "Info", "VM deallocated")
	case v.Phase == phaseCreating:
		power = status("PowerState/starting", "Info", "VM starting")
	case v.Guest != "":
		agent["message"] = v.Guest
	case v.Booted:
		agent = status("ProvisioningState/succeeded", "Info", "Ready")
	}
	view["statuses"] = []any{state, power}
	extensions := []any{}
	for _, e := range h.machines.extensions.of(v.ID) {
		ran := arm.Text(e.Doc, "properties", "provisioningState")
		one := status("ProvisioningState/"+strings.ToLower(ran), "Info", "Provisioning "+strings.ToLower(ran))
		if trouble := h.machines.extensions.trouble(e); trouble != "" {
			one = status("ProvisioningState/failed/1", "Error", "Provisioning failed")
			one["message"] = trouble
		}
		extensions = append(extensions,
			arm.Document{"name": arm.LastSegment(e.ID), "type": arm.Text(e.Doc, "properties", "type"), "statuses": []any{one}})
	}
	if len(extensions) > 0 {
		view["extensions"] = extensions
	}
	view["vmAgent"] = arm.Document{"vmAgentVersion": "2.13.1.1", "statuses": []any{agent}}
	return view
}
