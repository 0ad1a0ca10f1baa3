package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

var rewrite = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

// nap is the program under test.
var nap clitest.Main = func(ctx context.Context, args []string, s command.Streams) int {
	return Main(ctx, args, "test", s)
}

func TestHelpOfEveryCommand(t *testing.T) { nap.Help(t, newRoot("test", command.Streams{}, time.Now)) }

func TestUsageErrorsAreOneLineWithHint(t *testing.T) {
	nap.Mistakes(t, map[string]clitest.Mistake{
		"unknown command":        {Args: []string{"frob"}, Want: `nap: unknown command "frob" for "nap"; there are: `},
		"unknown flag":           {Args: []string{"plan", "--frob"}, Want: "nap: unknown flag: --frob; see: nap plan --help"},
		"lab build":              {Args: []string{"lab", "build", "--frob"}, Want: "nap: unknown flag: --frob; see: nap lab build --help"},
		"ledger of what is none": {Args: []string{"ledger", "foo"}, Want: `nap: got "foo", allowed: costs, purchases, moves`},
		"two ledgers":            {Args: []string{"ledger", "costs", "moves"}, Want: "nap: got 2 arguments, must be one at most: costs, purchases, moves"},
		"moves of files":         {Args: []string{"get", "moves", "-f", "x.yaml"}, Want: "nap: -f: moves are what the controller of a cluster publishes, "},
		"input twice":            {Args: []string{"diff", "-f", "-", "--from", "-"}, Want: "nap: -f -, --from -: standard input can be read once: "},
		"input for two files":    {Args: []string{"plan", "-f", "-", "-f", "-"}, Want: "nap: -f -, -f -: standard input can be read once: "},
		"sheet and reservations of one input": {Args: []string{"prices", "import", "--region", "eastus", "--price-sheet", "-", "--reservations", "-"},
			Want: "nap: --price-sheet -, --reservations -: standard input can be read once: "},
	})
}

// TestValuesThatWouldDoNothing: each is refused, for an answer that leaves it aside misleads.
func TestValuesThatWouldDoNothing(t *testing.T) {
	const fleet = "../../docs/examples/fleet.yaml"
	tests := map[string]clitest.Mistake{}
	for line, want := range map[string]string{
		"plan -n A_B -f " + fleet:                                     `nap: --namespace: got "A_B", must be the name of a namespace: `,
		"status -n A_B -f " + fleet:                                   `nap: --namespace: got "A_B", must be the name of a namespace: `,
		"get nodes --sort-by {.nope} -f " + fleet:                     "nap: --sort-by: got {.nope}, which no node here has; -o json shows the fields",
		"get nodes --filter size<5 -f " + fleet:                       `nap: --filter: got "size<5", but column size has text, which = and != compare`,
		"get nodes -o jsonpath= -f " + fleet:                          `nap: --output: got "jsonpath=" without a template, must be such as `,
		"plan -o jsonpath= -f " + fleet:                               `nap: --output: got "jsonpath=" without a template, must be such as `,
		"plan --request-timeout -1s -f " + fleet:                      `nap: invalid argument "-1s" for "--request-timeout" flag: allowed are 0s (no limit) and more; see: nap plan --help`,
		"status --request-timeout=-1s":                                `nap: invalid argument "-1s" for "--request-timeout" flag: allowed are 0s (no limit) and more; see: nap status --help`,
		"plan --pending-only --spot-to-spot -f " + fleet:              "nap: --spot-to-spot: decides which nodes move, and with --pending-only none is looked at",
		"plan --pending-only --eviction-price 1 -f " + fleet:          "nap: --eviction-price: decides which nodes move, and with --pending-only none",
		"plan --engine karpenter --eviction-payback 1h -f " + fleet:   "nap: --eviction-payback: decides which nodes move, and with --engine karpenter none",
		"plan --replay x.json --consolidation-minimum-saving 0 -f -":  "nap: --consolidation-minimum-saving: decides which nodes move, and with --replay none",
		"plan -n default --eviction-price 1 -f " + fleet:              "nap: --eviction-price: decides which nodes move, and with -n and -l none",
		"plan --replay x.json --seed 1 -f " + fleet:                   "nap: --seed: --replay repeats an answer with that answer's own",
		"what-if --scale shop/web=30 --scale shop/web=50 -f " + fleet: "nap: --scale: got shop/web=50, but another --scale has given shop/web a number already; give one",
	} {
		tests[line] = clitest.Mistake{Args: strings.Fields(line), Want: want}
	}
	nap.Mistakes(t, tests)
	out, errs, code := nap.Run(t, "plan", "--budget", "0", "-n", "nope", "-f", fleet)
	if want := "nap: --namespace: the input has no pod in namespace nope; it has pods in "; code != 1 || out != "" || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, want %q in:\n%s%s", code, want, errs, out)
	}
}

