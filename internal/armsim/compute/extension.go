package compute

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// TypeExtension is the type of VM extensions.
const TypeExtension = "microsoft.compute/virtualmachines/extensions"

// actionExtend is what a fault names to strike extensions.
const actionExtend = "Microsoft.Compute/virtualMachines/extensions/write"

// taskExtended: the operation of an extension ends.
const taskExtended arm.TaskKind = "extension.ended"

// extensions run on machines. A script ends as the machine's provisioning, for which it
// waits. Any other extension takes its time, and succeeds unless a fault says otherwise.
type extensions struct {
	sub      *arm.Subscription
	latency  arm.Distribution // of a run, before the time scale
	machines *table
	byKey    map[string]*extension // by key of the resource
}

// extension is what only the simulator knows of an extension.
type extension struct {
	// Secret is what was sent but is never shown: the protected settings.
	Secret arm.Document `json:"secret,omitempty"`
	// Message is what the extension says about its run, empty until it has ended.
	Message string `json:"message,omitempty"`
	// Operation is the operation of its last write.
	Operation string `json:"operation,omitempty"`
	// Failure is what the operation that is under way will end with.
	Failure *arm.Error `json:"failure,omitempty"`
}

// put runs an extension on a machine.
func (s *extensions) put(c *arm.Call) (arm.Reply, error) {
	doc, err := arm.DecodeBody(c.Body, nil)
	if err != nil {
		return arm.Reply{}, err
	}
	vm, err := s.extensible(c, doc)
	switch {
	case err != nil:
		return arm.Reply{}, err
	case arm.Text(doc, "properties", "type") == "" || arm.Text(doc, "properties", "publisher") == "":
		return arm.Reply{}, arm.ErrInvalidParameter("extension",
			"Required parameters 'publisher' and 'type' are missing (null) for extension %s.", c.Path.Name())
	}
	arm.Stamp(c.Path, doc)
	r, status, state := s.sub.Resources.Find(c.Path.ID()), http.StatusOK, "Updating"
	if r == nil {
		r, status, state = &arm.Resource{ID: c.Path.ID(), Type: TypeExtension, Group: c.Path.Group}, http.StatusCreated, "Creating"
	}
	props := arm.Section(doc, "properties")
	if secret, ok := props["protectedSettings"].(arm.Document); ok {
		s.own(r).Secret = secret
		delete(props, "protectedSettings")
	}
	return s.run(c, vm, r, arm.WithProperties(doc, arm.Document{"provisioningState": state}), status), nil
}

// patch changes an extension, which then runs again.
func (s *extensions) patch(c *arm.Call) (arm.Reply, error) {
	patch, err := arm.DecodeBody(c.Body, nil)
	if err != nil {
		return arm.Reply{}, err
	}
	vm, err := s.extensible(c, patch)
	if err != nil {
		return arm.Reply{}, err
	}
	r := s.sub.Resources.Find(c.Path.ID())
	if r == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	if err := c.CheckMatch(r); err != nil {
		return arm.Reply{}, err
	}
	doc := arm.Patched(r.Doc, patch)
	return s.run(c, vm, r, arm.WithProperties(doc, arm.Document{"provisioningState": "Updating"}), http.StatusOK), nil
}

// extensible is the machine on which a call changes an extension.
func (s *extensions) extensible(c *arm.Call, doc arm.Document) (*VM, error) {
	vm := s.machines.find(c.Path.Parent())
	switch {
	case vm == nil:
		return nil, arm.NewError(http.StatusNotFound, "ParentResourceNotFound", "Failed to perform 'write' on resource(s) "+
			"of type 'virtualMachines/extensions', because the parent resource '%s' could not be found.", c.Path.Parent())
	case vm.Phase == phaseFailed || vm.Phase == phaseDeleting || vm.Phase == phaseDeallocated:
		return nil, arm.NewError(http.StatusConflict, "OperationNotAllowed", "Cannot modify extensions in the VM when the VM is not running.")
	}
	return vm, arm.CheckTags(doc)
}

