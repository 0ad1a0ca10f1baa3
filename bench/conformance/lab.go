package conformance

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// lab is the cluster of a run. It has no nodes but the tainted one on which nap runs, as
// the suites want, and no workload. nap is installed by its chart with the names that they
// look for: Deployment, lease and labels of Karpenter in kube-system, and two replicas, for
// one alone acts without a lease.
type lab struct {
	workspace *Workspace
	options   Selection
	running   bool
}

func (l *lab) dir() string { return filepath.Join(l.workspace.Dir, "lab-"+l.options.Engine) }

func (l *lab) kubeconfig() string { return filepath.Join(l.dir(), "kubeconfig") }

// start starts a new lab if none of this run is there. One that an earlier run has left
// is ended.
func (l *lab) start(ctx context.Context) error {
	if l.running {
		return nil
	}
	l.discard()
	env := []string{"FEATURE_GATES=" + l.options.Gates}
	err := run(ctx, l.workspace.Dir, env, os.Stderr, l.workspace.Lab, "up", "--detach", "--dir", l.dir(), "--nodes", "0",
		"--release", "karpenter", "--replicas", "2",
		"--engine", l.options.Engine, "--speed", strconv.FormatFloat(l.options.Speed, 'g', -1, 64))
	if err != nil {
		return fmt.Errorf("start a lab in %s: %w", l.dir(), err)
	}
	l.running = true
	return nil
}

// stop ends the lab that this run has started, if any. Its folder stays, to be looked at.
func (l *lab) stop() {
	if l.running {
		l.down()
	}
}

// down ends whatever lab runs in the folder. One that does not run any more is as good.
func (l *lab) down() {
	_ = run(context.Background(), l.workspace.Dir, nil, io.Discard, l.workspace.Lab, "down", "--dir", l.dir())
	l.running = false
}

// discard ends the lab and keeps its folder under another name, until the next one.
func (l *lab) discard() {
	l.down()
	kept := l.dir() + ".last"
	_ = os.RemoveAll(kept)
	_ = os.Rename(l.dir(), kept)
}