// TestSizesGoByBothNames: with the word that all have, and without it as tables show them.
func TestSizesGoByBothNames(t *testing.T) {
	fleet := []string{"-f", "../../docs/examples/fleet.yaml"}
	for _, args := range [][]string{
		{"get", "offers", "SIZE", "--no-headers"}, {"get", "offers", "--filter", "size=SIZE", "--no-headers"},
		append([]string{"get", "nodes", "--filter", "size=SIZE", "--no-headers"}, fleet...),
		append([]string{"get", "nodes", "--filter", "size!=SIZE", "--no-headers"}, fleet...),
	} {
		var answers []string
		for _, size := range []string{"Standard_D4s_v5", "D4s_v5", "d4s_V5"} {
			asked := slices.Clone(args)
			for i := range asked {
				asked[i] = strings.ReplaceAll(asked[i], "SIZE", size)
			}
			out, errs, code := nap.Run(t, asked...)
			if code != 0 || out == "" {
				t.Errorf("%v: exit code %d, said %s", asked, code, errs)
			}
			answers = append(answers, out)
		}
		if answers[0] != answers[1] || answers[0] != answers[2] {
			t.Errorf("%v: the names of one size get answers of their own: %q", args, answers)
		}
	}
}

// TestArgumentsThatNoCommandTakes: files want -f, and where there are none, nothing is taken.
func TestArgumentsThatNoCommandTakes(t *testing.T) {
	tests := map[string]clitest.Mistake{}
	for _, name := range []string{"lint", "convert", "machine bootdata", "status", "plan", "diff", "savings", "what-if"} {
		tests[name] = clitest.Mistake{Args: append(strings.Fields(name), "foo.yaml"),
			Want: `nap: got "foo.yaml", but files are given with -f: nap ` + name + " -f foo.yaml"}
	}
	for _, name := range []string{"catalog", "images", "doctor", "version", "shadow", "enable", "disable", "prices fetch", "prices import"} {
		tests[name] = clitest.Mistake{Args: append(strings.Fields(name), "foo"),
			Want: "nap: nap " + name + ` takes no arguments, got "foo"; see: nap ` + name + " --help"}
	}
	nap.Mistakes(t, tests)
}

// TestInterruptsEndCommands: those that read standard input, and those that are about to plan.
func TestInterruptsEndCommands(t *testing.T) {
	for _, line := range []string{
		"plan -f -", "convert -f -", "lint -f -", "prices import --region eastus --price-sheet -", "prices import --region eastus --reservations -",
		"plan -f ../../docs/examples/web.yaml", "machine bootdata -f -",
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, interrupt)
		silent, end := io.Pipe() // which nothing is ever written into
		if !strings.HasSuffix(line, "-") {
			interrupt()
		}
		var out, errs bytes.Buffer
		code := Main(ctx, strings.Fields(line), "test", command.Streams{In: silent, Out: &out, Err: &errs})
		if code != 130 || errs.String() != "nap: interrupted\n" || out.Len() > 0 {
			t.Errorf("nap %s: exit code %d, said %q", line, code, errs.String()+out.String())
		}
		_ = end.Close()
	}
}

// fullDisk takes nothing that is written.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnswersThatCannotBeWrittenAreErrors(t *testing.T) {
	for _, line := range []string{
		"lint -f ../../docs/examples/fleet.yaml", "lint -o json -f ../../docs/examples/fleet.yaml", "--help", "lint --help", "prices", "--version",
		"version", "completion bash", "catalog", "plan -f ../../docs/examples/web.yaml --budget 0",
	} {
		var errs bytes.Buffer
		code := Main(t.Context(), strings.Fields(line), "test", command.Streams{In: strings.NewReader(""), Out: fullDisk{}, Err: &errs})
		if code != 1 || strings.Count(errs.String(), "nap: no space left on device\n") != 1 {
			t.Errorf("nap %s: exit code %d, said %q", line, code, errs.String())
		}
	}
}

// script puts a program beside nothing but in PATH, which shows its arguments.
func script(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return path
}

func TestControllerCommandRunsProgramInPath(t *testing.T) {
	script(t, "nap-controller", `echo "$@"; echo talk >&2; exit 7`)
	out, errs, code := nap.Run(t, "controller", "--engine=karpenter", "manifests", "--user", "a b")
	if want := "--engine=karpenter manifests --user a b\n"; out != want || errs != "talk\n" || code != 7 {
		t.Errorf("stdout %q, stderr %q, exit code %d; want %q, its talk, 7", out, errs, code, want)
	}
}

func TestLabCommandRunsProgramOfVariable(t *testing.T) {
	t.Setenv("NAP_LAB_BINARY", script(t, "another-lab", `echo "$@"`))
	out, errs, code := nap.Run(t, "lab", "status", "--dir", "x")
	if want := "status --dir x\n"; out != want || code != 0 {
		t.Errorf("stdout %q, stderr %q, exit code %d; want %q", out, errs, code, want)
	}
}

