package cloud_test

import (
	"os"
	"os/exec"
	"path/filepath"
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

// The lab's own cluster is played on as a foreign one: all that the story is told is
// the context of a kubeconfig, and the variables that a controller has.
func TestStoryPlaysOnAnotherCluster(t *testing.T) {
	t.Parallel()
	cfg, err := cloud.Complete(lab.Config{Dir: filepath.Join(t.TempDir(), "lab"), Executable: controllerProgram(t)},
		cloud.Options{ProvisionMode: config.ModeVMs}, "nap")
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, cfg)
	variables, err := cloud.ControllerEnvironment(l.Env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	program, err := binary.Ensure(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	// The command of docs/real-cluster.md that plays the story, as nap-lab takes it.
	walk := strings.Fields(strings.ReplaceAll(pages.Of(t, root)[0].Text, "$CLUSTER_NAME", "nap-lab"))[2:]
	elsewhere := t.TempDir() // no lab is there
	play := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, append(slices.Clone(walk), args...)...)
		cmd.Env = append(append(os.Environ(), variables...), "KUBECONFIG="+l.Env.Kubeconfig)
		cmd.Dir = elsewhere
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := play("--patience", "1")
	t.Log(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"left out fault capacity priority=Spot", "left out fault clear", "Give everything back", "No machine and no NodeClaim is left."} {
		if !strings.Contains(out, want) {
			t.Errorf("the story does not tell: %s", want)
		}
	}
	azure, err := cloud.Open(l.Env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer azure.Close()
	if left, err := azure.Leaks(t.Context(), nil); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// What is there already is not touched.
	mine := []byte("apiVersion: karpenter.azure.com/v1beta1\nkind: AKSNodeClass\nmetadata: {name: default}\nspec: {osDiskSizeGB: 64}\n")
	admin, err := l.Env.AdminConfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Apply(t.Context(), admin, mine); err != nil {
		t.Fatal(err)
	}
	if out, err := play(); err == nil || !strings.Contains(out, "has AKSNodeClass default already") {
		t.Errorf("played over what is there: %v\n%s", err, out)
	}
}
