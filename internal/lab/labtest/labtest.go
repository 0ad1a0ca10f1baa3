// Package labtest starts real control planes for tests.
//
//	l := labtest.Start(t, lab.Config{Manifests: crds})
//	client := l.Client()
//
// A lab takes 3 to 5 s to start and about 700 MB, so a test package starts one
// and shares it. It ends with the test, and its processes end with the test
// process however that ends.
package labtest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/binary"
)

// Lab is a running lab of a test.
type Lab struct {
	// Env describes it.
	Env lab.Environment

	t    testing.TB
	stop func() // sync.OnceFunc
}

// Start starts a lab, waits until it is ready and stops it when the test ends.
// Without a Dir the folder is a temporary one. The control plane's binary is
// built if it is missing, which takes minutes; without one the test fails.
func Start(t testing.TB, cfg lab.Config) *Lab {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(t.TempDir(), "lab")
	}
	if cfg.Progress == nil {
		cfg.Progress = func(line string) { t.Log(line) }
	}
	if cfg.Binary == "" {
		cfg.Binary = Binary(t)
	}
	running, err := lab.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- running.Run(ctx) }()
	select {
	case <-running.Ready():
	case err := <-ended:
		stop()
		t.Fatalf("the lab did not start: %v", err)
	}
	l := &Lab{Env: running.Environment(), t: t, stop: sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the lab ended with: %v", err)
		}
	})}
	t.Cleanup(l.Stop)
	return l
}

// Binary returns the path of the control plane's binary, built if need be.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary.Installed(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Stop stops the lab before the test ends. Calling it again does nothing.
func (l *Lab) Stop() { l.stop() }

// Config returns a fresh client configuration with cluster-admin rights.
func (l *Lab) Config() *rest.Config {
	l.t.Helper()
	cfg, err := l.Env.AdminConfig()
	if err != nil {
		l.t.Fatal(err)
	}
	return cfg
}

// Client returns a client with cluster-admin rights.
func (l *Lab) Client() kubernetes.Interface {
	l.t.Helper()
	client, err := kubernetes.NewForConfig(l.Config())
	if err != nil {
		l.t.Fatal(err)
	}
	return client
}

// State returns what runs.
func (l *Lab) State() *lab.State {
	l.t.Helper()
	s, err := lab.Inspect(l.Env.Dir)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// Part returns the state of one part.
func (l *Lab) Part(name string) lab.PartState {
	l.t.Helper()
	p := l.State().Part(name)
	if p == nil {
		l.t.Fatalf("the lab has no part %q", name)
	}
	return *p
}

// Kill kills a part's process as a crash would.
func (l *Lab) Kill(part string) {
	l.t.Helper()
	if err := lab.Kill(l.Env.Dir, part); err != nil {
		l.t.Fatalf("kill %s: %v", part, err)
	}
}

// Restart ends a part and waits until it is ready again.
func (l *Lab) Restart(part string) {
	l.t.Helper()
	if err := lab.Restart(l.t.Context(), l.Env.Dir, part); err != nil {
		l.t.Fatal(err)
	}
}

// Await polls until the condition holds and fails the test if it does not within
// three minutes, which is for slow machines. what completes the sentence "waited for ...".
func Await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	const timeout = 3 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for %s, in vain", timeout, what)
		case <-tick.C:
		}
	}
}
