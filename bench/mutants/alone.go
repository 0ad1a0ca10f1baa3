package mutants

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// judgeAlone runs the tests of the packages against one mutant that no switch can express,
// in order, until one fails. It compiles each of them.
func (r Runner) judgeAlone(ctx context.Context, m Mutant, tests []string) (Outcome, error) {
	scratch, err := os.MkdirTemp(r.Scratch, "alone")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	path := filepath.Join(r.Root, filepath.FromSlash(m.File))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	overlay, err := writeOverlay(scratch, map[string][]byte{path: m.Apply(source)})
	if err != nil {
		return "", err
	}
	for _, dir := range tests {
		args := []string{"test", "-vet=off", "-failfast", "-timeout", r.Timeout.String(), "-overlay", overlay, "./" + dir}
		out, err := r.command(ctx, args...).CombinedOutput()
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
