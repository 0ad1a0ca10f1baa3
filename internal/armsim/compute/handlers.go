package compute

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// handlers answer the calls on virtual machines.
type handlers struct {
	sub      *arm.Subscription
	machines *table
	life     *lifecycle
	books    *books
	sizes    *sizes
	images   *images
	foreign  ForeignTenant
}

// put creates a machine, or changes what may be changed of one that exists.
func (h *handlers) put(c *arm.Call) (arm.Reply, error) {
	var body vmBody
	doc, err := arm.DecodeBody(c.Body, &body)
	if err != nil {
		return arm.Reply{}, err
	}
	arm.Stamp(c.Path, doc)
	if old := h.machines.find(c.Path.ID()); old != nil {
		if c.Request.Header.Get("If-None-Match") == "*" {
			return arm.Reply{}, arm.NewError(http.StatusPreconditionFailed,
				"PreconditionFailed", "Virtual machine %s exists already.", c.Path.Name())
		}
		return h.update(c, old, doc, body)
	}
	if err := arm.CheckTags(doc); err != nil {
		return arm.Reply{}, err
	}
	m := body.spec(c.Path.Name())
	nics, err := h.check(c.Path, body, m)
	if err != nil {
		return arm.Reply{}, err
	}
	if err := h.authorizeUse(c, nics, doc); err != nil {
		return arm.Reply{}, err
	}
	customData := body.Properties.OSProfile.CustomData
	failure, now := h.books.allocate(c.Path.ID(), m)
	if failure != nil && now {
		if failure.Code != "OperationNotAllowed" { // quota is looked at before the network is touched
			for _, n := range nics {
				h.life.interfaces.Reserve(n, c.Path.ID())
			}
		}
		return arm.Reply{}, failure
	}
	v := h.life.create(c.Path, doc, m, failure)
	v.CustomData = customData
	for _, n := range nics {
		v.Address = cmp.Or(v.Address, h.life.interfaces.Attach(n, v.ID))
	}
	return h.sub.Operations.Accepted(c, http.StatusCreated, v.Operation, v.Doc), nil
}

// authorizeUse checks the permissions on what the machine uses.
func (h *handlers) authorizeUse(c *arm.Call, nics []string, doc arm.Document) error {
	for _, n := range nics {
		if err := c.AuthorizeLinked("Microsoft.Network/networkInterfaces/join/action", n); err != nil {
			return err
		}
	}
	identities, _ := arm.At(doc, "identity", "userAssignedIdentities").(arm.Document)
	for id := range identities {
		if err := c.AuthorizeLinked("Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", id); err != nil {
			return err
		}
	}
	if err := h.authorizeImage(c, arm.Text(doc, "properties", "storageProfile", "imageReference", "id")); err != nil {
		return err
	}
	return c.AuthorizeLinked("Microsoft.Compute/diskEncryptionSets/read",
		arm.Text(doc, "properties", "storageProfile", "osDisk", "managedDisk", "diskEncryptionSet", "id"))
}

// authorizeImage checks that an image of a shared gallery may be used: it may be
// read, or where it is another tenant's, the request has a token of that tenant.
func (h *handlers) authorizeImage(c *arm.Call, id string) error {
	seg := strings.Split(strings.Trim(id, "/"), "/")
	if len(seg) < 2 || !strings.EqualFold(seg[0], "subscriptions") {
		return nil
	}
	if !slices.ContainsFunc(h.foreign.Subscriptions, func(f string) bool { return strings.EqualFold(f, seg[1]) }) {
		return c.AuthorizeLinked("Microsoft.Compute/galleries/images/versions/read", id)
	}
	for bearer := range strings.SplitSeq(c.Request.Header.Get("x-ms-authorization-auxiliary"), ",") {
		if token, ok := strings.CutPrefix(strings.TrimSpace(bearer), "Bearer "); ok && h.foreign.Signed(token) {
			return nil
		}
	}
	return arm.NewError(http.StatusForbidden, "LinkedAuthorizationFailed",
		"The client '%s' has permission to perform action '%s' on scope '%s', however the current tenant '%s' is not "+
			"authorized to access linked subscription '%s'.",
		c.Principal.ClientID, c.Route.Action(), c.Path.ID(), h.sub.TenantID, seg[1])
}

// retry looks for a place again for a machine that found none.
func (h *handlers) retry(c *arm.Call, v *VM) (arm.Reply, error) {
	failure, now := h.books.allocate(v.ID, v.Spec)
	if failure != nil && now {
		return arm.Reply{}, failure
	}
	h.life.retry(v, failure)
	return h.sub.Operations.Accepted(c, http.StatusOK, v.Operation, v.Doc), nil
}

// vmImmutable are the properties that a PUT on an existing machine must repeat.
var vmImmutable = [][]string{
	{"priority"}, {"osProfile", "computerName"}, {"osProfile", "adminUsername"},
	{"storageProfile", "imageReference", "id"}, {"storageProfile", "imageReference", "communityGalleryImageId"},
	{"storageProfile", "osDisk", "name"}, {"hardwareProfile", "vmSize"}, {"securityProfile", "securityType"},
}

