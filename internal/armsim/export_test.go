package armsim

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
