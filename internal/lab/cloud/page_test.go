package cloud_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/binary"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/pages"
)

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/azure.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every command of the page runs in a lab, in the order of the page.
func TestAzurePageCommandsRun(t *testing.T) {
	t.Parallel()
	program, dir := build(t, "nap"), filepath.Join(t.TempDir(), "lab")
	labProgram, err := binary.Ensure(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := cloud.Complete(lab.Config{Dir: dir, Executable: controllerProgram(t)}, cloud.Options{}, "nap")
	if err != nil {
		t.Fatal(err)
	}
	labtest.Start(t, cfg)
	for _, c := range pages.Of(t, root) {
		args := strings.Fields(c.Text)[1:]
		if args[0] == "lab" {
			args = append(args, "--dir", dir)
		}
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), binary.Variable+"="+labProgram)
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) == 0 {
			t.Errorf("%s: %v\n%s", &c, err, out)
		}
	}
}

func TestAzurePageHasWholeRole(t *testing.T) {
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^- `(Microsoft\\.[^`]+)`$").FindAllStringSubmatch(readPage(t), -1) {
		listed = append(listed, m[1])
	}
	if want := config.Actions(); !slices.Equal(listed, want) {
		t.Errorf("the page lists %d actions, want %d:\n%s", len(listed), len(want), strings.Join(want, "\n"))
	}
}
