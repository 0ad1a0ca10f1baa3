//go:build scale

package cloud_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// raceReport begins what a program that is built with the race detector says of two
// goroutines which use the same memory without order.
const raceReport = "WARNING: DATA RACE"

// buildRaceDetecting builds the controller so that it reports data races. The detector is
// a library in C, so Go wants a C compiler.
func buildRaceDetecting(t *testing.T) string {
	t.Helper()
	compiler, err := exec.CommandContext(t.Context(), "go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(strings.TrimSpace(string(compiler))); err != nil {
		t.Fatalf("the race detector needs a C compiler: %v; install gcc, or name one with CC", err)
	}
	path := filepath.Join(built, "nap-controller-race")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", path, "github.com/nodeautoprovision/nap/cmd/nap-controller")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build nap-controller with the race detector: %v\n%s", err, out)
	}
	return path
}

// races are the reports in a log of the controller, each up to the line that ends it.
func races(log string) []string {
	var out []string
	for _, part := range strings.Split(log, raceReport)[1:] {
		report, _, _ := strings.Cut(part, "\n==================")
		out = append(out, raceReport+report)
	}
	return out
}

// Short stories with a controller that reports data races: machines are bought, taken back
// and replaced, and the controller is killed meanwhile.
func TestStoriesHaveNoDataRace(t *testing.T) {
	program := buildRaceDetecting(t)
	for _, c := range []struct{ story, mode string }{
		{"short", config.ModeAKSMachinesBatched},
		{"eviction", config.ModeVMs},
	} {
		t.Run(c.story, func(t *testing.T) {
			story, err := scenario.Story(c.story)
			if err != nil {
				t.Fatal(err)
			}
			l := startProgram(t, program, "nap", cloud.Options{ProvisionMode: c.mode})
			playOn(t, l, story)
			log, err := os.ReadFile(filepath.Join(l.Env.Dir, "logs", "controller.log"))
			if err != nil {
				t.Fatal(err)
			}
			for _, report := range races(string(log)) {
				t.Error(report)
			}
		})
	}
}

// Reports are found as the detector writes them, between lines of the log.
func TestRaceReportsAreFound(t *testing.T) {
	log := "one\n==================\nWARNING: DATA RACE\nWrite at 0x1 by goroutine 7:\n  f()\n==================\ntwo\n" +
		"==================\nWARNING: DATA RACE\nRead at 0x2 by goroutine 8:\n==================\n"
	got := races(log)
	if len(got) != 2 || !strings.HasSuffix(got[0], "goroutine 7:\n  f()") || strings.Contains(strings.Join(got, ""), "two") {
		t.Errorf("got %q", got)
	}
	if got := races("all is well\n"); got != nil {
		t.Errorf("got %q of a log without reports", got)
	}
}