// update is a PUT on a machine that exists.
func (h *handlers) update(c *arm.Call, old *VM, doc arm.Document, body vmBody) (arm.Reply, error) {
	if old.Phase == phaseDeleting {
		return arm.Reply{}, arm.NewError(http.StatusConflict, "OperationNotAllowed",
			"Operation 'PUT' is not allowed on VM '%s' since the VM is marked for deletion. You can only retry the Delete "+
				"operation (or wait for an ongoing one to complete).", c.Path.Name())
	}
	oldProps, _ := old.Doc["properties"].(arm.Document)
	newProps, _ := doc["properties"].(arm.Document)
	for _, keys := range vmImmutable {
		if was, is := arm.Text(oldProps, keys...), arm.Text(newProps, keys...); is != "" && !strings.EqualFold(was, is) {
			return arm.Reply{}, arm.ErrImmutable(strings.Join(keys, "."))
		}
	}
	if data := body.Properties.OSProfile.CustomData; data != "" && data != old.CustomData {
		return arm.Reply{}, arm.ErrImmutable("osProfile.customData")
	}
	if m := body.spec(c.Path.Name()); m.Zone != old.Spec.Zone {
		return arm.Reply{}, arm.ErrImmutable("zones")
	}
	switch old.Phase {
	case phaseCreating:
		return h.sub.Operations.Accepted(c, http.StatusOK, old.Operation, old.Doc), nil
	case phaseFailed:
		return h.retry(c, old)
	default: // the other phases answer as usual
	}
	return h.change(c, old, arm.Document{"tags": doc["tags"], "identity": doc["identity"]})
}

// patch changes tags and identities, which is all that may change of a running machine here.
func (h *handlers) patch(c *arm.Call) (arm.Reply, error) {
	patch, err := arm.DecodeBody(c.Body, nil)
	if err != nil {
		return arm.Reply{}, err
	}
	old := h.machines.find(c.Path.ID())
	if old == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	if props, _ := patch["properties"].(arm.Document); props != nil {
		for _, keys := range vmImmutable {
			if is := arm.Text(props, keys...); is != "" && !strings.EqualFold(is, arm.Text(old.Doc["properties"].(arm.Document), keys...)) {
				return arm.Reply{}, arm.ErrImmutable(strings.Join(keys, "."))
			}
		}
	}
	return h.change(c, old, patch)
}

// change merges identities and replaces tags. A null leaves things as they are.
func (h *handlers) change(c *arm.Call, old *VM, patch arm.Document) (arm.Reply, error) {
	if err := arm.CheckTags(patch); err != nil {
		return arm.Reply{}, err
	}
	if err := c.CheckMatch(old.Resource); err != nil {
		return arm.Reply{}, err
	}
	doc := arm.Clone(old.Doc)
	if tags, ok := patch["tags"].(arm.Document); ok {
		doc["tags"] = arm.CloneValue(tags)
	}
	if err := h.authorizeUse(c, nil, patch); err != nil {
		return arm.Reply{}, err
	}
	if identity, ok := patch["identity"].(arm.Document); ok {
		arm.Merge(arm.Section(doc, "identity"), identity)
	}
	h.sub.Resources.Put(old.Resource, doc)
	return arm.Reply{Status: http.StatusOK, Body: doc}, nil
}

// get shows a machine.
func (h *handlers) get(c *arm.Call) (arm.Reply, error) {
	v := h.machines.find(c.Path.ID())
	if v == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	doc := v.Doc
	if c.Request.URL.Query().Get("$expand") == "instanceView" {
		doc = arm.WithProperties(doc, arm.Document{"instanceView": h.instanceView(v)})
	}
	return arm.Reply{Status: http.StatusOK, Body: doc}, nil
}

// getInstanceView shows what the platform sees of the machine.
func (h *handlers) getInstanceView(c *arm.Call) (arm.Reply, error) {
	v := h.machines.find(c.Path.Parent())
	if v == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	return arm.Reply{Status: http.StatusOK, Body: h.instanceView(v)}, nil
}

// remove starts the end of a machine.
func (h *handlers) remove(c *arm.Call) (arm.Reply, error) {
	v := h.machines.find(c.Path.ID())
	if v == nil {
		return arm.Reply{Status: http.StatusNoContent}, nil
	}
	return h.sub.Operations.Accepted(c, http.StatusAccepted,
		h.life.beginDelete(v, c.Request.URL.Query().Get("forceDeletion") == "true"), nil), nil
}

// restart reboots a machine that runs (Virtual Machines - Restart).
func (h *handlers) restart(c *arm.Call) (arm.Reply, error) {
	v := h.machines.find(c.Path.Parent())
	if v == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	if v.Phase != phaseSucceeded {
		return arm.Reply{}, arm.NewError(http.StatusConflict, "OperationNotAllowed",
			"Operation 'restart' is not allowed on VM '%s' since the VM is in the state %s.", arm.LastSegment(v.ID), v.Phase)
	}
	return h.sub.Operations.Accepted(c, http.StatusAccepted, h.life.restart(v), nil), nil
}

// simulateEviction evicts one spot machine, as the API of that name does.
func (h *handlers) simulateEviction(c *arm.Call) (arm.Reply, error) {
	v := h.machines.find(c.Path.Parent())
	if v == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	if v.Spec.Priority != arm.Spot {
		return arm.Reply{}, arm.NewError(http.StatusConflict, "OperationNotAllowed",
			"Operation 'simulateEviction' is not allowed on VM '%s' since it is not a spot VM.", arm.LastSegment(v.ID))
	}
	h.life.warn(v)
	return arm.Reply{Status: http.StatusNoContent}, nil
}

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
	case v.Booted:
		agent = status("ProvisioningState/succeeded", "Info", "Ready")
	}
	view["statuses"] = []any{state, power}
	extensions := []any{}
	for _, e := range h.machines.extensions.of(v.ID) {
		extensions = append(extensions, h.machines.extensions.view(e))
	}
	if len(extensions) > 0 {
		view["extensions"] = extensions
	}
	view["vmAgent"] = arm.Document{"vmAgentVersion": "2.13.1.1", "statuses": []any{agent}}
	return view
}