// run stores an extension and plans how its operation ends.
func (s *extensions) run(c *arm.Call, vm *VM, r *arm.Resource, doc arm.Document, status int) arm.Reply {
	own := s.own(r)
	own.Failure, own.Message = nil, ""
	target := s.machines.target(r.ID, actionExtend, vm.Spec)
	target.Named = true // a failing machine is another fault
	if f := s.sub.Faults.Strike(target, arm.FaultFail); f != nil {
		own.Failure = arm.NewError(http.StatusConflict, f.Code, "%s",
			cmp.Or(f.Message, "VM has reported a failure when processing extension '"+c.Path.Name()+"'."))
	}
	s.sub.Resources.Put(r, doc)
	op := s.sub.Operations.Start(c.Route.Action(), r.ID)
	own.Operation = op.ID
	if own.Failure == nil && isScript(doc) {
		s.await(vm, r, op.ID)
	} else {
		s.sub.Faults.Schedule(s.sub.Random.Sample(s.latency), s.machines.target(r.ID, c.Route.Action(), vm.Spec),
			arm.Task{Kind: taskExtended, Key: arm.Key(r.ID), Op: op.ID})
	}
	return s.sub.Operations.Accepted(c, status, op.ID, doc)
}

// watch follows the documents of extensions: a machine repeats those of its own,
// where Azure shows them too.
func (s *extensions) watch(r *arm.Resource, d arm.Document) {
	if r.Type != TypeExtension {
		return
	}
	if d == nil {
		delete(s.byKey, arm.Key(r.ID))
	}
	vm := s.machineOf(r)
	if vm == nil {
		return
	}
	shown := []any{}
	for _, e := range s.of(vm.ID) {
		shown = append(shown, e.Doc)
	}
	doc := arm.Clone(vm.Doc)
	doc["resources"] = shown
	s.sub.Resources.Put(vm.Resource, doc)
}

// ended ends the operation of an extension and marks the extension and its machine.
func (s *extensions) ended(t arm.Task) {
	r := s.sub.Resources.Find(t.Key)
	if r == nil || s.own(r).Operation != t.Op { // gone, or written again meanwhile
		s.sub.Operations.Finish(t.Op, nil)
		return
	}
	s.sub.Operations.Finish(t.Op, s.settled(r))
}

// settled marks an extension whose operation has ended, and says how.
func (s *extensions) settled(r *arm.Resource) *arm.Error {
	if !s.running(r) {
		return nil
	}
	own := s.own(r)
	failure, state := own.Failure, "Succeeded"
	own.Failure = nil
	if failure != nil {
		state, own.Message = "Failed", cmp.Or(own.Message, failure.Message)
	}
	s.sub.Resources.Put(r, arm.WithProperties(r.Doc, arm.Document{"provisioningState": state}))
	s.mark(r)
	return failure
}

// mark makes a machine look as its extensions do: one that failed fails the
// machine's own state too, though the machine runs.
func (s *extensions) mark(changed *arm.Resource) {
	vm := s.machineOf(changed)
	if vm == nil || vm.Phase != phaseSucceeded {
		return
	}
	state := string(phaseSucceeded)
	for _, e := range s.of(vm.ID) {
		if arm.Text(e.Doc, "properties", "provisioningState") == "Failed" {
			state = string(phaseFailed)
		}
	}
	s.sub.Resources.Put(vm.Resource, arm.WithProperties(vm.Doc, arm.Document{"provisioningState": state}))
}

// machineOf is the machine that an extension belongs to; nil when it is gone.
func (s *extensions) machineOf(r *arm.Resource) *VM {
	id, _, _ := arm.CutLast(r.ID, "/extensions/")
	return s.machines.find(id)
}

// of lists the extensions of a machine by name.
func (s *extensions) of(vm string) []*arm.Resource {
	var out []*arm.Resource
	prefix := arm.Key(vm) + "/extensions/"
	for k, e := range s.sub.Resources.OfType(TypeExtension) {
		if strings.HasPrefix(k, prefix) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *arm.Resource) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// own is what only the simulator knows of an extension, which stays with it.
func (s *extensions) own(r *arm.Resource) *extension {
	k := arm.Key(r.ID)
	if s.byKey[k] == nil {
		s.byKey[k] = &extension{}
	}
	return s.byKey[k]
}

// describe is an extension as the machine sees it.
func (s *extensions) describe(r *arm.Resource) Extension {
	settings, _ := arm.At(r.Doc, "properties", "settings").(arm.Document)
	return Extension{Name: arm.LastSegment(r.ID), Publisher: arm.Text(r.Doc, "properties", "publisher"),
		Type:     arm.Text(r.Doc, "properties", "type"),
		Settings: settings, ProtectedSettings: s.own(r).Secret}
}
