package cloud_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/binary"
)

// root is the way from here to the root of the repository.
const root = "../../.."

// shell runs lines of pages in a folder of its own, where nap and kubectl are in PATH, and
// find the folder's lab.
type shell struct {
	t   *testing.T
	dir string
	env []string
}

// newShell makes one; variables are set in it.
func newShell(t *testing.T, variables ...string) *shell {
	t.Helper()
	labProgram, err := binary.Ensure(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := filepath.Dir(build(t, "nap")), t.TempDir()
	controllerProgram(t)
	buildKubectl(t)
	linked := filepath.Join(bin, binary.Name)
	if err := os.Symlink(labProgram, linked); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	// Pages name the programs as they are called in a checkout, too.
	if err := os.Symlink(bin, filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	return &shell{t: t, dir: dir, env: append([]string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "KUBECONFIG=" + filepath.Join(dir, lab.DefaultDir, "kubeconfig"), binary.Variable + "=" + linked,
	}, variables...)}
}

// buildKubectl builds kubectl, of the release that the lab's control plane is of.
func buildKubectl(t *testing.T) {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(built, "kubectl")
	if _, err := os.Stat(path); err == nil {
		return
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, "k8s.io/kubernetes/cmd/kubectl")
	cmd.Dir = filepath.Join(root, "lab")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build kubectl: %v\n%s", err, out)
	}
}

// run runs a line, and returns what it prints.
func (s *shell) run(line string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", line)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
