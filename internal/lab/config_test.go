package lab

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

type namedService string

func (s namedService) Name() string                           { return string(s) }
func (s namedService) Run(context.Context, Environment) error { return errors.New("not to be run") }

func TestConfigErrors(t *testing.T) {
	tests := map[string]struct {
		config Config
		want   string
	}{
		"no binary":             {Config{}, "nap-lab binary"},
		"too few nodes":         {Config{Binary: "b", Nodes: -1}, "nodes = -1"},
		"too many nodes":        {Config{Binary: "b", Nodes: 5001}, "between 0 and 5000"},
		"no such port":          {Config{Binary: "b", Ports: map[string]int{"web": 70000}}, `port "web" = 70000`},
		"lost too soon":         {Config{Binary: "b", NodeMonitorGracePeriod: time.Second}, "grace period 1s: must be at least 20s"},
		"a name with a slash":   {Config{Binary: "b", Services: []Service{namedService("../etc")}}, `"../etc"`},
		"a component's name":    {Config{Binary: "b", Services: []Service{namedService(Etcd)}}, "taken"},
		"the supervisor's name": {Config{Binary: "b", Services: []Service{namedService("supervisor")}}, "taken"},
		"a name twice":          {Config{Binary: "b", Services: []Service{namedService("sim"), namedService("sim")}}, "taken"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := New(tc.config); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New = %v, want an error about %s", err, tc.want)
			}
		})
	}
}

func TestConfigRefusesInvalidBinary(t *testing.T) {
	for _, script := range []string{"exit 1", "echo 1.2.3"} {
		dir := t.TempDir()
		binary := dir + "/nap-lab"
		if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := New(Config{Dir: dir + "/lab", Binary: binary})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nap lab build") {
			t.Errorf("Run with a binary that does %q = %v, want an error that says how to build one", script, err)
		}
		if _, err := os.Stat(dir + "/lab"); err == nil {
			t.Error("the lab's folder was made all the same")
		}
	}
}

func TestConfigRefusesDataOfOtherKubernetesVersion(t *testing.T) {
	l := newFolder(t)
	if err := writeState(l, &State{Phase: PhaseStopped, KubernetesVersion: "v1.36.0"}); err != nil {
		t.Fatal(err)
	}
	binary := t.TempDir() + "/nap-lab"
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho kubernetes v1.37.1\necho etcd v3.7.0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	lab, err := New(Config{Dir: string(l), Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "v1.36.0") {
		t.Errorf("Run = %v, want an error that names the version of the data", err)
	}
}
