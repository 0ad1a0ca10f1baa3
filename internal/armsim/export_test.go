package armsim

import (
	"fmt"
	"slices"
)

// Kill stops a server as SIGKILL would: nothing more is written.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.saver != nil && s.saver.timer != nil {
		s.saver.timer.Stop()
	}
}

// Unsound names what does not fit together in the state; empty when all does.
func (s *Server) Unsound() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	used, taken := map[string]int64{}, map[string]string{}
	for _, r := range s.st.Resources {
		if r.VM != nil && r.VM.Counted {
			size, _ := s.cat.Size(r.VM.Spec.Size)
			for _, u := range s.usagesOf(r.VM.Spec) {
				used[u] += int64(size.VCPUs)
			}
		}
		switch {
		case r.VM != nil && (r.VM.Phase == phaseCreating || r.VM.Phase == phaseDeleting) && !s.hasTask(key(r.ID)):
			return r.ID + " is " + string(r.VM.Phase) + " and nothing will end it"
		case r.VM != nil && r.VM.Counted == (r.VM.Phase == phaseFailed || r.VM.Phase == phaseDeallocated) && !r.Fixed && r.VM.Phase != phaseDeleting:
			return r.ID + " is " + string(r.VM.Phase) + " and counted wrongly"
		case r.NIC != nil && r.NIC.VM != "" && s.find(r.NIC.VM) == nil:
			return r.ID + " is attached to a machine that is gone"
		case r.Typ == typeDisk && s.find(text(r.Doc, "managedBy")) == nil:
			return r.ID + " belongs to a machine that is gone"
		}
		if r.NIC == nil {
			continue
		}
		for name, a := range r.NIC.Addresses {
			if other := taken[a]; other != "" {
				return r.ID + " has the address of " + other
			}
			taken[a] = r.ID
			if !s.ips[r.NIC.Subnets[name]][a] {
				return a + " is in use and free"
			}
		}
	}
	if n := len(s.addresses(key(s.SubnetID()))); n != len(taken) {
		return fmt.Sprintf("%d addresses are taken, %d in use", n, len(taken))
	}
	for u, n := range s.quota.used {
		if used[u] != n {
			return fmt.Sprintf("%s counts %d, its machines have %d", u, n, used[u])
		}
	}
	return ""
}

func (s *Server) hasTask(k string) bool {
	is := func(t task) bool { return t.Key == k }
	return slices.ContainsFunc(s.st.Tasks, is) || slices.ContainsFunc(s.st.Held, func(h heldTask) bool { return is(h.Task) })
}