// A question is no reason to build the lab, or to build it again.
func TestHelpOfLabIsAnsweredByTheProgramThatIsThere(t *testing.T) {
	t.Setenv("NAP_LAB_BINARY", "")
	script(t, "nap-lab", `echo "$@"`)
	for _, line := range []string{"", "up --help", "up -h", "help up"} {
		out, errs, code := nap.Run(t, append([]string{"lab"}, strings.Fields(line)...)...)
		if out != line+"\n" || errs != "" || code != 0 {
			t.Errorf("nap lab %s: stdout %q, stderr %q, exit code %d", line, out, errs, code)
		}
	}
	if asksForHelp([]string{"kubectl", "--", "get", "--help"}) || asksForHelp([]string{"up"}) {
		t.Error("what is no question of the lab's is taken for one")
	}
}

func TestControllerCommandWithoutProgramNamesIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, errs, code := nap.Run(t, "controller")
	if code != 1 || !strings.Contains(errs, "nap-controller is missing") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
}

func TestCompletionRunsOtherProgram(t *testing.T) {
	script(t, "nap-controller", `[ "$1" = __complete ] && printf 'manifests\tPrint\n:4\n'`)
	out, _, code := nap.Run(t, "__complete", "controller", "man")
	if code != 0 || !strings.HasPrefix(out, "manifests\tPrint\n") {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
}

func TestPluginNamesItselfAsKubectlDoes(t *testing.T) {
	plugin := clitest.Main(func(ctx context.Context, args []string, s command.Streams) int { return Plugin(ctx, args, "test", s) })
	out, errs, code := plugin.Run(t, "plan", "--help")
	if code != 0 || errs != "" || !strings.Contains(out, "Usage:\n  kubectl nap plan") {
		t.Errorf("exit code %d, stderr %q, stdout:\n%s", code, errs, out)
	}
}

// TestHelpOfPluginOffersItsCommands: descriptions, examples and flags of each command say what
// has to be typed, on lines that fit the screen as those of nap do.
func TestHelpOfPluginOffersItsCommands(t *testing.T) {
	plugin := clitest.Main(func(ctx context.Context, args []string, s command.Streams) int { return Plugin(ctx, args, "test", s) })
	root := newRoot("test", command.Streams{}, time.Now)
	examples := 0
	for _, name := range append(commandsOf(root), "", "get", "machine", "prices") {
		cmd, _, err := root.Find(strings.Fields(name))
		if err != nil || cmd.DisableFlagParsing {
			continue
		}
		out, errs, code := plugin.Run(t, append(strings.Fields(name), "--help")...)
		if code != 0 || errs != "" {
			t.Errorf("%s --help: exit code %d, %s", name, code, errs)
		}
		for _, found := range ownCommand.FindAllStringSubmatch(out, -1) {
			if strings.HasPrefix(found[0], "nap ") && strings.Contains(offeredCommands, " "+found[1]+" ") {
				t.Errorf("the help of kubectl nap %s offers %q:\n%s", name, found[0], out)
			}
		}
		if long, rest, _ := strings.Cut(out, "\nUsage:\n"); cmd.Long != "" { // the rest cobra does not break
			_, rest, _ = strings.Cut(rest, "\nExamples:\n")
			shown, _, _ := strings.Cut(rest, "\nFlags:\n")
			shown, _, _ = strings.Cut(shown, "\nAvailable Commands:\n")
			fitsColumns(t, "kubectl nap "+name+" --help", long+shown)
		}
		typed := strings.Join(strings.Fields(strings.ReplaceAll(out, " \\\n", " ")), " ") // broken lines are one command
		for line := range strings.Lines(cmd.Example) {
			line = strings.Join(strings.Fields(line), " ")
			if examples++; strings.HasPrefix(line, "nap ") && !strings.Contains(typed, "kubectl "+line) {
				t.Errorf("the example %q is not in the help of kubectl nap %s:\n%s", line, name, out)
			}
		}
	}
	if examples < 50 {
		t.Errorf("only %d lines of examples were looked at", examples)
	}
}

// newTree is nap's tree of commands, with those that cobra adds.
func newTree() *cobra.Command {
	root := newRoot("test", command.Streams{}, time.Now)
	root.InitDefaultCompletionCmd()
	return root
}

func TestVersionForPrograms(t *testing.T) {
	out, errs, code := nap.Run(t, "version", "-o", "json")
	if code != 0 || errs != "" || !strings.Contains(out, `"version": "`) || !strings.Contains(out, `"platform": "`) {
		t.Errorf("exit code %d, %s%s", code, errs, out)
	}
}
