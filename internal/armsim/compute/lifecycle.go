package compute

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// The actions under which faults and operations know a machine.
const (
	actionVMWrite  = "Microsoft.Compute/virtualMachines/write"
	actionVMDelete = "Microsoft.Compute/virtualMachines/delete"
	actionVMReboot = "Microsoft.Compute/virtualMachines/restart/action"
)

// The tasks of a machine's life.
const (
	taskCreated arm.TaskKind = "vm.created" // the create operation succeeds
	taskFailed  arm.TaskKind = "vm.failed"  // the create operation fails for want of capacity
	taskBooted  arm.TaskKind = "vm.booted"  // the kubelet would start now
	taskRestart arm.TaskKind = "vm.restart" // the restart operation ends, and the machine boots
	taskDeleted arm.TaskKind = "vm.deleted" // the delete operation ends
	taskWarn    arm.TaskKind = "vm.warn"    // a spot machine gets its notice
	taskEvicted arm.TaskKind = "vm.evicted" // the notice is over
)

// lifecycle takes machines from their creation to their end. Its methods are the
// steps; most of them are tasks.
type lifecycle struct {
	sub                 *arm.Subscription
	latency             arm.Latencies
	spotLifetime        arm.Distribution // zero: spot machines are not evicted of their own accord
	spotNotice          time.Duration    // before the time scale
	machines            *table
	books               *books
	disks               disks
	interfaces          Interfaces
	observers           *observers
	reportsProvisioning bool        // an observer tells how the provisioning of machines ends
	onSettled           []func(*VM) // told when a creation has ended, either way
	onProvided          []func(*VM) // told when a provisioning has ended, either way
	onDeleted           []func(*VM) // told when a machine has been removed
}

// register tells the subscription what the tasks and faults of machines do.
func (s *lifecycle) register() {
	s.on(taskCreated, s.created)
	s.on(taskFailed, s.failed)
	s.on(taskBooted, func(v *VM, _ string) { s.booted(v) })
	s.on(taskRestart, func(v *VM, op string) {
		s.sub.Operations.Finish(op, nil)
		if v.Phase == phaseSucceeded && !v.Booted && !v.BootedAt.IsZero() { // before its first boot it starts anyway
			s.power(v)
		}
	})
	s.on(taskDeleted, func(v *VM, op string) {
		s.deleted(v)
		s.sub.Operations.Finish(op, nil)
	})
	s.on(taskWarn, func(v *VM, _ string) { s.warn(v) })
	s.on(taskEvicted, func(v *VM, _ string) { s.evicted(v) })
	s.sub.Faults.OnAdd(s.evictMatching)
	s.sub.Faults.OnEnd(s.pardon)
}

// on registers a step. A task whose machine is gone has nothing left to do but to
// end its operation; a namesake that was made later is another machine.
func (s *lifecycle) on(kind arm.TaskKind, step func(v *VM, op string)) {
	s.sub.Tasks.On(kind, func(t arm.Task) {
		v := s.machines.find(t.Key)
		if v == nil || t.Life != "" && t.Life != v.VMID {
			s.sub.Operations.Finish(t.Op, nil)
			return
		}
		step(v, t.Op)
	})
}

// create stores a machine that was accepted and plans what becomes of it. A nil
// failure means that the creation will succeed.
func (s *lifecycle) create(p arm.Path, doc arm.Document, m Spec, failure *arm.Error) *VM {
	v := &VM{Resource: &arm.Resource{ID: p.ID(), Type: TypeVM, Group: p.Group}}
	op := s.sub.Operations.Start(actionVMWrite, v.ID)
	v.VMID, v.Spec, v.Phase, v.Operation, v.Failure, v.CreatedAt = s.sub.IDs.GUID(), m, phaseCreating, op.ID, failure, s.sub.Clock.Now()
	props := arm.Section(doc, "properties")
	props["vmId"] = v.VMID
	props["provisioningState"] = string(phaseCreating)
	props["timeCreated"] = arm.Timestamp(s.sub.Clock.Now())
	if os, ok := props["osProfile"].(arm.Document); ok {
		delete(os, "customData")
		delete(os, "adminPassword")
	}
	osDisk := arm.Section(arm.Section(props, "storageProfile"), "osDisk")
	osDisk["name"], osDisk["osType"] = m.OSDisk, "Linux"
	arm.Section(osDisk, "managedDisk")["id"] = s.disks.id(p.Group, m.OSDisk)
	s.books.count(v, 1)
	s.machines.insert(v)
	s.sub.Resources.Put(v.Resource, doc)
	s.sub.Audit.Record(arm.AuditEntry{Kind: arm.AuditLifecycle, Action: "vm.accepted",
		Resource: v.ID, Detail: m.Size + " zone " + m.Zone + " " + m.Priority, Tags: arm.TagsOf(doc)})
	s.sub.Audit.Count("vm.accepted")
	s.planCreation(v, op.ID)
	return v
}

