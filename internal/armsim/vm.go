package armsim

import (
	"net/http"
	"strings"
)

const actionVMWrite, actionVMDelete = "Microsoft.Compute/virtualMachines/write", "Microsoft.Compute/virtualMachines/delete"

// putVM creates a machine, or changes what may be changed of one that exists.
func (s *Server) putVM(c *call) (reply, error) {
	var body vmBody
	doc, err := decodeBody(c.body, &body)
	if err != nil {
		return reply{}, err
	}
	stamp(c.path, doc)
	if old := s.find(c.path.id()); old != nil {
		if c.r.Header.Get("If-None-Match") == "*" {
			return reply{}, newError(http.StatusPreconditionFailed, "PreconditionFailed", "Virtual machine %s exists already.", c.path.name())
		}
		return s.updateVM(c, old, doc, body)
	}
	if err := s.checkTags(doc); err != nil {
		return reply{}, err
	}
	m := body.spec(c.path.name())
	nics, err := s.checkVM(c.path, body, m)
	if err != nil {
		return reply{}, err
	}
	if err := s.authorizeUse(c, nics, doc); err != nil {
		return reply{}, err
	}
	customData := body.Properties.OSProfile.CustomData
	failure, now := s.allocate(c.path.id(), m)
	if failure != nil && now {
		if failure.Code != "OperationNotAllowed" { // quota is looked at before the network is touched
			s.reserveNICs(nics, c.path.id())
		}
		return reply{}, failure
	}
	r := s.createVM(c.path, doc, m, failure)
	r.VM.CustomData = customData
	for _, n := range nics {
		n.NIC.VM = r.ID
		s.put(n, withProperties(n.Doc, document{"virtualMachine": document{"id": r.ID}}))
		setDefault(&r.VM.Address, n.NIC.primary())
	}
	return s.accepted(c, http.StatusCreated, s.st.Operations[r.VM.Operation], r.Doc), nil
}

// authorizeUse checks the permissions on what the machine uses.
func (s *Server) authorizeUse(c *call, nics []*resource, doc document) error {
	for _, n := range nics {
		if err := s.authorizeLinked(c, "Microsoft.Network/networkInterfaces/join/action", n.ID); err != nil {
			return err
		}
	}
	identities, _ := at(doc, "identity", "userAssignedIdentities").(document)
	for id := range identities {
		if err := s.authorizeLinked(c, "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", id); err != nil {
			return err
		}
	}
	if err := s.authorizeImage(c, text(doc, "properties", "storageProfile", "imageReference", "id")); err != nil {
		return err
	}
	return s.authorizeLinked(c, "Microsoft.Compute/diskEncryptionSets/read", text(doc, "properties", "storageProfile", "osDisk", "managedDisk", "diskEncryptionSet", "id"))
}

// createVM stores a machine that was accepted and plans what becomes of it.
func (s *Server) createVM(p path, doc document, m vmSpec, failure *apiError) *resource {
	r := &resource{ID: p.id(), Typ: typeVM, Group: p.group}
	op := s.start(actionVMWrite, r.ID)
	r.VM = &vmState{ID: s.guid(), Spec: m, Phase: phaseCreating, Operation: op.ID, Failure: failure, CreatedAt: s.now()}
	props := section(doc, "properties")
	props["vmId"] = r.VM.ID
	props["provisioningState"] = string(phaseCreating)
	props["timeCreated"] = timestamp(s.now())
	if os, ok := props["osProfile"].(document); ok {
		delete(os, "customData")
		delete(os, "adminPassword")
	}
	disk := section(section(doc, "properties"), "storageProfile")
	osDisk := section(disk, "osDisk")
	osDisk["name"], osDisk["osType"] = m.OSDisk, "Linux"
	section(osDisk, "managedDisk")["id"] = s.diskID(p.group, m.OSDisk)
	s.count(r, 1)
	s.put(r, doc)
	s.record(AuditEntry{Kind: AuditLifecycle, Action: "vm.accepted", Resource: r.ID, Detail: m.Size + " zone " + m.Zone + " " + m.Priority, Tags: tagsOf(doc)})
	s.stats["vm.accepted"]++
	s.planCreation(r, op)
	return r
}

// retryVM looks for a place again for a machine that found none.
func (s *Server) retryVM(c *call, r *resource) (reply, error) {
	failure, now := s.allocate(r.ID, r.VM.Spec)
	if failure != nil && now {
		return reply{}, failure
	}
	op := s.start(actionVMWrite, r.ID)
	r.VM.Phase, r.VM.Operation, r.VM.Failure = phaseCreating, op.ID, failure
	s.count(r, 1)
	s.put(r, withProperties(r.Doc, document{"provisioningState": string(phaseCreating)}))
	s.event("vm.accepted", r.ID, "again")
	s.planCreation(r, op)
	return s.accepted(c, http.StatusOK, op, r.Doc), nil
}

