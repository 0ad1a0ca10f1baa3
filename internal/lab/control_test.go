package lab

import (
	"context"
	"errors"
	"os"
	"testing"
)

func TestControlSocketOnlyForOwner(t *testing.T) {
	var asked []string
	upgrade := func(_ context.Context, version string) (string, error) {
		if version == "2.0" {
			return "", errors.New("one at a time")
		}
		return "1.37.1", nil
	}
	c, err := startControl(func(_ context.Context, part string) error {
		asked = append(asked, part)
		if part == Scheduler {
			return errors.New("it does not want to")
		}
		return nil
	}, upgrade)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	l := newFolder(t)
	s := &State{
		Phase: PhaseReady, Supervisor: self, ControlPort: c.port(), ControlToken: "guess",
		Parts: []PartState{{Name: Etcd}, {Name: Scheduler}},
	}
	restart := func(part string) error {
		if err := writeState(l, s); err != nil {
			t.Fatal(err)
		}
		return Restart(t.Context(), string(l), part)
	}
	if err := restart(Etcd); err == nil || err.Error() != "wrong token" {
		t.Errorf("restart with a guessed token = %v", err)
	}
	s.ControlToken = c.token
	if err := restart(Etcd); err != nil {
		t.Errorf("restart = %v", err)
	}
	if err := restart(Scheduler); err == nil || err.Error() != "it does not want to" {
		t.Errorf("restart = %v, want the supervisor's own words", err)
	}
	if version, err := Upgrade(t.Context(), string(l), "1.37"); err != nil || version != "1.37.1" {
		t.Errorf("upgrade = %q, %v", version, err)
	}
	if _, err := Upgrade(t.Context(), string(l), "2.0"); err == nil || err.Error() != "one at a time" {
		t.Errorf("upgrade = %v, want the supervisor's own words", err)
	}
	if len(asked) != 2 {
		t.Errorf("the supervisor was asked for %v", asked)
	}
}
