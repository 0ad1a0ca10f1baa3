package armsim

// Kill stops a server as SIGKILL would: nothing more is written.
func (s *Server) Kill() {
	s.locked(func() {
		s.sub.Tasks.Stop()
		s.saver.closed = true
		if s.saver.timer != nil {
			s.saver.timer.Stop()
		}
	})
}

// Unsound names what does not fit together in the state; empty when all does.
func (s *Server) Unsound() (wrong string) {
	s.locked(func() { wrong = s.unsound() })
	return wrong
}
