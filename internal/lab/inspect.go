package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrNoLab is returned where no lab ever ran.
var ErrNoLab = errors.New("no lab")

// Inspect reads what runs in a lab's folder, checks it against the processes of
// this machine and adds the memory that they occupy. It needs no answer, so it works
// for any lab in any state. Without a lab it returns an error that wraps ErrNoLab
// and says how to start one.
func Inspect(dir string) (*State, error) {
	l, err := layoutOf(dir)
	if err != nil {
		return nil, err
	}
	s, err := readState(l)
	if errors.Is(err, ErrNoLab) {
		return nil, fmt.Errorf("%w in %s; start one with: nap lab up%s", ErrNoLab, l, DirFlag(dir))
	}
	if err != nil {
		return nil, err
	}
	s.Dir = string(l)
	if s.Phase != PhaseStopped && !s.Supervisor.Alive() {
		s.Phase = PhaseKilled
	}
	s.ResidentBytes = residentOf(s.Supervisor)
	for i := range s.Parts {
		p := &s.Parts[i]
		switch {
		case p.Kind != KindService && p.Process.Alive():
			p.ResidentBytes = residentOf(p.Process)
		case s.Phase == PhaseKilled:
			p.Status, p.Process = StatusStopped, Identity{}
		}
	}
	return s, nil
}

// DirFlag is what to add to a "nap lab" command to mean the same folder: nothing
// for the default one.
func DirFlag(dir string) string {
	if dir == "" || dir == DefaultDir {
		return ""
	}
	return " --dir " + dir
}

func residentOf(id Identity) int64 {
	if !id.Alive() {
		return 0
	}
	return residentBytes(id.PID)
}

// stopTimeout bounds how long Down waits for the supervisor to stop everything
// before it kills it.
const stopTimeout = 30 * time.Second

// Down stops the lab in dir and returns once nothing of it runs. The folder and
// its data stay. It reports false if nothing ran.
func Down(ctx context.Context, dir string) (stopped bool, err error) {
	s, err := Inspect(dir)
	if err != nil {
		return false, err
	}
	if s.Supervisor.Alive() {
		stopped = true
		if err := s.Supervisor.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return false, fmt.Errorf("stop the lab in %s (pid %d): %w", s.Dir, s.Supervisor.PID, err)
		}
		limited, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		if !s.Supervisor.await(limited) {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if err := s.Supervisor.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return false, fmt.Errorf("kill the lab in %s (pid %d): %w", s.Dir, s.Supervisor.PID, err)
			}
		}
	}
	for _, p := range s.Parts {
		if p.Kind == KindService || !p.Process.Alive() {
			continue
		}
		stopped = true
		if err := endLeftover(p.Process); err != nil {
			return stopped, fmt.Errorf("end %s (pid %d): %w", p.Name, p.Process.PID, err)
		}
	}
	return stopped, settle(layout(s.Dir))
}

// settle makes the state of a lab whose supervisor was killed say that nothing
// runs.
func settle(l layout) error {
	s, err := readState(l)
	if err != nil || s.Phase == PhaseStopped {
		return err
	}
	markStopped(s)
	return writeState(l, s)
}
