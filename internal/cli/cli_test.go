package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/lab"
)

var rewrite = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

// playNap makes the test program be nap: "nap lab up --detach" starts the
// running program a second time.
const playNap = "CLITEST_PLAY_NAP"

func TestMain(m *testing.M) {
	if os.Getenv(playNap) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := Main(ctx, os.Args[1:], "test", Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// nap runs the command line and returns what it wrote and its exit code.
func nap(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), args, "test", Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return out.String(), errs.String(), code
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("output differs from %s, see -rewrite (-want +got):\n%s", path, diff)
	}
}

func TestEveryCommandHasHelpAndSaysInAFewWordsWhatItDoes(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		out, errs, code := nap(t, args...)
		if errs != "" || code != 0 || !strings.Contains(out, "Usage:\n  "+cmd.CommandPath()) {
			t.Errorf("nap %s: exit code %d, stderr %q, stdout:\n%s", strings.Join(args, " "), code, errs, out)
		}
		if strings.HasSuffix(cmd.Short, ".") || cmd.Short == "" {
			t.Errorf("%s: short description %q, want a few words without a full stop", cmd.CommandPath(), cmd.Short)
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				visit(sub)
			}
		}
	}
	visit(newRoot("test", Streams{}))
}

func TestMistakesAreOneLineWithAHint(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown command":    {[]string{"frob"}, `nap: unknown command "frob" for "nap"; there are: `},
		"unknown subcommand": {[]string{"lab", "frob"}, `nap: unknown command "frob" for "nap lab"; there are: build, `},
		"unknown flag":       {[]string{"lab", "up", "--frob"}, "nap: unknown flag: --frob; see: nap lab up --help"},
		"bad flag value":     {[]string{"lab", "up", "--nodes", "many"}, `nap: invalid argument "many" for "--nodes" flag: strconv.ParseInt: parsing "many": invalid syntax; see: nap lab up --help`},
		"no argument":        {[]string{"lab", "restart"}, "nap: exactly one COMPONENT is needed, got 0; see: nap lab restart --help"},
		"too many arguments": {[]string{"lab", "logs", "a", "b"}, "nap: one component at most, got 2; see: nap lab logs --help"},
		"unknown format":     {[]string{"lab", "status", "-o", "xml"}, "nap: --output=xml: must be table or json"},
		"no lab":             {[]string{"lab", "status", "--dir", dir}, "nap: no lab in " + dir + "; start one with: nap lab up --dir " + dir},
		"no lab to stop":     {[]string{"lab", "down", "--dir", dir}, "nap: no lab in " + dir + "; start one with: nap lab up --dir " + dir},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, errs, code := nap(t, tc.args...)
			if out != "" {
				t.Errorf("stdout = %q, want nothing", out)
			}
			if !strings.HasPrefix(errs, tc.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("stderr = %q\nwant one line that begins with %q", errs, tc.want)
			}
			if code != 1 {
				t.Errorf("exit code = %d, want 1", code)
			}
		})
	}
}

func TestStatusTable(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := func(pid int) lab.Identity { return lab.Identity{PID: pid, Start: "then"} }
	ready := &lab.State{
		Phase: lab.PhaseReady, Dir: "/home/me/.lab", Supervisor: id(100), StartedAt: now.Add(-time.Hour),
		KubernetesVersion: "v1.37.1", Server: "https://127.0.0.1:6443", Kubeconfig: "/home/me/.lab/kubeconfig", Nodes: 3,
		ResidentBytes: 90 << 20,
		Parts: []lab.PartState{
			{Name: lab.Etcd, Kind: lab.KindComponent, Status: lab.StatusReady, Process: id(101), StartedAt: now.Add(-time.Hour), ResidentBytes: 110 << 20},
			{Name: lab.APIServer, Kind: lab.KindComponent, Status: lab.StatusUnready, Process: id(102), StartedAt: now.Add(-time.Minute), Restarts: 1, Unready: "500: etcd failed", LastExit: "ended with signal: killed", ResidentBytes: 300 << 20},
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
			golden(t, name, out.String())
		})
	}
}

func TestTheLifeOfADetachedLab(t *testing.T) {
	if _, _, code := nap(t, "lab", "build"); code != 0 {
		t.Fatal("the control plane cannot be built")
	}
	t.Setenv(playNap, "1")
	dir := filepath.Join(t.TempDir(), "lab")
	t.Cleanup(func() { _, _ = lab.Down(context.Background(), dir) })

	out, errs, code := nap(t, "lab", "up", "--detach", "--engine", "none", "--provision-mode", "aksmachineapi", "--dir", dir)
	if code != 0 {
		t.Fatalf("up: exit code %d, stderr:\n%s", code, errs)
	}
	for _, want := range []string{"Kubernetes v1.", "export KUBECONFIG=" + dir + "/kubeconfig", "nap lab down --dir " + dir} {
		if !strings.Contains(out, want) {
			t.Errorf("up printed %q, want %q in it", out, want)
		}
	}
	if variables, err := os.ReadFile(filepath.Join(dir, "azure.env")); err != nil || !strings.Contains(string(variables), "PROVISION_MODE='aksmachineapi'") {
		t.Errorf("the controller's environment is %s, %v", variables, err)
	}
	if !strings.Contains(errs, "kube-apiserver") {
		t.Errorf("up showed no progress, only %q", errs)
	}

	again, errs, code := nap(t, "lab", "up", "--detach", "--engine", "none", "--dir", dir)
	if code != 0 || !strings.Contains(errs, "running already") || again != out {
		t.Errorf("second up: exit code %d, stdout %q, stderr %q; want success, the same output, and that it runs already", code, again, errs)
	}

	out, _, code = nap(t, "lab", "status", "--dir", dir, "-o", "json")
	var state lab.State
	if err := json.Unmarshal([]byte(out), &state); err != nil || code != 0 {
		t.Fatalf("status: exit code %d, %v", code, err)
	}
	if !state.Healthy() || strings.Contains(out, "controlToken") {
		t.Errorf("status = %s, want a healthy lab and no token", out)
	}

	if _, errs, code := nap(t, "lab", "restart", lab.Scheduler, "--dir", dir); code != 0 || errs != "kube-scheduler is ready again\n" {
		t.Errorf("restart: exit code %d, stderr %q", code, errs)
	}
	if out, _, code := nap(t, "lab", "logs", lab.Scheduler, "--tail", "1", "--dir", dir); code != 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("logs: exit code %d, stdout %q, want one line", code, out)
	}
	if out, errs, code := nap(t, "lab", "down", "--dir", dir); code != 0 || out != "" || !strings.Contains(errs, "is stopped") {
		t.Errorf("down: exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	if _, errs, code := nap(t, "lab", "status", "--dir", dir); code != notReadyCode || errs != "" {
		t.Errorf("status of a stopped lab: exit code %d, stderr %q, want %d and silence", code, errs, notReadyCode)
	}
	for _, p := range state.Parts {
		if p.Process.Alive() {
			t.Errorf("%s still runs after down", p.Name)
		}
	}
}
