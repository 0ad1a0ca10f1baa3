package arm

import (
	"maps"
	"slices"
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
// nic.deleted, disk.created, disk.deleted, price.set, fault.added, fault.removed.
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
	Tags      map[string]string `json:"tags,omitempty"` // of created machines, which say what each was bought for
}

// AuditLog is the append-only record of what was asked for and what became of it,
// and the counters.
type AuditLog struct {
	clock    Clock
	changed  func()
	entries  []AuditEntry
	unsaved  int              // index of the first entry that is not in the file yet
	counters map[string]int64 // see Counters
}

// Record appends an entry, giving it sequence and time.
func (l *AuditLog) Record(e AuditEntry) {
	e.Sequence = uint64(len(l.entries)) + 1
	e.Time = l.clock.Now()
	l.entries = append(l.entries, e)
	l.changed()
}

// Event records that something happened to a resource.
func (l *AuditLog) Event(action, resource, detail string) {
	l.Count(action)
	l.Record(AuditEntry{Kind: AuditLifecycle, Action: action, Resource: resource, Detail: detail})
}

// Count adds one to a counter.
func (l *AuditLog) Count(name string) { l.counters[name]++ }

// After returns the entries after the given sequence number; 0 returns all.
func (l *AuditLog) After(sequence uint64) []AuditEntry {
	if sequence >= uint64(len(l.entries)) {
		return nil
	}
	return slices.Clone(l.entries[sequence:])
}

// Counters returns a copy of the counters: "calls <action>", "errors <code>",
// "throttled <class>" and one for each lifecycle event.
func (l *AuditLog) Counters() map[string]int64 { return maps.Clone(l.counters) }

// TakeUnsaved returns the entries that were added since the last call.
func (l *AuditLog) TakeUnsaved() []AuditEntry {
	entries := l.entries[l.unsaved:]
	l.unsaved = len(l.entries)
	return entries
}

// Restore takes the entries of an earlier server, which are saved already.
func (l *AuditLog) Restore(entries []AuditEntry) {
	l.entries = append(l.entries, entries...)
	l.unsaved = len(l.entries)
}
