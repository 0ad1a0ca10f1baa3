package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	// Invalid: the changed code does not compile.
	Invalid Outcome = "invalid"
)

// Runner runs tests against changed code. The files of the module stay as they are: "go
// test -overlay" shows the compiler another content.
type Runner struct {
	// Root is the folder of the module.
	Root string
	// Scratch is a folder for the changed files.
	Scratch string
	// Timeout bounds the tests of one package; those that take longer have noticed.
	Timeout time.Duration
}

// Baseline runs the tests of the packages as they are. An error means that a mutant would
// look killed for a reason of its own.
func (r Runner) Baseline(ctx context.Context, tests []string) error {
	for _, dir := range tests {
		if out, err := r.test(ctx, dir, ""); err != nil {
			return fmt.Errorf("the tests of %s fail without any change, mend them first: %w\n%s", dir, err, out)
		}
	}
	return nil
}

// Judge runs the tests of the packages against one mutant, in order, until one fails.
func (r Runner) Judge(ctx context.Context, m Mutant, tests []string) (Outcome, error) {
	overlay, err := r.overlay(m)
	if err != nil {
		return "", err
	}
	for _, dir := range tests {
		out, err := r.test(ctx, dir, overlay)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		var exit *exec.ExitError
		switch {
		case err == nil:
		case !errors.As(err, &exit):
			return "", err
		case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
			return Invalid, nil
		default:
			return Killed, nil
		}
	}
	return Survived, nil
}

// overlay writes the changed file and what "go test -overlay" wants, and returns the
// latter's path.
func (r Runner) overlay(m Mutant) (string, error) {
	path := filepath.Join(r.Root, filepath.FromSlash(m.File))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(r.Scratch, "mutant.go")
	if err := os.WriteFile(changed, m.Apply(source), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(r.Scratch, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// test runs the tests of one package and returns what they print.
func (r Runner) test(ctx context.Context, dir, overlay string) ([]byte, error) {
	args := []string{"test", "-vet=off", "-failfast", "-timeout", r.Timeout.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+dir)...)
	cmd.Dir = r.Root
	// "go test" passes an interrupt on to the test binary; a kill would leave that running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}