// planCreation plans the end of a creation.
func (s *Server) planCreation(r *resource, op *operation) {
	t := task{Kind: taskVMCreated, Key: key(r.ID), Op: op.ID, Life: r.VM.ID}
	delay := s.sample(s.cfg.Latency.VMCreate)
	if r.VM.Failure != nil {
		t.Kind, delay = taskVMFailed, s.sample(s.cfg.Latency.VMFail)
	} else {
		s.createDisk(s.diskID(r.Group, r.VM.Spec.OSDisk), r)
	}
	s.schedule(delay, s.target(r.ID, actionVMWrite, r.VM.Spec), t)
}

// vmImmutable are the properties that a PUT on an existing machine must repeat.
var vmImmutable = [][]string{
	{"priority"}, {"osProfile", "computerName"}, {"osProfile", "adminUsername"},
	{"storageProfile", "imageReference", "id"}, {"storageProfile", "imageReference", "communityGalleryImageId"},
	{"storageProfile", "osDisk", "name"}, {"hardwareProfile", "vmSize"}, {"securityProfile", "securityType"},
}

// updateVM is a PUT on a machine that exists.
func (s *Server) updateVM(c *call, old *resource, doc document, body vmBody) (reply, error) {
	if old.VM.Phase == phaseDeleting {
		return reply{}, newError(http.StatusConflict, "OperationNotAllowed", "Operation 'PUT' is not allowed on VM '%s' since the VM is marked for deletion. You can only retry the Delete operation (or wait for an ongoing one to complete).", c.path.name())
	}
	oldProps, _ := old.Doc["properties"].(document)
	newProps, _ := doc["properties"].(document)
	for _, keys := range vmImmutable {
		if was, is := text(oldProps, keys...), text(newProps, keys...); is != "" && !strings.EqualFold(was, is) {
			return reply{}, errImmutable(strings.Join(keys, "."))
		}
	}
	if data := body.Properties.OSProfile.CustomData; data != "" && data != old.VM.CustomData {
		return reply{}, errImmutable("osProfile.customData")
	}
	if m := body.spec(c.path.name()); m.Zone != old.VM.Spec.Zone {
		return reply{}, errImmutable("zones")
	}
	switch old.VM.Phase {
	case phaseCreating:
		return s.accepted(c, http.StatusOK, s.st.Operations[old.VM.Operation], old.Doc), nil
	case phaseFailed:
		return s.retryVM(c, old)
	}
	return s.changeVM(c, old, document{"tags": doc["tags"], "identity": doc["identity"]})
}

// patchVM changes tags and identities, which is all that may change of a running machine here.
func (s *Server) patchVM(c *call) (reply, error) {
	patch, err := decodeBody(c.body, nil)
	if err != nil {
		return reply{}, err
	}
	old := s.find(c.path.id())
	if old == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	if props, _ := patch["properties"].(document); props != nil {
		for _, keys := range vmImmutable {
			if is := text(props, keys...); is != "" && !strings.EqualFold(is, text(old.Doc["properties"].(document), keys...)) {
				return reply{}, errImmutable(strings.Join(keys, "."))
			}
		}
	}
	return s.changeVM(c, old, patch)
}

// changeVM merges identities and replaces tags. A null leaves things as they are.
func (s *Server) changeVM(c *call, old *resource, patch document) (reply, error) {
	if err := s.checkTags(patch); err != nil {
		return reply{}, err
	}
	if err := checkMatch(c, old); err != nil {
		return reply{}, err
	}
	doc := clone(old.Doc)
	if tags, ok := patch["tags"].(document); ok {
		doc["tags"] = cloneValue(tags)
	}
	if err := s.authorizeUse(c, nil, patch); err != nil {
		return reply{}, err
	}
	if identity, ok := patch["identity"].(document); ok {
		merge(section(doc, "identity"), identity)
	}
	s.put(old, doc)
	return reply{status: http.StatusOK, body: doc}, nil
}

// checkMatch honours If-Match.
func checkMatch(c *call, r *resource) error {
	want, has := c.r.Header.Get("If-Match"), text(r.Doc, "etag")
	if want == "" || want == "*" || want == has {
		return nil
	}
	return newError(http.StatusPreconditionFailed, "PreconditionFailed", "The precondition given in one of the request headers evaluated to false: If-Match is %s, the resource has %s.", want, has)
}