// retry plans the creation of a machine that found no place again.
func (s *lifecycle) retry(v *VM, failure *arm.Error) {
	op := s.sub.Operations.Start(actionVMWrite, v.ID)
	v.Phase, v.Operation, v.Failure = phaseCreating, op.ID, failure
	s.books.count(v, 1)
	s.sub.Resources.Put(v.Resource, arm.WithProperties(v.Doc, arm.Document{"provisioningState": string(phaseCreating)}))
	s.sub.Audit.Event("vm.accepted", v.ID, "again")
	s.planCreation(v, op.ID)
}

// planCreation plans the end of a creation.
func (s *lifecycle) planCreation(v *VM, op string) {
	t := arm.Task{Kind: taskCreated, Key: arm.Key(v.ID), Op: op, Life: v.VMID}
	delay := s.sub.Random.Sample(s.latency.VMCreate)
	if v.Failure != nil {
		t.Kind, delay = taskFailed, s.sub.Random.Sample(s.latency.VMFail)
	} else {
		s.disks.create(v)
	}
	s.sub.Faults.Schedule(delay, s.machines.target(v.ID, actionVMWrite, v.Spec), t)
}

// created ends a creation with success; the machine boots next.
func (s *lifecycle) created(v *VM, op string) {
	if v.Phase != phaseCreating {
		return
	}
	v.Phase = phaseSucceeded
	s.sub.Resources.Put(v.Resource, arm.WithProperties(v.Doc, arm.Document{"provisioningState": string(phaseSucceeded)}))
	s.sub.Audit.Event("vm.succeeded", v.ID, "")
	s.sub.Operations.Finish(op, nil)
	tell(s.onSettled, v)
	if f := s.sub.Faults.Strike(s.machines.target(v.ID, actionVMWrite, v.Spec), arm.FaultNoBoot); f != nil {
		v.BootLost = true
		s.sub.Audit.Event("vm.boot-lost", v.ID, "fault "+f.ID)
		return
	}
	s.sub.Tasks.After(s.sub.Random.Sample(s.latency.Boot), arm.Task{Kind: taskBooted, Key: arm.Key(v.ID), Life: v.VMID})
}

// failed ends a creation without capacity. The machine stays, failed, until
// its owner deletes it.
func (s *lifecycle) failed(v *VM, op string) {
	if v.Phase != phaseCreating {
		return
	}
	v.Phase = phaseFailed
	s.books.count(v, -1)
	s.sub.Resources.Put(v.Resource, arm.WithProperties(v.Doc, arm.Document{"provisioningState": string(phaseFailed)}))
	s.sub.Audit.Event("vm.failed", v.ID, v.Failure.Code)
	s.sub.Operations.Finish(op, v.Failure)
	tell(s.onSettled, v)
}

// booted starts the kubelet.
func (s *lifecycle) booted(v *VM) {
	if v.Phase != phaseSucceeded || v.Booted {
		return
	}
	if f := s.sub.Faults.Strike(s.machines.target(v.ID, actionVMWrite, v.Spec), arm.FaultProvisioning); f != nil {
		v.Broken = &BrokenBoot{ExitCode: f.ExitCode(), Output: cmp.Or(f.Message, "the provisioning of the machine failed")}
	}
	s.power(v)
	if !s.reportsProvisioning {
		s.provisioned(v, v.Broken.end())
	}
	if v.Spec.Priority != arm.Spot {
		return
	}
	if f := s.sub.Faults.Strike(s.machines.target(v.ID, "", v.Spec), arm.FaultEvict); f != nil {
		v.EvictedBy = f.ID
		s.warn(v)
	} else if s.spotLifetime.Median > 0 {
		s.sub.Tasks.After(s.sub.Random.Sample(s.spotLifetime), arm.Task{Kind: taskWarn, Key: arm.Key(v.ID), Life: v.VMID})
	}
}

// power starts the machine, at first or again.
func (s *lifecycle) power(v *VM) {
	v.Booted, v.BootedAt = true, s.sub.Clock.Now()
	s.sub.Audit.Event("vm.booted", v.ID, fmt.Sprintf("%s after the request", s.sub.Clock.Now().Sub(v.CreatedAt).Round(time.Millisecond)))
	m := s.machines.describe(v)
	s.observers.notify(func(o MachineObserver) { o.Booted(m) })
}

// restart takes a machine's power and gives it back, and returns the ID of the operation.
// The machine boots as a new one does, with the disk that it had.
func (s *lifecycle) restart(v *VM) string {
	s.sub.Audit.Event("vm.restarted", v.ID, "")
	s.powerOff(v)
	op := s.sub.Operations.Start(actionVMReboot, v.ID)
	s.sub.Faults.Schedule(s.sub.Random.Sample(s.latency.Boot), s.machines.target(v.ID, actionVMReboot, v.Spec),
		arm.Task{Kind: taskRestart, Key: arm.Key(v.ID), Op: op.ID, Life: v.VMID})
	return op.ID
}

