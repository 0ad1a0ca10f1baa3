package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// Scripts run side by side, each as a process of its own would, and Karpenter's tables of labels
// are global: they are complete before the first test reads them.
func TestMain(m *testing.M) {
	cloudprovider.RegisterLabels()
	if _, err := karpenterengine.InstanceTypes(&kube.CatalogFile{}); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestPlanScripts runs the scripts of testdata/plan: commands as a person types
// them on the files of docs/examples, with their output. Run with -rewrite to
// accept new output; read the diff.
//
// A script has, beside testscript's own commands, "nap CODE ARGS..." which runs
// nap and wants this exit code. What depends on the speed of the machine is
// replaced by zero.
func TestPlanScripts(t *testing.T) {
	examples, err := filepath.Abs("../../docs/examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/plan",
		UpdateScripts: *rewrite,
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", examples)
			e.Setenv("KUBECONFIG", filepath.Join(e.WorkDir, "no-kubeconfig"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"nap": func(ts *testscript.TestScript, neg bool, args []string) { scriptNap(t.Context(), ts, neg, args) },
		},
	})
}

func scriptNap(ctx context.Context, ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: nap CODE ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i, a := range args {
		if strings.HasSuffix(a, ".yaml") || strings.HasSuffix(a, ".json") {
			args[i] = ts.MkAbs(a)
		}
	}
	var out, errs bytes.Buffer
	code := Main(ctx, args[1:], "test", command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	_, err1 := fmt.Fprint(ts.Stdout(), steady(out.String(), ts))
	_, err2 := fmt.Fprint(ts.Stderr(), steady(errs.String(), ts))
	ts.Check(errors.Join(err1, err2))
	if code != want {
		ts.Fatalf("nap %s ended with exit code %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}

var (
	planMillis = regexp.MustCompile(`("?planMillis"?): \d+`)
	// replayJSON and replayYAML are the records of what a plan asked of the clock.
	replayJSON = regexp.MustCompile(`"replay": \{(?s:.*?)\n    \}`)
	replayYAML = regexp.MustCompile(`(?m)^  replay:\n(?:    .*\n)+`)
)

// steady removes what differs between machines.
func steady(text string, ts *testscript.TestScript) string {
	text = planMillis.ReplaceAllString(text, "$1: 0")
	text = replayJSON.ReplaceAllString(text, `"replay": {}`)
	text = replayYAML.ReplaceAllString(text, "  replay: {}\n")
	for path, short := range map[string]string{
		ts.Getenv("WORK") + string(filepath.Separator): "", ts.Getenv("EXAMPLES"): "docs/examples",
	} {
		// A line may be broken before a path, which is longer on one machine than on another.
		text = regexp.MustCompile(`\n +(`+regexp.QuoteMeta(path)+`)`).ReplaceAllString(text, " $1")
		text = strings.ReplaceAll(text, path, short)
	}
	return text
}

func TestPlanReadsStandardInput(t *testing.T) {
	var out, errs bytes.Buffer
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`
	code := Main(t.Context(), []string{"plan", "-f", "-", "--budget", "0"},
		"test", command.Streams{In: strings.NewReader(pod), Out: &out, Err: &errs})
	if code != 2 || !strings.Contains(out.String(), "Pod default/p") {
		t.Errorf("exit code %d, output:\n%s%s", code, out.String(), errs.String())
	}
}

// TestPlanReplayRepeatsEarlierAnswer: an answer that a short budget cut is given again.
func TestPlanReplayRepeatsEarlierAnswer(t *testing.T) {
	run := func(code int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		args = append([]string{"plan", "-f", "../../docs/examples/web.yaml", "--pending-only"}, args...)
		if got := Main(t.Context(), args, "test", command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); got != code {
			t.Fatalf("nap %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, errs.String())
		}
		if code != 0 {
			return errs.String()
		}
		return planMillis.ReplaceAllString(out.String(), "$1: 0")
	}
	for _, output := range []string{"json", "yaml"} {
		file := filepath.Join(t.TempDir(), "plan")
		first := run(0, "--budget", "40ms", "--seed", "7", "-o", output)
		// Time has no part in so small a plan.
		if !strings.Contains(first, "budgetNanoseconds") || strings.Contains(first, "cutByTime") {
			t.Fatalf("the answer has no record, or says that time cut it:\n%s", first)
		}
		if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
			t.Fatal(err)
		}
		if again := run(0, "--replay", file, "-o", output); again != first {
			t.Errorf("got\n%s\nwant\n%s", again, first)
		}
		if got := run(1, "--replay", file, "--consolidate"); !strings.Contains(got, "neither --consolidate nor --engine karpenter") {
			t.Errorf("got %q", got)
		}
		if err := os.WriteFile(file, []byte(run(0, "--budget", "0", "-o", output)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := run(1, "--replay", file); !strings.Contains(got, "has no summary.replay") {
			t.Errorf("got %q", got)
		}
	}
}

// An answer with moves is repeated without them, and a note says so.
func TestPlanReplaySaysThatMovesAreNotRepeated(t *testing.T) {
	const fleet = "../../docs/examples/fleet.yaml"
	whole, _, code := nap.Run(t, "plan", "-f", fleet, "--budget", "30s", "-o", "json")
	if code != 2 || !strings.Contains(whole, `"moves": [`) {
		t.Fatalf("exit code %d:\n%s", code, whole)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	again, told, _ := nap.Run(t, "plan", "-f", fleet, "--replay", file, "-o", "json")
	told = strings.Join(strings.Fields(told), " ")
	if strings.Contains(again, `"moves": [`) || !strings.Contains(told, "note: --replay plans for pods that wait alone") ||
		!strings.Contains(told, "repeats none of the ") {
		t.Errorf("%q, and\n%s", told, again)
	}
}

func TestFormatDollars(t *testing.T) {
	for v, want := range map[float64]string{
		0.0225: "$0.022", 99.5: "$99.500", 100: "$100.00", 12518.04: "$12,518.04", 1234567.891: "$1,234,567.89",
	} {
		if got := dollars(v); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestVerifierAcceptsExamplePlans has the plan of every example checked by rules
// that share no code with the planner.
func TestVerifierAcceptsExamplePlans(t *testing.T) {
	files, err := filepath.Glob("../../docs/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c := &planCommand{streams: command.Streams{In: strings.NewReader("")}, now: func() time.Time { return time.Unix(0, 0) }}
			c.input.files = []string{file}
			made, err := c.make(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range verify.Check(made.input.Problem, made.plan) {
				t.Error(v)
			}
			short := []string{"pending.yaml", "budget.yaml"} // they show pods that stay pending
			if pending := len(made.plan.Unschedulable) > 0; pending != slices.Contains(short, filepath.Base(file)) {
				t.Errorf("%d classes stay pending", len(made.plan.Unschedulable))
			}
		})
	}
}
