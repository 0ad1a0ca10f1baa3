package cloud_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// play plays a story on a lab of its own, with the given engine.
func play(t *testing.T, name, engine string) {
	t.Helper()
	story, err := scenario.Story(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := cloud.Complete(lab.Config{Dir: filepath.Join(t.TempDir(), "lab"), Executable: nap(t)}, cloud.Options{}, engine)
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, cfg)
	var told strings.Builder
	err = cloud.Play(t.Context(), l.Env.Dir, story, &told)
	t.Log(told.String())
	if err != nil {
		logs, _ := os.ReadFile(filepath.Join(l.Env.Dir, "logs", "controller.log"))
		t.Fatalf("%v\nthe controller's last words:\n%s", err, logs[max(0, len(logs)-8000):])
	}
}

// nap builds the program whose controller the lab runs.
func nap(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nap")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/nodeautoprovision/nap/cmd/nap").CombinedOutput()
	if err != nil {
		t.Fatalf("build nap: %v\n%s", err, out)
	}
	return path
}

func TestADeploymentGetsMachinesAndGivesThemBack(t *testing.T) { play(t, "demo", "nap") }

func TestTheControllerIsKilledTenTimesAndNothingIsBoughtTwice(t *testing.T) { play(t, "chaos", "nap") }

func TestSpotMachinesThatAreTakenBackAreReplaced(t *testing.T) { play(t, "eviction", "nap") }

func TestTheControllerIsKilledWhileItGivesBackAndLeavesNothingBehind(t *testing.T) {
	play(t, "consolidate-killed", "nap")
}
