package armsim

import (
	"net/http"
	"slices"
	"strings"
)

// putExtension runs an extension on a machine. Which one makes no difference:
// it takes its time and succeeds.
func (s *Server) putExtension(c *call) (reply, error) {
	doc, err := decodeBody(c.body, nil)
	if err != nil {
		return reply{}, err
	}
	vm := s.find(c.path.parent())
	switch {
	case vm == nil:
		return reply{}, newError(http.StatusNotFound, "ParentResourceNotFound", "Failed to perform 'write' on resource(s) of type 'virtualMachines/extensions', because the parent resource '%s' could not be found.", c.path.parent())
	case vm.VM.Phase == phaseFailed || vm.VM.Phase == phaseDeleting:
		return reply{}, newError(http.StatusConflict, "OperationNotAllowed", "Cannot modify extensions in the VM when the VM is not running.")
	case text(doc, "properties", "type") == "" || text(doc, "properties", "publisher") == "":
		return reply{}, errInvalidParameter("extension", "Required parameters 'publisher' and 'type' are missing (null) for extension %s.", c.path.name())
	}
	stamp(c.path, doc)
	r, status := s.find(c.path.id()), http.StatusOK
	if r == nil {
		r, status = &resource{ID: c.path.id(), Typ: typeExtension, Group: c.path.group}, http.StatusCreated
	}
	props := section(doc, "properties")
	if secret, ok := props["protectedSettings"].(document); ok {
		r.Secret = secret
		delete(props, "protectedSettings")
	}
	props["provisioningState"] = "Creating"
	s.put(r, doc)
	op := s.start(c.route.action, r.ID)
	s.schedule(s.sample(s.cfg.Latency.Extend), s.target(r.ID, c.route.action, vm.VM.Spec), task{Kind: taskOperation, Key: key(r.ID), Op: op.ID})
	return s.accepted(c, status, op, doc), nil
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

// settled marks a resource whose operation has ended.
func (s *Server) settled(r *resource) {
	if state := text(r.Doc, "properties", "provisioningState"); state == "Creating" || state == "Updating" {
		s.put(r, withProperties(r.Doc, document{"provisioningState": "Succeeded"}))
	}
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
