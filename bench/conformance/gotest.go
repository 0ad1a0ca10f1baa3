package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// run executes a command in a folder, which it also names in PWD: Go would otherwise
// follow the link to its module cache. Output goes to out.
func run(ctx context.Context, dir string, env []string, out io.Writer, command ...string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "PWD="+dir)...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// RunAPI runs a suite of kind API and returns its specs. What the suite prints goes to
// the file NAME.log in the workspace. Specs that fail are no error.
func (w *Workspace) RunAPI(ctx context.Context, s Suite) ([]Spec, error) {
	root, err := w.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	overlay, err := w.Overlay(s, root)
	if err != nil {
		return nil, err
	}
	assets, err := w.Assets()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(w.Dir, s.Name+".log"))
	if err != nil {
		return nil, fmt.Errorf("open the log of suite %s: %w", s.Name, err)
	}
	defer log.Close()
	report := filepath.Join(w.Dir, s.Name+".json")
	if err := os.RemoveAll(report); err != nil {
		return nil, fmt.Errorf("remove the last report of suite %s: %w", s.Name, err)
	}
	env := []string{"KUBEBUILDER_ASSETS=" + assets, labVariable + "=" + w.Lab}
	ran := run(ctx, root, env, log, "go", "test", "-count=1", "-overlay="+overlay, "./"+s.Package, "-ginkgo.json-report="+report)
	_, specs, err := ReadReport(report)
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w; see %s", s.Name, errors.Join(ran, err), log.Name())
	}
	if ran != nil && allPassed(specs) {
		return nil, fmt.Errorf("suite %s: a test besides its specs failed: %w; see %s", s.Name, ran, log.Name())
	}
	return specs, nil
}

func allPassed(specs []Spec) bool {
	for _, s := range specs {
		if s.State != Passed {
			return false
		}
	}
	return true
}
