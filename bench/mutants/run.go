package mutants

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// Outcome is what the tests said of a mutant.
type Outcome string

// The outcomes.
const (
	// Killed: a test failed, as it should, or did not end.
	Killed Outcome = "killed"
	// Survived: all tests passed, so nothing would notice the loss.
	Survived Outcome = "survived"
	// Unreached: no test gets where the mutant would make a difference.
	Unreached Outcome = "reached by no test"
	// Invalid: the changed code does not compile.
	Invalid Outcome = "invalid"
)

// Runner runs tests against changed code. The files of the module stay as they are: "go
// build -overlay" shows the compiler another content.
type Runner struct {
	// Root is the folder of the module.
	Root string
	// Scratch is a folder for the changed files and the tests' binaries.
	Scratch string
	// Timeout bounds the tests of one package; those that take longer have noticed.
	Timeout time.Duration
}

// command is the go command with arguments, in the module.
func (r Runner) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.Root
	// The go command passes an interrupt on to what it runs; a kill would leave that running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// writeOverlay writes files into a folder, and beside them what "go build -overlay" wants to
// show them in other places. It returns the latter's path.
func writeOverlay(folder string, files map[string][]byte) (string, error) {
	replace := map[string]string{}
	for path, content := range files {
		replace[path] = filepath.Join(folder, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(replace[path], content, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
