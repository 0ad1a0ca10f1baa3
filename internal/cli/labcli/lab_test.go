package labcli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/binary"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

var _ = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

// nap is the command line under test, in this process: "nap lab ..." without the
// first two words.
var nap clitest.Main = Main

// program runs a command of the built nap-lab, which has the control plane in it.
func program(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := binary.Ensure(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestHelpOfEveryLabCommand(t *testing.T) { nap.Help(t, newLab(command.Streams{})) }

func TestLabUsageErrorsAreOneLineWithHint(t *testing.T) {
	dir := t.TempDir()
	nap.Mistakes(t, map[string]clitest.Mistake{
		"unknown subcommand": {Args: []string{"frob"}, Want: `nap: unknown command "frob" for "nap lab"; there are: demo, `},
		"unknown flag":       {Args: []string{"up", "--frob"}, Want: "nap: unknown flag: --frob; see: nap lab up --help"},
		"bad flag value": {Args: []string{"up", "--nodes", "many"},
			Want: `nap: --nodes: got "many", must be a whole number; see: nap lab up --help`},
		"unknown story": {
			Args: []string{"run", "frob"}, Want: `nap: frob is no file, and no story "frob", there are: ` + strings.Join(scenario.Stories(), ", "),
		},
		"no argument":        {Args: []string{"restart"}, Want: "nap: exactly one COMPONENT is needed, got 0; see: nap lab restart --help"},
		"too many arguments": {Args: []string{"logs", "a", "b"}, Want: "nap: one component at most, got 2; see: nap lab logs --help"},
		"unknown format":     {Args: []string{"status", "-o", "xml"}, Want: "nap: --output=xml: must be table or json"},
		"no lab": {
			Args: []string{"status", "--dir", dir}, Want: "nap: no lab in " + dir + "; start one with: nap lab up --dir " + dir,
		},
		"no lab to stop": {Args: []string{"down", "--dir", dir}, Want: "nap: no lab in " + dir + "; start one with: nap lab up --dir " + dir},
	})
}

func TestStatusTable(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := func(pid int) lab.Identity { return lab.Identity{PID: pid, Start: "then"} }
	ready := &lab.State{
		Phase: lab.PhaseReady, Dir: "/home/me/.lab", Supervisor: id(100), StartedAt: now.Add(-time.Hour),
		KubernetesVersion: "v1.37.1", Server: "https://127.0.0.1:6443", Kubeconfig: "/home/me/.lab/kubeconfig", Nodes: 3,
		ResidentBytes: 90 << 20,
		Parts: []lab.PartState{
			{Name: lab.Etcd, Kind: lab.KindComponent, Status: lab.StatusReady,
				Process: id(101), StartedAt: now.Add(-time.Hour), ResidentBytes: 110 << 20},
			{Name: lab.APIServer, Kind: lab.KindComponent, Status: lab.StatusUnready, Process: id(102), StartedAt: now.Add(-time.Minute),
				Restarts: 1, Unready: "500: etcd failed", LastExit: "ended with signal: killed", ResidentBytes: 300 << 20},
			{Name: lab.Scheduler, Kind: lab.KindComponent, Status: lab.StatusBackingOff, Restarts: 4, LastExit: "ended with exit status 1"},
			{Name: "sim", Kind: lab.KindService, Status: lab.StatusReady, Process: id(100), StartedAt: now.Add(-time.Hour)},
		},
	}
	killed := &lab.State{
		Phase: lab.PhaseKilled, Dir: "/home/me/.lab", Supervisor: id(100), KubernetesVersion: "v1.37.1",
		Parts: []lab.PartState{{Name: lab.Etcd, Kind: lab.KindComponent, Status: lab.StatusStopped}},
	}
	for name, state := range map[string]*lab.State{"status-ready": ready, "status-killed": killed} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := writeStatusTable(&out, state, now); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, name, out.String())
		})
	}
}

func TestDetachedLabLifecycle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	t.Cleanup(func() { _, _ = lab.Down(context.Background(), dir) })

	out, errs, code := program(t, "up", "--detach", "--engine", "none", "--provision-mode", "aksmachineapi", "--dir", dir)
	if code != 0 {
		t.Fatalf("up: exit code %d, stderr:\n%s", code, errs)
	}
	for _, want := range []string{"Kubernetes v1.", "export KUBECONFIG=" + dir + "/kubeconfig", "nap lab down --dir " + dir} {
		if !strings.Contains(out, want) {
			t.Errorf("up printed %q, want %q in it", out, want)
		}
	}
	if variables, err := os.ReadFile(filepath.Join(dir, "azure.env")); err != nil ||
		!strings.Contains(string(variables), "PROVISION_MODE='aksmachineapi'") {
		t.Errorf("the controller's environment is %s, %v", variables, err)
	}
	if !strings.Contains(errs, "kube-apiserver") {
		t.Errorf("up showed no progress, only %q", errs)
	}

	again, errs, code := program(t, "up", "--detach", "--engine", "none", "--dir", dir)
	if code != 0 || !strings.Contains(errs, "running already") || again != out {
		t.Errorf("second up: exit code %d, stdout %q, stderr %q; want success, the same output, and that it runs already", code, again, errs)
	}

	out, _, code = program(t, "status", "--dir", dir, "-o", "json")
	var state lab.State
	if err := json.Unmarshal([]byte(out), &state); err != nil || code != 0 {
		t.Fatalf("status: exit code %d, %v", code, err)
	}
	if !state.Healthy() || strings.Contains(out, "controlToken") {
		t.Errorf("status = %s, want a healthy lab and no token", out)
	}

	if _, errs, code := program(t, "restart", lab.Scheduler, "--dir", dir); code != 0 || errs != "kube-scheduler is ready again\n" {
		t.Errorf("restart: exit code %d, stderr %q", code, errs)
	}
	if out, _, code := program(t, "logs", lab.Scheduler, "--tail", "1", "--dir", dir); code != 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("logs: exit code %d, stdout %q, want one line", code, out)
	}
	if out, errs, code := program(t, "down", "--dir", dir); code != 0 || out != "" || !strings.Contains(errs, "is stopped") {
		t.Errorf("down: exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	if _, errs, code := program(t, "status", "--dir", dir); code != notReadyCode || errs != "" {
		t.Errorf("status of a stopped lab: exit code %d, stderr %q, want %d and silence", code, errs, notReadyCode)
	}
	for _, p := range state.Parts {
		if p.Process.Alive() {
			t.Errorf("%s still runs after down", p.Name)
		}
	}
}
