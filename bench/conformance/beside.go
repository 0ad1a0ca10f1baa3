package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeautoprovision/nap/internal/kube/manifest"
)

// beside is a program of a suite's module that runs beside a lab.
type beside struct {
	cmd *exec.Cmd
	log *os.File
	// ended is closed when the program has ended.
	ended chan struct{}
}

// build makes the program that a suite needs beside the lab, and returns its path; empty for
// suites that need none.
func (w *Workspace) build(ctx context.Context, s Suite) (string, error) {
	if s.Beside.Package == "" {
		return "", nil
	}
	program := filepath.Join(w.Dir, filepath.Base(s.Beside.Package))
	changes, err := w.changes(s)
	if err != nil {
		return "", err
	}
	command := slices.Concat([]string{"go", "build"}, changes, []string{"-o", program, "./" + s.Beside.Package})
	if err := run(ctx, w.link(s), nil, os.Stderr, command...); err != nil {
		return "", fmt.Errorf("compile %s of suite %s: %w", s.Beside.Package, s.Name, err)
	}
	return program, nil
}

// runBeside applies the definition that a suite's program needs to the lab of the
// kubeconfig, and starts the program. It listens on ports of its own, 8082 and 8083.
func (w *Workspace) runBeside(ctx context.Context, s Suite, program, kubeconfig string) (*beside, error) {
	text, err := os.ReadFile(filepath.Join(w.link(s), s.Beside.Definition))
	if err != nil {
		return nil, fmt.Errorf("read the definition for %s: %w", program, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the lab: %w", err)
	}
	objects, err := manifest.Parse(text)
	if err != nil {
		return nil, err
	}
	applier, err := manifest.NewApplier(config, "conformance")
	if err != nil {
		return nil, err
	}
	if err := applier.Apply(ctx, objects); err != nil {
		return nil, err
	}
	b := &beside{cmd: exec.Command(program), ended: make(chan struct{})} //nolint:noctx // it is ended by stop
	if b.log, err = os.Create(program + ".log"); err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", program, err)
	}
	b.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	b.cmd.Stdout, b.cmd.Stderr = b.log, b.log
	if err := b.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), b.log.Close())
	}
	go func() {
		_ = b.cmd.Wait() // how it ended stands in its log
		close(b.ended)
	}()
	return b, nil
}

// over reports whether the program has ended by itself.
func (b *beside) over() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

// stopTime is how long a program may take to end when it is asked to.
const stopTime = 10 * time.Second

// stop ends the program; nothing is done for nil.
func (b *beside) stop() {
	if b == nil {
		return
	}
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-b.ended:
	case <-time.After(stopTime):
		_ = b.cmd.Process.Kill()
		<-b.ended
	}
	_ = b.log.Close()
}
