package lab

import (
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// gone is a reader of messages that has ended.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// A lab whose starter cannot go on is stopped, and not left half started.
func TestDetachedLabEndsWhenItsMessagesCannotBeRead(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo starting >&2; exec sleep 60")
	err := Detach(t.Context(), filepath.Join(t.TempDir(), "lab"), cmd, gone{})
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for cmd.Process.Signal(syscall.Signal(0)) == nil {
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatal("the lab's process lives on")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
