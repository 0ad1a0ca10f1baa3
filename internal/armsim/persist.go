package armsim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// saveDelay gathers changes before the state is written, and saveShare keeps
// writing from taking more than that part of the time when there is much to
// write. A kill loses what came after the last writing: clients see an Azure
// that had not got so far, with machines that are missing, never half there.
const (
	saveDelay = 200 * time.Millisecond
	saveShare = 10
)

// stateFormat numbers the forms that the state file has had.
const stateFormat = 3

// state is everything that the server remembers and that StateFile keeps. P is any
// where it is written and json.RawMessage where it is read.
type state[P any] struct {
	Format     int                       `json:"format"`
	Resources  map[string]*arm.Resource  `json:"resources"` // by arm.Key(ID)
	Operations map[string]*arm.Operation `json:"operations"`
	Tasks      []arm.Task                `json:"tasks"`
	Faults     arm.FaultState            `json:"faults"`
	Sequence   uint64                    `json:"sequence"` // for IDs and ETags
	Providers  map[string]P              `json:"providers"`
}

// keeper is a provider that keeps more of its resources than their documents.
type keeper interface {
	// Snapshot copies what is saved, so that the copy can be encoded while requests
	// go on.
	Snapshot() any
	// Restore takes a snapshot, whose resources are restored already.
	Restore(raw json.RawMessage) error
}

// saver writes the state some time after a change.
type saver struct {
	file    string // empty: nothing is kept
	log     *slog.Logger
	sub     *arm.Subscription
	keepers map[string]keeper // by name in the state file
	limits  *throttle

	writing sync.Mutex // one writer at a time; taken before the subscription's lock

	// The subscription's lock guards these.
	started bool // restore is over
	closed  bool // nothing is written any more but by flush
	set     bool // the timer runs
	timer   *time.Timer
	took    time.Duration // the last writing
}

// changed says that something changed.
func (s *saver) changed() {
	if s.file == "" || s.closed || !s.started || s.set {
		return
	}
	s.set = true
	s.timer = time.AfterFunc(max(saveDelay, saveShare*s.took), func() {
		if err := s.flush(); err != nil {
			s.log.Error("cannot write the state", "file", s.file, "error", err)
		}
	})
}

// flush writes the state and the new audit entries now.
func (s *saver) flush() error {
	if s.file == "" {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.sub.Lock.Lock()
	s.set = false
	if s.timer != nil {
		s.timer.Stop()
	}
	s.sub.Operations.Forget()
	s.limits.forget()
	frozen := s.snapshot()
	entries := s.sub.Audit.TakeUnsaved()
	s.sub.Lock.Unlock()
	start := time.Now()
	defer func() {
		s.sub.Lock.Lock()
		s.took = time.Since(start)
		s.sub.Lock.Unlock()
	}()
	raw, err := json.Marshal(frozen)
	if err != nil {
		return fmt.Errorf("encode the state of the simulated Azure: %w", err)
	}
	if err := s.appendAudit(entries); err != nil {
		return err
	}
	// A rename within a folder is atomic: a reader sees the old state or the new one.
	next := s.file + ".next"
	if err := os.WriteFile(next, raw, 0o600); err != nil {
		return fmt.Errorf("write the state of the simulated Azure: %w", err)
	}
	if err := os.Rename(next, s.file); err != nil {
		return fmt.Errorf("write the state of the simulated Azure: %w", err)
	}
	return nil
}

// snapshot copies what changes in place, so that the copy can be encoded while
// requests go on.
func (s *saver) snapshot() state[any] {
	c := state[any]{
		Format: stateFormat, Resources: s.sub.Resources.Snapshot(), Operations: s.sub.Operations.Snapshot(),
		Tasks: s.sub.Tasks.Snapshot(), Faults: s.sub.Faults.Snapshot(), Sequence: s.sub.IDs.Snapshot(), Providers: map[string]any{},
	}
	for name, k := range s.keepers {
		c.Providers[name] = k.Snapshot()
	}
	return c
}

func (s *saver) auditFile() string { return s.file + ".audit" }

// appendAudit adds entries to the audit file, one JSON object a line.
func (s *saver) appendAudit(entries []arm.AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	f, err := os.OpenFile(s.auditFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("append to the audit log: %w", err)
	}
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for _, e := range entries {
		if err := enc.Encode(e); err != nil {
			f.Close()
			return fmt.Errorf("append to the audit log: %w", err)
		}
	}
	return errors.Join(w.Flush(), f.Close())
}

// restore takes up the state of an earlier server; false when there is none.
func (s *saver) restore() (restored bool, err error) {
	if s.file == "" {
		return false, nil
	}
	defer func() { s.started = true }()
	raw, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the state of the simulated Azure: %w; delete the file to start from nothing", err)
	}
	var c state[json.RawMessage]
	if err = json.Unmarshal(raw, &c); err == nil && c.Format != stateFormat {
		err = errors.New("another version has written it")
	}
	if err != nil {
		return false, fmt.Errorf("read the state of the simulated Azure from %s: %w; delete the file to start from nothing", s.file, err)
	}
	s.sub.IDs.Restore(c.Sequence)
	s.sub.Resources.Restore(c.Resources)
	s.sub.Operations.Restore(c.Operations)
	s.sub.Tasks.Restore(c.Tasks)
	s.sub.Faults.Restore(c.Faults)
	for name, k := range s.keepers {
		if err := k.Restore(c.Providers[name]); err != nil {
			return false, fmt.Errorf("read the state of the simulated Azure from %s: %s: %w; delete the file to start from nothing",
				s.file, name, err)
		}
	}
	return true, s.restoreAudit()
}

// restoreAudit reads the audit log back. A last line that was cut off by a
// kill is dropped.
func (s *saver) restoreAudit() error {
	f, err := os.Open(s.auditFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer f.Close()
	var entries []arm.AuditEntry
	dec := json.NewDecoder(f)
	for {
		var e arm.AuditEntry
		if err := dec.Decode(&e); err != nil {
			break
		}
		entries = append(entries, e)
	}
	s.sub.Audit.Restore(entries)
	return nil
}
