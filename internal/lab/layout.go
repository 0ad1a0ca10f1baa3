package lab

import (
	"fmt"
	"os"
	"path/filepath"
)

// layout knows where things are in a lab's folder, given as an absolute path.
type layout string

// layoutOf finds the folder that a user named; empty means DefaultDir.
func layoutOf(dir string) (layout, error) {
	if dir == "" {
		dir = DefaultDir
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("lab folder %q: %w", dir, err)
	}
	return layout(abs), nil
}

func (l layout) path(elem ...string) string {
	return filepath.Join(append([]string{string(l)}, elem...)...)
}

func (l layout) lock() string            { return l.path("lock") }
func (l layout) state() string           { return l.path("state.json") }
func (l layout) pki(file string) string  { return l.path("pki", file) }
func (l layout) etcd() string            { return l.path("etcd") }
func (l layout) schedulerConfig() string { return l.path("kube-scheduler.yaml") }
func (l layout) egressConfig() string    { return l.path("egress.yaml") }
func (l layout) auditPolicy() string     { return l.path("audit.yaml") }
func (l layout) detached() string        { return l.path("logs", "detached.out") }
func (l layout) log(part string) string  { return l.path("logs", part+".log") }

// kubeconfig is the kubeconfig of an identity. The administrator's is at the top,
// because people type its path.
func (l layout) kubeconfig(id string) string {
	if id == admin {
		return l.path("kubeconfig")
	}
	return l.path("kubeconfigs", id)
}

// create makes the folders, readable by their owner only. A folder that exists,
// holds something and was never a lab is refused: a lab does not mix its files
// with files of another program. The lock file is what marks a lab's folder.
func (l layout) create() error {
	entries, err := os.ReadDir(string(l))
	switch {
	case os.IsNotExist(err):
	case err != nil:
		return fmt.Errorf("lab folder: %w", err)
	case len(entries) > 0:
		if _, err := os.Stat(l.lock()); err != nil {
			return fmt.Errorf("%s is not empty and is not a lab's folder; choose another with --dir", l)
		}
	}
	for _, dir := range []string{string(l), l.path("kubeconfigs"), l.path("pki"), l.path("logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("lab folder: %w", err)
		}
	}
	mark, err := os.OpenFile(l.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lab folder: %w", err)
	}
	return mark.Close()
}

// rotateLogs puts the logs of the previous run aside, replacing those of the run
// before, so that what a killed lab said last can still be read.
func (l layout) rotateLogs() error {
	logs, err := filepath.Glob(l.path("logs", "*.log"))
	if err != nil {
		return err
	}
	for _, log := range logs {
		if err := os.Rename(log, log+".1"); err != nil {
			return fmt.Errorf("put the previous log aside: %w", err)
		}
	}
	return nil
}

// writeSecret writes a file that only its owner may read, replacing it in one
// step: a reader sees the old content or the new one.
func writeSecret(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
