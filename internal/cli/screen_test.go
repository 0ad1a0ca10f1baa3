package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tooWide are the lines of an answer for people which are wider than a screen and could be
// broken. Errors are one line each, however long.
func tooWide(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if len([]rune(line)) > screenColumns && !strings.HasPrefix(line, "nap: ") && len(phrases(line)) > 1 {
			out = append(out, line)
		}
	}
	return out
}

// fitsColumns wants no line of an answer to be wider than a screen.
func fitsColumns(t *testing.T, what, text string) {
	t.Helper()
	for _, line := range tooWide(text) {
		t.Errorf("%s: a line of %d columns:\n%s", what, len([]rune(line)), line)
	}
}

// TestAnswersFitTheScreen: whatever of the inputs that people have is asked, no line of the
// answer, and of what is said beside it, is wider than a screen. TestInputsThatPeopleHave and
// TestDocumentedCommandsRun look at the answers to further questions.
func TestAnswersFitTheScreen(t *testing.T) {
	t.Setenv("KUBECONFIG", "nowhere")
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	files = append(files, "../../docs/examples/fleet.yaml", "../../docs/examples/resource-claims.yaml", "../../docs/examples/budget.yaml")
	for _, file := range files {
		for _, question := range []string{"plan --budget 0", "plan --budget 0 --consolidate", "lint"} {
			out, errs, _ := nap.Run(t, append(strings.Fields(question), "-f", file)...)
			fitsColumns(t, "nap "+question+" -f "+file, out+errs)
		}
		_, errs, _ := nap.Run(t, "convert", "-f", file) // the objects are for programs
		for _, line := range tooWide(errs) {
			if !strings.ContainsAny(line[:1], "+- ") { // a line of the difference of two objects
				t.Errorf("nap convert -f %s: a line of %d columns:\n%s", file, len([]rune(line)), line)
			}
		}
	}
	for _, question := range []string{"savings --budget 0", "what-if --budget 0 --no-spot", "status", "get nodes", "get pools", "get moves"} {
		const file = "testdata/cases/aks-cluster-with-agent-pools.yaml"
		out, errs, _ := nap.Run(t, append(strings.Fields(question), "-f", file)...)
		fitsColumns(t, "nap "+question+" -f "+file, out+errs)
	}
}

// TestGoldenAnswersFitTheScreen: the same of all answers that scripts of testdata compare with
// those of a command without -o.
func TestGoldenAnswersFitTheScreen(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for name, golden := range goldensForPeople(string(text)) {
			looked++
			fitsColumns(t, script+", "+name, golden)
		}
	}
	if looked < 20 {
		t.Errorf("only %d answers were looked at", looked)
	}
}

// goldensForPeople are the files of a script with which it compares what a command says
// without -o, by name.
func goldensForPeople(script string) map[string]string {
	commands, files, _ := strings.Cut(script, "\n-- ")
	out, last := map[string]string{}, []string{}
	for line := range strings.Lines(commands) {
		words := strings.Fields(line)
		switch {
		case len(words) > 2 && words[0] == "nap":
			last = words
		case len(words) == 1 && words[0] == "patches": // which is for programs
			last = []string{"-o"}
		}
		if len(words) < 3 || words[0] != "cmp" || slices.Contains(last, "-o") {
			continue
		}
		if _, rest, found := strings.Cut("\n-- "+files, "\n-- "+words[2]+" --\n"); found {
			out[words[2]], _, _ = strings.Cut(rest, "\n-- ")
		}
	}
	return out
}

// TestCommandsOfSentencesStayWhole: sentences are broken between words, but not within a name
// nor within a command that they offer.
func TestCommandsOfSentencesStayWhole(t *testing.T) {
	const long = "a-name-that-is-longer-than-a-screen-is-wide-as-those-of-objects-of-Kubernetes-and-of-Azure-may-well-be"
	for text, whole := range map[string]string{
		"its nodes are not removed voluntarily, frozen by hand for two days; thaw them: nap thaw general":                       "nap thaw general",
		"no size meets its requirements, those of the region and those of the cluster: kubectl edit nodepool general":           "kubectl edit nodepool general",
		"it may buy 5 sizes, and Azure sells none of them in this zone now: nap get offers --filter refused=everywhere -o wide": "nap get offers --filter refused=everywhere -o wide",
		"4 pods are planned only when it is due, which is at some time of the night, and nap plan --due plans them now":         "nap plan --due",
		"what the controller says stands in its log, of which the last lines are shown by kubectl logs -n kube-system nap-0":    "kubectl logs -n kube-system nap-0",
		"the pod of that name, which is longer than most names are, is " + long:                                                 long,
	} {
		lines := wrapIndented("    " + text)
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, whole) }) {
			t.Errorf("%q is broken in:\n%s", whole, strings.Join(lines, "\n"))
		}
		if joined := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); joined != text {
			t.Errorf("got %q, want %q", joined, text)
		}
		if got := tooWide(strings.Join(lines, "\n")); len(got) > 0 {
			t.Errorf("too wide: %q", got)
		}
	}
	for _, sentence := range []string{"nap buys linux machines only", "nap cannot tell its pods"} {
		if n := len(phrases(sentence)); n != len(strings.Fields(sentence)) {
			t.Errorf("%q has %d phrases: it is no command", sentence, n)
		}
	}
	for _, cmd := range newTree().Commands() {
		if name := cmd.Name(); name != "help" && !strings.Contains(offeredCommands, " "+name+" ") {
			t.Errorf("offeredCommands lacks %s", name)
		}
	}
}
