package armsim

import (
	"fmt"
	"strings"
	"time"
)

// vmCreated ends a creation with success; the machine boots next.
func (s *Server) vmCreated(r *resource, op string) {
	if r.VM.Phase != phaseCreating {
		return
	}
	r.VM.Phase = phaseSucceeded
	s.put(r, withProperties(r.Doc, document{"provisioningState": string(phaseSucceeded)}))
	s.event("vm.succeeded", r.ID, "")
	s.finish(op, nil)
	s.machineSettled(r)
	if f := s.strike(s.target(r.ID, actionVMWrite, r.VM.Spec), FaultNoBoot); f != nil {
		r.VM.BootLost, r.VM.Guest = true, f.Message
		s.event("vm.boot-lost", r.ID, "fault "+f.ID)
		return
	}
	s.after(s.sample(s.cfg.Latency.Boot), task{Kind: taskVMBooted, Key: key(r.ID), Life: r.VM.ID})
}

// vmFailed ends a creation without capacity. The machine stays, failed, until
// its owner deletes it.
func (s *Server) vmFailed(r *resource, op string) {
	if r.VM.Phase != phaseCreating {
		return
	}
	r.VM.Phase = phaseFailed
	s.count(r, -1)
	s.put(r, withProperties(r.Doc, document{"provisioningState": string(phaseFailed)}))
	s.event("vm.failed", r.ID, r.VM.Failure.Code)
	s.finish(op, r.VM.Failure)
	s.machineSettled(r)
}

// vmBooted starts the kubelet.
func (s *Server) vmBooted(r *resource) {
	if r.VM.Phase != phaseSucceeded || r.VM.Booted {
		return
	}
	r.VM.Booted, r.VM.BootedAt = true, s.now()
	r.VM.BootSpoilt = s.strike(s.target(r.ID, actionVMWrite, r.VM.Spec), FaultBootData) != nil
	s.event("vm.booted", r.ID, fmt.Sprintf("%s after the request", s.now().Sub(r.VM.CreatedAt).Round(time.Millisecond)))
	m := s.machine(r)
	s.notify(func(o MachineObserver) { o.Booted(m) })
	if r.VM.Spec.Priority != prioritySpot {
		return
	}
	if f := s.strike(s.target(r.ID, "", r.VM.Spec), FaultEvict); f != nil {
		r.VM.EvictedBy = f.ID
		s.vmWarn(r)
	} else if s.cfg.SpotLifetime.Median > 0 {
		s.after(s.sample(s.cfg.SpotLifetime), task{Kind: taskVMWarn, Key: key(r.ID), Life: r.VM.ID})
	}
}

// evictMatching warns the running spot machines that a new fault selects.
func (s *Server) evictMatching(f *Fault) {
	for _, r := range s.sorted(typeVM) {
		if r.VM.Booted && r.VM.Phase == phaseSucceeded && r.VM.Spec.Priority == prioritySpot && r.VM.EvictAt.IsZero() &&
			f.selects(s.target(r.ID, "", r.VM.Spec)) && (f.Rate == 0 || s.draw() < f.Rate) {
			f.Hits++
			r.VM.EvictedBy = f.ID
			s.vmWarn(r)
		}
	}
}

// vmWarn gives a spot machine its notice.
func (s *Server) vmWarn(r *resource) {
	if r.VM.Phase != phaseSucceeded || !r.VM.EvictAt.IsZero() {
		return
	}
	notice := s.scaled(s.cfg.SpotNotice)
	r.VM.EvictAt = s.now().Add(notice)
	s.plan(r.VM.EvictAt, task{Kind: taskVMEvicted, Key: key(r.ID), Life: r.VM.ID})
	s.event("vm.warned", r.ID, fmt.Sprintf("evicted in %s", notice))
	if r.VM.Booted {
		id, at := r.ID, r.VM.EvictAt
		s.notify(func(o MachineObserver) { o.EvictionNotice(id, at) })
	}
}

// pardon takes back the notices that a fault gave.
func (s *Server) pardon(fault string) {
	for _, r := range s.sorted(typeVM) {
		if r.VM.EvictedBy == fault {
			r.VM.EvictedBy, r.VM.EvictAt = "", time.Time{}
			s.event("vm.pardoned", r.ID, "fault "+fault+" removed")
		}
	}
}

// vmEvicted takes a spot machine away. With the policy Deallocate the resource stays.
func (s *Server) vmEvicted(r *resource) {
	if r.VM.Phase != phaseSucceeded || r.VM.EvictAt.IsZero() || s.now().Before(r.VM.EvictAt) {
		return
	}
	s.event("vm.evicted", r.ID, "")
	if strings.EqualFold(r.VM.Spec.Eviction, "Delete") {
		s.vmDeleted(r, "vm.deleted")
		return
	}
	s.powerOff(r)
	s.count(r, -1)
	r.VM.Phase = phaseDeallocated
	s.put(r, clone(r.Doc))
}

// powerOff stops the machine for good, as its kubelet sees it.
func (s *Server) powerOff(r *resource) {
	if !r.VM.Running() {
		return
	}
	r.VM.Booted = false
	id := r.ID
	s.notify(func(o MachineObserver) { o.Gone(id) })
}

// vmDeleted removes a machine and what it takes along.
func (s *Server) vmDeleted(r *resource, event string) {
	s.powerOff(r)
	s.count(r, -1)
	for _, ref := range r.VM.Spec.NICs {
		n := s.find(ref.ID)
		if n == nil || n.NIC == nil || key(n.NIC.VM) != key(r.ID) {
			continue
		}
		if !ref.Keep {
			s.nicDeleted(n)
			continue
		}
		n.NIC.VM = ""
		doc := clone(n.Doc)
		delete(section(doc, "properties"), "virtualMachine")
		s.put(n, doc)
	}
	if d := s.find(s.diskID(r.Group, r.VM.Spec.OSDisk)); d != nil && key(text(d.Doc, "managedBy")) == key(r.ID) {
		if r.VM.Spec.KeepDisk {
			doc := clone(d.Doc)
			delete(doc, "managedBy")
			section(doc, "properties")["diskState"] = "Unattached"
			s.put(d, doc)
		} else {
			s.drop(d)
			s.event("disk.deleted", d.ID, "")
		}
	}
	for _, e := range s.extensionsOf(r) {
		s.drop(e)
	}
	s.drop(r)
	s.event(event, r.ID, fmt.Sprintf("lived %s", s.now().Sub(r.VM.CreatedAt).Round(time.Millisecond)))
	if m := s.find(r.VM.AKSID); m != nil {
		s.drop(m)
		s.event("machine.deleted", m.ID, "")
	}
}
