package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// Phase is where a lab is in its life.
type Phase string

// The phases. A lab whose supervisor was killed still says what it said last;
// Inspect turns that into PhaseKilled.
const (
	PhaseStarting Phase = "starting"
	PhaseReady    Phase = "ready"
	PhaseStopping Phase = "stopping"
	PhaseStopped  Phase = "stopped"
	PhaseKilled   Phase = "killed"
)

// Status is what a part is doing.
type Status string

// A waiting part is started once what it depends on is ready; an unready one
// runs and was ready before; one that backs off ended and is started again after
// a pause.
const (
	StatusWaiting    Status = "waiting"
	StatusStarting   Status = "starting"
	StatusReady      Status = "ready"
	StatusUnready    Status = "unready"
	StatusBackingOff Status = "backing-off"
	StatusStopped    Status = "stopped"
)

// Kind is how a part runs.
type Kind string

// The kinds; see the package comment.
const (
	KindComponent Kind = "component"
	KindService   Kind = "service"
	KindProcess   Kind = "process"
)

// PartState is the state of one part.
type PartState struct {
	Name   string `json:"name"`
	Kind   Kind   `json:"kind"`
	Status Status `json:"status"`
	// Pod is the pod that the part runs for, as namespace/name; empty for all others.
	Pod string `json:"pod,omitempty"`
	// Process is the part's own process; that of a service is the supervisor's.
	Process Identity `json:"process"`
	// Restarts counts the starts after the first in this run of the lab.
	Restarts int `json:"restarts"`
	// StartedAt is when the part was started last.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// ReadyAt is when it became ready after that.
	ReadyAt time.Time `json:"readyAt,omitzero"`
	// Unready says why the part is not ready, when its status is unready.
	Unready string `json:"unready,omitempty"`
	// LastExit says how it ended before that; empty if it never did.
	LastExit string `json:"lastExit,omitempty"`
	// ResidentBytes is the memory that the part's process occupies. Only Inspect
	// fills it in.
	ResidentBytes int64 `json:"residentBytes,omitempty"`
}

// State is what a lab's folder says about the lab.
type State struct {
	Phase Phase  `json:"phase"`
	Dir   string `json:"dir"`
	// Supervisor is the process that runs the lab.
	Supervisor Identity  `json:"supervisor"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	ReadyAt    time.Time `json:"readyAt,omitzero"`
	// KubernetesVersion and EtcdVersion are those of the binary that made or
	// last opened the data, such as "v1.37.1".
	KubernetesVersion string `json:"kubernetesVersion"`
	EtcdVersion       string `json:"etcdVersion"`
	// Served is the version that the control plane is of: KubernetesVersion, or an earlier
	// one that its program plays. It is empty where a lab was made before there was a choice.
	Served string `json:"served,omitempty"`
	// Server is the API server's URL.
	Server     string `json:"server,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Nodes      int    `json:"nodes"`
	// Ports are the TCP ports on 127.0.0.1 by part or purpose.
	Ports map[string]int `json:"ports,omitempty"`
	// ControlPort and ControlToken let nap reach the supervisor.
	ControlPort  int         `json:"controlPort,omitempty"`
	ControlToken string      `json:"controlToken,omitempty"`
	Parts        []PartState `json:"parts"`
	// ResidentBytes is the memory of the supervisor, services included. Only
	// Inspect fills it in.
	ResidentBytes int64 `json:"residentBytes,omitempty"`
}

// PartNames lists the parts in starting order.
func (s *State) PartNames() []string {
	names := make([]string, len(s.Parts))
	for i, p := range s.Parts {
		names[i] = p.Name
	}
	return names
}

// Part returns the part of that name, or nil.
func (s *State) Part(name string) *PartState {
	i := slices.IndexFunc(s.Parts, func(p PartState) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Parts[i]
}

// Healthy reports whether the lab and all its parts are ready.
func (s *State) Healthy() bool {
	return s.Phase == PhaseReady && !slices.ContainsFunc(s.Parts, func(p PartState) bool { return p.Status != StatusReady })
}

// markStopped makes a state that of a lab of which nothing runs.
func markStopped(s *State) {
	s.Phase, s.Supervisor, s.ControlPort, s.ControlToken = PhaseStopped, Identity{}, 0, ""
	for i := range s.Parts {
		s.Parts[i].Status, s.Parts[i].Process = StatusStopped, Identity{}
	}
}

func (s *State) clone() *State {
	c := *s
	c.Ports = maps.Clone(s.Ports)
	c.Parts = slices.Clone(s.Parts)
	return &c
}

// readState reads a lab's state.json. It returns ErrNoLab when there is none.
func readState(l layout) (*State, error) {
	data, err := os.ReadFile(l.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoLab
	}
	if err != nil {
		return nil, fmt.Errorf("lab state: %w", err)
	}
	s := &State{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("lab state %s: %w; delete the lab's folder to start afresh", l.state(), err)
	}
	return s, nil
}

func writeState(l layout, s *State) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = writeSecret(l.state(), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("lab state: %w", err)
	}
	return nil
}

// board is the running lab's state: in memory for the supervisor, and after each
// change on disk for all other processes.
type board struct {
	layout layout
	// failed is told when the state cannot be written, which must not stop the
	// lab.
	failed func(error)

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed and replaced at each change
}

func newBoard(l layout, s State, failed func(error)) *board {
	return &board{layout: l, state: s, failed: failed, changed: make(chan struct{})}
}

// update changes the state and writes it.
func (b *board) update(change func(*State)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.state)
	close(b.changed)
	b.changed = make(chan struct{})
	if err := writeState(b.layout, &b.state); err != nil {
		b.failed(err)
	}
}

// updatePart changes the state of one part.
func (b *board) updatePart(name string, change func(*PartState)) {
	b.update(func(s *State) {
		if p := s.Part(name); p != nil {
			change(p)
		}
	})
}

// snapshot returns a copy of the state, and a channel that is closed when the
// state has changed since.
func (b *board) snapshot() (*State, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.clone(), b.changed
}
