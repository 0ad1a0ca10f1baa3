package lab

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func startSleep(t *testing.T) (*exec.Cmd, Identity) {
	t.Helper()
	s := newSpawner()
	cmd := exec.Command("sleep", "60")
	id, err := s.start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s.close()
	})
	return cmd, id
}

func TestProcessIdentityHasStartTime(t *testing.T) {
	_, id := startSleep(t)
	if !id.Alive() {
		t.Fatalf("%+v is not seen alive", id)
	}
	other := id
	other.Start = "1@some-other-boot"
	if other.Alive() {
		t.Error("a process that was started at another time is taken for the same one")
	}
	if err := other.kill(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("kill of a process that is not ours = %v, want %v", err, os.ErrProcessDone)
	}
	if !id.Alive() {
		t.Error("a process that is not ours was killed")
	}
	if (Identity{}).Alive() {
		t.Error("no process is alive")
	}
}

func TestKilledProcessIsNotAliveBeforeReaping(t *testing.T) {
	_, id := startSleep(t)
	if err := endLeftover(id); err != nil {
		t.Fatal(err)
	}
	if id.Alive() {
		t.Error("a zombie is taken for a living process")
	}
}

func TestProcessLeadsOwnGroup(t *testing.T) {
	_, id := startSleep(t)
	group, err := syscall.Getpgid(id.PID)
	if err != nil {
		t.Fatal(err)
	}
	if group != id.PID {
		t.Errorf("process group %d, want %d: Ctrl-C would reach the child", group, id.PID)
	}
}

// runShell runs a shell script as a child and returns what the child said.
func runShell(ctx context.Context, t *testing.T, script string, grace time.Duration, ready func()) (string, error) {
	t.Helper()
	s := newSpawner()
	defer s.close()
	c := child{
		spawner: s, program: "/bin/sh", args: []string{"-c", script}, grace: func() time.Duration { return grace },
		log:   filepath.Join(t.TempDir(), "log"),
		ready: func(context.Context) error { return nil },
	}
	err := c.run(ctx, events{started: func(Identity) {}, ready: ready, unready: func(error) {}})
	log, readErr := os.ReadFile(c.log)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(log), err
}

func TestProcessExitStatus(t *testing.T) {
	log, err := runShell(t.Context(), t, "echo so long; exit 3", 0, func() {})
	if err == nil || err.Error() != "ended with exit status 3" {
		t.Errorf("error = %v", err)
	}
	if log != "so long\n" {
		t.Errorf("log = %q", log)
	}
	if _, err := runShell(t.Context(), t, "exit 0", 0, func() {}); err == nil || err.Error() != "ended with exit status 0" {
		t.Errorf("error = %v, want one: a part is not supposed to end", err)
	}
}

func TestProcessTerminatedBeforeKilled(t *testing.T) {
	tests := map[string]struct {
		script  string
		grace   time.Duration
		wantLog string
	}{
		"it obeys":       {"trap 'echo bye; exit' TERM; echo up; while :; do :; done", time.Minute, "up\nbye\n"},
		"it does not":    {"trap '' TERM; echo up; while :; do :; done", 50 * time.Millisecond, "up\n"},
		"it has no time": {"trap 'echo bye; exit' TERM; echo up; while :; do :; done", 0, "up\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			dir := t.TempDir()
			up := filepath.Join(dir, "up")
			script := strings.Replace(tc.script, "echo up;", "echo up; : >"+up+";", 1)
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(up); err == nil {
						cancel()
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			log, err := runShell(ctx, t, script, tc.grace, func() {})
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want %v", err, context.Canceled)
			}
			if log != tc.wantLog {
				t.Errorf("log = %q, want %q", log, tc.wantLog)
			}
		})
	}
}
