package armsim

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// putExtension runs an extension on a machine. Which one makes no difference: it
// takes its time, and succeeds unless a fault says otherwise.
func (s *Server) putExtension(c *call) (reply, error) {
	doc, err := decodeBody(c.body, nil)
	if err != nil {
		return reply{}, err
	}
	vm, err := s.extensible(c, doc)
	switch {
	case err != nil:
		return reply{}, err
	case text(doc, "properties", "type") == "" || text(doc, "properties", "publisher") == "":
		return reply{}, errInvalidParameter("extension", "Required parameters 'publisher' and 'type' are missing (null) for extension %s.", c.path.name())
	}
	stamp(c.path, doc)
	r, status, state := s.find(c.path.id()), http.StatusOK, "Updating"
	if r == nil {
		r, status, state = &resource{ID: c.path.id(), Typ: typeExtension, Group: c.path.group}, http.StatusCreated, "Creating"
	}
	props := section(doc, "properties")
	if secret, ok := props["protectedSettings"].(document); ok {
		r.Secret = secret
		delete(props, "protectedSettings")
	}
	return s.runExtension(c, vm, r, withProperties(doc, document{"provisioningState": state}), status), nil
}

// patchExtension changes an extension, which then runs again.
func (s *Server) patchExtension(c *call) (reply, error) {
	patch, err := decodeBody(c.body, nil)
	if err != nil {
		return reply{}, err
	}
	vm, err := s.extensible(c, patch)
	if err != nil {
		return reply{}, err
	}
	r := s.find(c.path.id())
	if r == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	if err := checkMatch(c, r); err != nil {
		return reply{}, err
	}
	doc := clone(r.Doc)
	if tags, ok := patch["tags"].(document); ok { // tags are replaced as a whole
		doc["tags"] = cloneValue(tags)
		delete(patch, "tags")
	}
	merge(doc, patch)
	return s.runExtension(c, vm, r, withProperties(doc, document{"provisioningState": "Updating"}), http.StatusOK), nil
}

// extensible is the machine whose extension a call changes.
func (s *Server) extensible(c *call, doc document) (*resource, error) {
	vm := s.find(c.path.parent())
	switch {
	case vm == nil:
		return nil, newError(http.StatusNotFound, "ParentResourceNotFound", "Failed to perform 'write' on resource(s) of type 'virtualMachines/extensions', because the parent resource '%s' could not be found.", c.path.parent())
	case vm.VM.Phase == phaseFailed || vm.VM.Phase == phaseDeleting || vm.VM.Phase == phaseDeallocated:
		return nil, newError(http.StatusConflict, "OperationNotAllowed", "Cannot modify extensions in the VM when the VM is not running.")
	}
	return vm, s.checkTags(doc)
}

// actionExtend is what a fault names to strike extensions.
const actionExtend = "Microsoft.Compute/virtualMachines/extensions/write"

// runExtension stores an extension and plans how its operation ends.
func (s *Server) runExtension(c *call, vm, r *resource, doc document, status int) reply {
	r.Failure, r.Trouble = nil, ""
	target := s.target(r.ID, actionExtend, vm.VM.Spec)
	target.Named = true // a failing machine is another fault
	if f := s.strike(target, FaultFail); f != nil {
		r.Failure = newError(http.StatusConflict, f.Code, "%s", cmp.Or(f.Message, "VM has reported a failure when processing extension '"+c.path.name()+"'."))
	}
	s.put(r, doc)
	op := s.start(c.route.action, r.ID)
	s.schedule(s.sample(s.cfg.Latency.Extend), s.target(r.ID, c.route.action, vm.VM.Spec), task{Kind: taskOperation, Key: key(r.ID), Op: op.ID})
	return s.accepted(c, status, op, doc)
}

// showExtensions repeats the extensions of a machine in its document, where
// Azure shows them too.
func (s *Server) showExtensions(changed *resource) {
	id, _, _ := cutLast(changed.ID, "/extensions/")
	vm := s.find(id)
	if vm == nil {
		return
	}
	shown := []any{}
	for _, e := range s.extensionsOf(vm) {
		shown = append(shown, e.Doc)
	}
	doc := clone(vm.Doc)
	doc["resources"] = shown
	s.put(vm, doc)
}

// settled marks a resource whose operation has ended, and says how.
func (s *Server) settled(r *resource) *apiError {
	if state := text(r.Doc, "properties", "provisioningState"); state != "Creating" && state != "Updating" {
		return nil
	}
	failure, state := r.Failure, "Succeeded"
	r.Failure = nil
	if failure != nil {
		state, r.Trouble = "Failed", failure.Message
	}
	s.put(r, withProperties(r.Doc, document{"provisioningState": state}))
	if r.Typ == typeExtension {
		s.markExtended(r)
	}
	return failure
}

// markExtended makes a machine look as its extensions do: one that failed fails the
// machine's own state too, though it runs.
func (s *Server) markExtended(changed *resource) {
	id, _, _ := cutLast(changed.ID, "/extensions/")
	vm := s.find(id)
	if vm == nil || vm.VM.Phase != phaseSucceeded {
		return
	}
	state := string(phaseSucceeded)
	for _, e := range s.extensionsOf(vm) {
		if text(e.Doc, "properties", "provisioningState") == "Failed" {
			state = string(phaseFailed)
		}
	}
	s.put(vm, withProperties(vm.Doc, document{"provisioningState": state}))
}

// extensionsOf lists the extensions of a machine by name.
func (s *Server) extensionsOf(vm *resource) []*resource {
	var out []*resource
	prefix := key(vm.ID) + "/extensions/"
	for k, e := range s.st.byType[typeExtension] {
		if strings.HasPrefix(k, prefix) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *resource) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// extensionOf is an extension as the machine sees it.
func extensionOf(r *resource) Extension {
	settings, _ := at(r.Doc, "properties", "settings").(document)
	return Extension{Name: lastSegment(r.ID), Publisher: text(r.Doc, "properties", "publisher"), Type: text(r.Doc, "properties", "type"),
		Settings: settings, ProtectedSettings: r.Secret}
}
