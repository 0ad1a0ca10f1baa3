package lab

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// aLabThatRan writes the state of a lab whose supervisor is the given process.
func aLabThatRan(t *testing.T, supervisor, child Identity) layout {
	t.Helper()
	l := newFolder(t)
	err := writeState(l, &State{
		Phase: PhaseReady, Supervisor: supervisor, ControlToken: "secret",
		Parts: []PartState{
			{Name: Etcd, Kind: KindComponent, Status: StatusReady, Process: child},
			{Name: "sim", Kind: KindService, Status: StatusReady, Process: supervisor},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestInspectWithoutLabNamesCommand(t *testing.T) {
	dir := t.TempDir()
	for name, call := range map[string]func() error{
		"inspect": func() error { _, err := Inspect(dir); return err },
		"down":    func() error { _, err := Down(t.Context(), dir); return err },
		"restart": func() error { return Restart(t.Context(), dir, Etcd) },
		"logs":    func() error { return Logs(t.Context(), dir, LogOptions{}, os.Stdout) },
	} {
		err := call()
		if !errors.Is(err, ErrNoLab) || !strings.Contains(err.Error(), "nap lab up --dir "+dir) {
			t.Errorf("%s: %v, want an error that says how to start a lab there", name, err)
		}
	}
}

func TestInspectWithoutSupervisorIsKilled(t *testing.T) {
	gone := Identity{PID: 1, Start: "another process"}
	_, child := startSleep(t)
	l := aLabThatRan(t, gone, child)
	s, err := Inspect(string(l))
	if err != nil {
		t.Fatal(err)
	}
	if s.Phase != PhaseKilled || s.Healthy() {
		t.Errorf("phase = %s, healthy = %v, want %s and unhealthy", s.Phase, s.Healthy(), PhaseKilled)
	}
	if p := s.Part(Etcd); p.Process != child || p.ResidentBytes == 0 {
		t.Errorf("the leftover child is shown as %+v", p)
	}
	if p := s.Part("sim"); p.Status != StatusStopped {
		t.Errorf("a service outlived its supervisor: %+v", p)
	}
	if err := Restart(t.Context(), string(l), Etcd); err == nil || !strings.Contains(err.Error(), "not running (killed)") {
		t.Errorf("restart = %v", err)
	}

	stopped, err := Down(t.Context(), string(l))
	if err != nil || !stopped {
		t.Errorf("Down = %v, %v, want the leftover ended", stopped, err)
	}
	if child.Alive() {
		t.Error("the leftover still runs after down")
	}
	if s, err = Inspect(string(l)); err != nil || s.Phase != PhaseStopped {
		t.Errorf("phase after down = %s, %v", s.Phase, err)
	}
}

func TestNewLabEndsProcessesOfKilledLab(t *testing.T) {
	_, child := startSleep(t)
	_, stranger := startSleep(t)
	l := aLabThatRan(t, Identity{PID: 1, Start: "another process"}, child)
	s, err := readState(l)
	if err != nil {
		t.Fatal(err)
	}
	// The id of this one was reused by a process that is not the lab's.
	s.Parts = append(s.Parts, PartState{Name: Scheduler, Process: Identity{PID: stranger.PID, Start: "before"}})
	if err := writeState(l, s); err != nil {
		t.Fatal(err)
	}
	var said []string
	next, err := New(Config{Dir: string(l), Binary: "nap-lab", Progress: func(line string) { said = append(said, line) }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.recover(); err != nil {
		t.Fatal(err)
	}
	if child.Alive() {
		t.Error("the leftover still runs")
	}
	if !stranger.Alive() {
		t.Error("a process that is not the lab's was killed")
	}
	if len(said) != 1 || !strings.Contains(said[0], Etcd) {
		t.Errorf("said %q, want one line about etcd", said)
	}
}

func TestStateOnDiskMatchesMemory(t *testing.T) {
	l := newFolder(t)
	b := newBoard(l, State{Phase: PhaseStarting, Parts: []PartState{{Name: Etcd}}}, func(err error) { t.Error(err) })
	_, changed := b.snapshot()
	b.updatePart(Etcd, func(p *PartState) { p.Status, p.Restarts = StatusReady, 2 })
	select {
	case <-changed:
	default:
		t.Error("nobody was told of the change")
	}
	inMemory, _ := b.snapshot()
	onDisk, err := readState(l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(inMemory, onDisk); diff != "" {
		t.Errorf("state (-memory +disk):\n%s", diff)
	}
	inMemory.Parts[0].Restarts = 7
	if again, _ := b.snapshot(); again.Parts[0].Restarts != 2 {
		t.Error("a snapshot shares memory with the board")
	}
}

func TestInspectUnreadableStateNamesRemedy(t *testing.T) {
	l := newFolder(t)
	if err := os.WriteFile(l.state(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(string(l)); err == nil || !strings.Contains(err.Error(), "delete the lab's folder") {
		t.Errorf("error = %v", err)
	}
}
