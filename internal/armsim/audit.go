package armsim

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// AuditKind tells the three sorts of entries apart.
type AuditKind string

// What an entry is about.
const (
	AuditCall      AuditKind = "call"      // a mutating request and its answer
	AuditOperation AuditKind = "operation" // the end of a long-running operation
	AuditLifecycle AuditKind = "lifecycle" // something happened to a resource, see AuditEntry.Action
)

// AuditEntry is one line of the audit log. For lifecycle entries Action is one of
// vm.accepted, vm.succeeded, vm.failed, vm.booted, vm.boot-lost, vm.warned,
// vm.pardoned (the fault that evicts it was removed in time), vm.evicted,
// vm.deleting, vm.deleted (also after vm.evicted, when nothing of it remains),
// machine.accepted, machine.deleted (of the AKS machine API), nic.created,
// nic.deleted, disk.created, disk.deleted, fault.added, fault.removed.
type AuditEntry struct {
	Sequence  uint64            `json:"sequence"` // counts from 1 without gaps
	Time      time.Time         `json:"time"`
	Kind      AuditKind         `json:"kind"`
	Action    string            `json:"action"` // the ARM action, or the lifecycle event
	Resource  string            `json:"resource,omitempty"`
	Principal string            `json:"principal,omitempty"` // client ID
	Status    int               `json:"status,omitempty"`    // HTTP status
	Code      string            `json:"code,omitempty"`      // error code
	Detail    string            `json:"detail,omitempty"`
	RequestID string            `json:"requestId,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"` // of created machines, so that a witness can tell what each was bought for
}

// auditLog is append-only.
type auditLog struct {
	entries []AuditEntry
	unsaved int // index of the first entry that is not in the file yet
}

// record appends an entry.
func (s *Server) record(e AuditEntry) {
	e.Sequence = uint64(len(s.audit.entries)) + 1
	e.Time = s.now()
	s.audit.entries = append(s.audit.entries, e)
	s.dirty()
}

// event records that something happened to a resource.
func (s *Server) event(action, resource, detail string) {
	s.stats[action]++
	s.record(AuditEntry{Kind: AuditLifecycle, Action: action, Resource: resource, Detail: detail})
}

// recordCall counts a request and, when it could change something, records it.
func (s *Server) recordCall(c *call, rep reply, err error) {
	status, code := rep.status, ""
	var failure *apiError
	if errors.As(err, &failure) {
		status, code = failure.Status, failure.Code
	}
	action := "unknown"
	if c.route != nil {
		action = c.route.action
	}
	s.stats["calls "+action]++
	if status >= 400 {
		s.stats["errors "+code]++
	}
	if c.r.Method == http.MethodGet || action == "Microsoft.ResourceGraph/resources/action" {
		return
	}
	e := AuditEntry{Kind: AuditCall, Action: action, Resource: c.path.id(), Status: status, Code: code, RequestID: c.requestID}
	if failure != nil {
		e.Detail = failure.Message
	}
	if c.principal != nil {
		e.Principal = c.principal.ClientID
	}
	s.record(e)
}

// Audit returns the entries after the given sequence number; 0 returns all.
func (s *Server) Audit(after uint64) []AuditEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after >= uint64(len(s.audit.entries)) {
		return nil
	}
	return slices.Clone(s.audit.entries[after:])
}

// Stats returns counters: "calls <action>", "errors <code>", "throttled
// <class>" and one for each lifecycle event.
func (s *Server) Stats() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int64, len(s.stats))
	for k, v := range s.stats {
		out[k] = v
	}
	return out
}

// Inventory is what exists in the subscription that somebody must have
// created: resource IDs, sorted. What the subscription came with is not in it.
type Inventory struct {
	VMs         []string `json:"vms"`
	NICs        []string `json:"nics"`
	Disks       []string `json:"disks"`
	Machines    []string `json:"machines"`    // of the AKS machine API
	OrphanNICs  []string `json:"orphanNics"`  // attached to no machine
	OrphanDisks []string `json:"orphanDisks"` // likewise
}

// Empty says that nothing is left.
func (i Inventory) Empty() bool {
	return len(i.VMs)+len(i.NICs)+len(i.Disks)+len(i.Machines) == 0
}

// Leaks lists everything that was created and still exists. After a test has
// scaled to nothing it must be Empty.
func (s *Server) Leaks() Inventory {
	s.mu.Lock()
	defer s.mu.Unlock()
	var inv Inventory
	for _, r := range s.st.Resources {
		if r.Fixed {
			continue
		}
		switch r.Typ {
		case typeVM:
			inv.VMs = append(inv.VMs, r.ID)
		case typeMachine:
			inv.Machines = append(inv.Machines, r.ID)
		case typeNIC:
			inv.NICs = append(inv.NICs, r.ID)
			if r.NIC.VM == "" || s.find(r.NIC.VM) == nil {
				inv.OrphanNICs = append(inv.OrphanNICs, r.ID)
			}
		case typeDisk:
			inv.Disks = append(inv.Disks, r.ID)
			if by := text(r.Doc, "managedBy"); by == "" || s.find(by) == nil {
				inv.OrphanDisks = append(inv.OrphanDisks, r.ID)
			}
		}
	}
	for _, ids := range [][]string{inv.VMs, inv.NICs, inv.Disks, inv.Machines, inv.OrphanNICs, inv.OrphanDisks} {
		slices.SortFunc(ids, func(a, b string) int { return strings.Compare(key(a), key(b)) })
	}
	return inv
}