// provisioned notes how the provisioning of a machine has ended.
func (s *lifecycle) provisioned(v *VM, end Provisioning) {
	if v.Provisioned != nil {
		return
	}
	v.Provisioned = &end
	s.sub.Audit.Event("vm.provisioned", v.ID, fmt.Sprintf("exit code %d", end.ExitCode))
	s.machines.extensions.provisioned(v)
	tell(s.onProvided, v)
	s.sub.Changed()
}

// evictMatching warns the running spot machines that a new fault selects.
func (s *lifecycle) evictMatching(f *arm.Fault) {
	if f.Kind != arm.FaultEvict {
		return
	}
	for _, v := range s.machines.sorted() {
		if v.Booted && v.Phase == phaseSucceeded && v.Spec.Priority == arm.Spot && v.EvictAt.IsZero() &&
			f.Selects(s.machines.target(v.ID, "", v.Spec)) && s.sub.Faults.Takes(f) {
			f.Hits++
			v.EvictedBy = f.ID
			s.warn(v)
		}
	}
}

// warn gives a spot machine its notice.
func (s *lifecycle) warn(v *VM) {
	if v.Phase != phaseSucceeded || !v.EvictAt.IsZero() {
		return
	}
	notice := s.sub.Clock.Scaled(s.spotNotice)
	v.EvictAt = s.sub.Clock.Now().Add(notice)
	s.sub.Tasks.Plan(v.EvictAt, arm.Task{Kind: taskEvicted, Key: arm.Key(v.ID), Life: v.VMID})
	s.sub.Audit.Event("vm.warned", v.ID, fmt.Sprintf("evicted in %s", notice))
	if v.Booted {
		id, at := v.ID, v.EvictAt
		s.observers.notify(func(o MachineObserver) { o.EvictionNotice(id, at) })
	}
}

// pardon takes back the notices that a fault gave.
func (s *lifecycle) pardon(f *arm.Fault) {
	if f.Kind != arm.FaultEvict {
		return
	}
	for _, v := range s.machines.sorted() {
		if v.EvictedBy == f.ID {
			v.EvictedBy, v.EvictAt = "", time.Time{}
			s.sub.Audit.Event("vm.pardoned", v.ID, "fault "+f.ID+" removed")
		}
	}
}

// evicted takes a spot machine away. With the policy Deallocate the resource stays.
func (s *lifecycle) evicted(v *VM) {
	if v.Phase != phaseSucceeded || v.EvictAt.IsZero() || s.sub.Clock.Now().Before(v.EvictAt) {
		return
	}
	s.sub.Audit.Event("vm.evicted", v.ID, "")
	if strings.EqualFold(v.Spec.Eviction, "Delete") {
		s.deleted(v)
		return
	}
	s.powerOff(v)
	s.books.count(v, -1)
	v.Phase = phaseDeallocated
	s.sub.Resources.Put(v.Resource, arm.Clone(v.Doc))
}

// powerOff stops the machine, as its kubelet sees it.
func (s *lifecycle) powerOff(v *VM) {
	if !v.Running() {
		return
	}
	v.Booted = false
	id := v.ID
	s.observers.notify(func(o MachineObserver) { o.Gone(id) })
}

// beginDelete marks a machine for deletion and returns the ID of the operation.
// Forced, the machine loses its power at once; otherwise it runs to the end of the
// operation.
func (s *lifecycle) beginDelete(v *VM, force bool) string {
	s.sub.Operations.Finish(v.Operation,
		arm.NewError(http.StatusConflict, "OperationPreempted", "The operation has been preempted by a more recent operation."))
	if v.Phase != phaseDeleting {
		v.Phase = phaseDeleting
		s.sub.Resources.Put(v.Resource, arm.WithProperties(v.Doc, arm.Document{"provisioningState": string(phaseDeleting)}))
		s.sub.Audit.Event("vm.deleting", v.ID, "")
	}
	if force {
		s.powerOff(v)
	}
	op := s.sub.Operations.Start(actionVMDelete, v.ID)
	s.sub.Faults.Schedule(s.sub.Random.Sample(s.latency.VMDelete), s.machines.target(v.ID, actionVMDelete, v.Spec),
		arm.Task{Kind: taskDeleted, Key: arm.Key(v.ID), Op: op.ID, Life: v.VMID})
	return op.ID
}

// deleted removes a machine and what it takes along.
func (s *lifecycle) deleted(v *VM) {
	s.powerOff(v)
	s.books.count(v, -1)
	for _, ref := range v.Spec.NICs {
		s.interfaces.Detach(ref.ID, v.ID, ref.Keep)
	}
	s.disks.release(v)
	for _, e := range s.machines.extensions.of(v.ID) {
		s.sub.Resources.Drop(e)
	}
	s.sub.Resources.Drop(v.Resource)
	delete(s.machines.byKey, arm.Key(v.ID))
	s.sub.Audit.Event("vm.deleted", v.ID, fmt.Sprintf("lived %s", s.sub.Clock.Now().Sub(v.CreatedAt).Round(time.Millisecond)))
	tell(s.onDeleted, v)
}

func tell(all []func(*VM), v *VM) {
	for _, f := range all {
		f(v)
	}
}
