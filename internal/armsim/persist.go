package armsim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// saveDelay gathers changes before the state is written, and saveShare keeps
// writing from taking more than that part of the time when there is much to
// write. A kill loses what came after the last writing: clients see an Azure
// that had not got so far, with machines that are missing, never half there.
const (
	saveDelay = 200 * time.Millisecond
	saveShare = 10
)

// saver writes the state some time after a change.
type saver struct {
	writing sync.Mutex // one writer at a time; taken before Server.mu
	timer   *time.Timer
	set     bool
	took    time.Duration // the last writing
}

// dirty says that something changed.
func (s *Server) dirty() {
	if s.cfg.StateFile == "" || s.closed || s.saver == nil || s.saver.set {
		return
	}
	s.saver.set = true
	s.saver.timer = time.AfterFunc(max(saveDelay, saveShare*s.saver.took), func() {
		if err := s.flush(); err != nil {
			s.log.Error("cannot write the state", "file", s.cfg.StateFile, "error", err)
		}
	})
}

// flush writes the state and the new audit entries now.
func (s *Server) flush() error {
	if s.cfg.StateFile == "" {
		return nil
	}
	s.saver.writing.Lock()
	defer s.saver.writing.Unlock()
	s.mu.Lock()
	s.saver.set = false
	if s.saver.timer != nil {
		s.saver.timer.Stop()
	}
	s.forgetOperations()
	s.throttle.forget(s.now())
	frozen := s.st.freeze()
	entries := s.audit.entries[s.audit.unsaved:]
	s.audit.unsaved = len(s.audit.entries)
	s.mu.Unlock()
	start := time.Now()
	defer func() {
		s.mu.Lock()
		s.saver.took = time.Since(start)
		s.mu.Unlock()
	}()
	raw, err := json.Marshal(frozen)
	if err != nil {
		return fmt.Errorf("encode the state of the simulated Azure: %w", err)
	}
	if err := s.appendAudit(entries); err != nil {
		return err
	}
	// A rename within a folder is atomic: a reader sees the old state or the new one.
	next := s.cfg.StateFile + ".next"
	if err := os.WriteFile(next, raw, 0o600); err != nil {
		return fmt.Errorf("write the state of the simulated Azure: %w", err)
	}
	if err := os.Rename(next, s.cfg.StateFile); err != nil {
		return fmt.Errorf("write the state of the simulated Azure: %w", err)
	}
	return nil
}

// freeze copies what changes in place, so that the copy can be encoded while
// requests go on. Documents are shared: they are never changed.
func (st *state) freeze() *state {
	c := *st
	c.Resources = make(map[string]*resource, len(st.Resources))
	for k, r := range st.Resources {
		f := *r
		if r.VM != nil {
			vm := *r.VM
			f.VM = &vm
		}
		if r.NIC != nil {
			nic := *r.NIC
			f.NIC = &nic
		}
		c.Resources[k] = &f
	}
	c.Operations = make(map[string]*operation, len(st.Operations))
	for k, o := range st.Operations {
		f := *o
		c.Operations[k] = &f
	}
	c.Faults = make([]*Fault, len(st.Faults))
	for i, f := range st.Faults {
		g := *f
		c.Faults[i] = &g
	}
	c.Tasks, c.Held = slices.Clone(st.Tasks), slices.Clone(st.Held)
	return &c
}

func (s *Server) auditFile() string { return s.cfg.StateFile + ".audit" }

// appendAudit adds entries to the audit file, one JSON object a line.
func (s *Server) appendAudit(entries []AuditEntry) error {
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

// restore takes up the state of an earlier server, if there is one.
func (s *Server) restore() error {
	if s.cfg.StateFile == "" {
		return nil
	}
	defer func() { s.saver = &saver{} }()
	raw, err := os.ReadFile(s.cfg.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the state of the simulated Azure: %w; delete the file to start anew", err)
	}
	st := newState()
	if err := json.Unmarshal(raw, st); err != nil {
		return fmt.Errorf("read the state of the simulated Azure from %s: %w; delete the file to start anew", s.cfg.StateFile, err)
	}
	s.st = st
	s.st.reindex()
	s.rebuildBooks()
	return s.restoreAudit()
}

// restoreAudit reads the audit log back. A last line that was cut off by a
// kill is dropped.
func (s *Server) restoreAudit() error {
	f, err := os.Open(s.auditFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	for {
		var e AuditEntry
		if err := dec.Decode(&e); err != nil {
			break
		}
		s.audit.entries = append(s.audit.entries, e)
	}
	s.audit.unsaved = len(s.audit.entries)
	return nil
}