// getVM shows a machine.
func (s *Server) getVM(c *call) (reply, error) {
	r := s.find(c.path.id())
	if r == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	doc := r.Doc
	if c.r.URL.Query().Get("$expand") == "instanceView" {
		doc = withProperties(doc, document{"instanceView": s.instanceView(r)})
	}
	return reply{status: http.StatusOK, body: doc}, nil
}

// getInstanceView shows what the platform sees of the machine.
func (s *Server) getInstanceView(c *call) (reply, error) {
	r := s.find(c.path.parent())
	if r == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	return reply{status: http.StatusOK, body: s.instanceView(r)}, nil
}

func (s *Server) instanceView(r *resource) document {
	status := func(code, level, display string) document {
		return document{"code": code, "level": level, "displayStatus": display}
	}
	state := status("ProvisioningState/"+strings.ToLower(string(r.VM.Phase)), "Info", "Provisioning "+strings.ToLower(string(r.VM.Phase)))
	if f := r.VM.Failure; f != nil && r.VM.Phase == phaseFailed {
		state = status("ProvisioningState/failed/"+f.Code, "Error", "Provisioning failed")
		state["message"] = f.Message
	} else if r.VM.Phase == phaseSucceeded && text(r.Doc, "properties", "provisioningState") == "Failed" {
		state = status("ProvisioningState/failed/VMExtensionProvisioningError", "Error", "Provisioning failed")
		state["message"] = "VM has reported a failure when processing an extension."
	}
	view := document{"computerName": r.VM.Spec.ComputerName, "osName": "linux"}
	power := status("PowerState/running", "Info", "VM running")
	agent := status("ProvisioningState/Unavailable", "Warning", "Not Ready")
	agent["message"] = "VM status blob is found but not yet populated."
	switch {
	case r.VM.Phase == phaseFailed || r.VM.Phase == phaseDeallocated:
		power = status("PowerState/deallocated", "Info", "VM deallocated")
	case r.VM.Phase == phaseCreating:
		power = status("PowerState/starting", "Info", "VM starting")
	case r.VM.Guest != "":
		agent["message"] = r.VM.Guest
	case r.VM.Booted:
		agent = status("ProvisioningState/succeeded", "Info", "Ready")
	}
	view["statuses"] = []any{state, power}
	extensions := []any{}
	for _, e := range s.extensionsOf(r) {
		ran := text(e.Doc, "properties", "provisioningState")
		one := status("ProvisioningState/"+strings.ToLower(ran), "Info", "Provisioning "+strings.ToLower(ran))
		if e.Trouble != "" {
			one = status("ProvisioningState/failed/1", "Error", "Provisioning failed")
			one["message"] = e.Trouble
		}
		extensions = append(extensions, document{"name": lastSegment(e.ID), "type": text(e.Doc, "properties", "type"), "statuses": []any{one}})
	}
	if len(extensions) > 0 {
		view["extensions"] = extensions
	}
	view["vmAgent"] = document{"vmAgentVersion": "2.13.1.1", "statuses": []any{agent}}
	return view
}

// deleteVM starts the end of a machine.
func (s *Server) deleteVM(c *call) (reply, error) {
	r := s.find(c.path.id())
	if r == nil {
		return reply{status: http.StatusNoContent}, nil
	}
	return s.accepted(c, http.StatusAccepted, s.beginDelete(r, c.r.URL.Query().Get("forceDeletion") == "true"), nil), nil
}

// beginDelete marks a machine for deletion. Forced, it loses its power at
// once; otherwise it runs to the end of the operation.
func (s *Server) beginDelete(r *resource, force bool) *operation {
	v := r.VM
	s.finish(v.Operation, newError(http.StatusConflict, "OperationPreempted", "The operation has been preempted by a more recent operation."))
	if v.Phase != phaseDeleting {
		v.Phase = phaseDeleting
		s.put(r, withProperties(r.Doc, document{"provisioningState": string(phaseDeleting)}))
		s.event("vm.deleting", r.ID, "")
	}
	if force {
		s.powerOff(r)
	}
	op := s.start(actionVMDelete, r.ID)
	s.schedule(s.sample(s.cfg.Latency.VMDelete), s.target(r.ID, actionVMDelete, v.Spec),
		task{Kind: taskVMDeleted, Key: key(r.ID), Op: op.ID, Life: v.ID})
	return op
}

// simulateEviction evicts one spot machine, as the API of that name does.
func (s *Server) simulateEviction(c *call) (reply, error) {
	r := s.find(c.path.parent())
	if r == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	if r.VM.Spec.Priority != prioritySpot {
		return reply{}, newError(http.StatusConflict, "OperationNotAllowed", "Operation 'simulateEviction' is not allowed on VM '%s' since it is not a spot VM.", lastSegment(r.ID))
	}
	s.vmWarn(r)
	return reply{status: http.StatusNoContent}, nil
}
