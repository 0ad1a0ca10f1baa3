package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pendingOf are the pods that stay pending by a plan for a file, one per workload.
func pendingOf(t *testing.T, file string) []string {
	t.Helper()
	out, _, _ := nap.Run(t, "plan", "-f", file, "-o", "json", "--budget", "0")
	var plan struct {
		Unschedulable []struct{ Pod string }
	}
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		return nil // nothing to plan for
	}
	var pods []string
	seen := map[string]bool{}
	for _, p := range plan.Unschedulable {
		if kind := strings.TrimRight(p.Pod, "0123456789-"); !seen[kind] {
			seen[kind] = true
			pods = append(pods, p.Pod)
		}
	}
	return pods
}

// TestExplanationsFitTheScreen: whatever of the inputs that people have is explained takes at
// most 12 lines of 80 columns, and what it offers as commands a shell reads as such.
func TestExplanationsFitTheScreen(t *testing.T) {
	asked, commands := 0, map[string]bool{}
	for _, pattern := range []string{"testdata/cases/*.yaml", "../../docs/examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			questions := []string{"node n1", "node general-e", "nodepool default", "nodepool general", "offer Standard_D4s_v5"}
			for _, pod := range pendingOf(t, file) {
				questions = append(questions, "pod "+pod)
			}
			for _, q := range questions {
				args := append(append([]string{"explain"}, strings.Fields(q)...), "-f", file, "--budget", "0")
				out, _, code := nap.Run(t, args...)
				if code == 1 {
					continue // there is no such thing
				}
				asked++
				fitsTheScreen(t, file+": "+q, out)
				out, _, _ = nap.Run(t, append(args, "-o", "json")...)
				var answer struct{ Commands []string }
				if err := json.Unmarshal([]byte(out), &answer); err != nil {
					t.Fatal(err)
				}
				for _, c := range answer.Commands {
					commands[c] = true
				}
			}
		}
	}
	for c := range commands {
		readsAsCommand(t, c)
		understood(t, c)
		readsAsCommand(t, strings.Join(breakCommand(c), "\n"))
		for _, line := range breakCommand(c) {
			if len(line) > 75 {
				t.Errorf("a line of %d columns: %s", len(line), line)
			}
		}
	}
	if asked < 40 || len(commands) < 8 {
		t.Errorf("only %d explanations and %d commands were looked at", asked, len(commands))
	}
}

func fitsTheScreen(t *testing.T, what, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) > 12 {
		t.Errorf("%s: %d lines:\n%s", what, len(lines), out)
	}
	fitsColumns(t, what, out)
}

// readsAsCommand lets a shell read a command whose programs only print their arguments, and
// looks for patches that are JSON.
func readsAsCommand(t *testing.T, command string) {
	t.Helper()
	const programs = "show() { printf '%s\\0' \"$@\" >&2; }\nkubectl() { show \"$@\"; }\nnap() { show \"$@\"; }\naz() { show \"$@\"; }\n"
	said, err := exec.CommandContext(t.Context(), "sh", "-euc", programs+command).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v: %s", command, err, said)
		return
	}
	words := strings.Split(string(said), "\x00")
	for i, word := range words {
		if word == "-p" && (i+1 == len(words) || !json.Valid([]byte(words[i+1]))) {
			t.Errorf("%s: the patch is no JSON", command)
		}
	}
}

// TestRemediesAreTheCheapestChanges: what is in the way of pods that no machine takes, and what
// helps, cheapest first.
func TestRemediesAreTheCheapestChanges(t *testing.T) {
	const file = "testdata/cases/impossible-pods.yaml"
	for pod, want := range map[string]string{
		"sysmode": `nearest miss: .*kubernetes.azure.com/mode=user, needs kubernetes.azure.com/mode In \[system\] ` +
			`fix: Create a NodePool with the label kubernetes.azure.com/mode: system .*1\. let NodePool default buy kubernetes.azure.com/mode=system: \$0`,
		"arm":       `1\. let NodePool default buy kubernetes.io/arch=arm64: \$0.* kubectl patch nodepool default .*"value":"arm64".*not the cause: taints, size, limits, quota, capacity of Azure`,
		"spotonly":  `1\. let NodePool default buy karpenter.sh/capacity-type=spot: \$0`,
		"agentpool": `1\. drop agentpool from the nodeSelector: \$0`,
		"wrongzone": `1\. drop topology.kubernetes.io/zone from the nodeSelector: \$0`,
	} {
		out, _, code := nap.Run(t, "explain", "pod", "default/"+pod, "-f", file, "--budget", "0", "-v")
		joined := strings.Join(strings.Fields(out), " ")
		if code != 2 || !regexp.MustCompile(want).MatchString(joined) {
			t.Errorf("%s: exit code %d, nothing matches %q in:\n%s", pod, code, want, out)
		}
	}
	tainted := poolWith("weight: 1", "requirements: []\n      taints: [{key: team, value: a, effect: NoSchedule}]") +
		"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, " +
		"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}\n"
	path := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(path, []byte(tainted), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code := nap.Run(t, "explain", "deploy/web", "-f", path, "--budget", "0")
	if joined := strings.Join(strings.Fields(out), " "); code != 2 || !strings.Contains(joined, "1. tolerate team=a:NoSchedule: $") ||
		!strings.Contains(joined, "kubectl patch deployment web -n default --type merge -p") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestImpossiblePodsAreExplained: each pod of the case gets its one reason, have and want, and what
// helps, within a screen.
func TestImpossiblePodsAreExplained(t *testing.T) {
	const file = "testdata/cases/impossible-pods.yaml"
	asked := map[string]string{
		"huge":       `One pod asks for more than a node of this type has.* has cpu 368.18, needs cpu 5000.*largest machine on sale`,
		"wrongzone":  `has topology.kubernetes.io/zone=\S+, needs topology.kubernetes.io/zone In .* fix: .*eastus-1, eastus-2, eastus-3`,
		"wrongzone2": `has topology.kubernetes.io/zone=\S+, needs topology.kubernetes.io/zone In .* fix: .*eastus-1, eastus-2, eastus-3`,
		"agentpool":  `Select karpenter.sh/nodepool instead of agentpool`,
		"sysmode":    `let NodePool default buy kubernetes.azure.com/mode=system`,
		"arm":        `let NodePool default buy kubernetes.io/arch=arm64`,
		"spotonly":   `let NodePool default buy karpenter.sh/capacity-type=spot`,
	}
	for _, full := range append(pendingOf(t, file), "default/wrongzone2") {
		out, errs, code := nap.Run(t, "explain", "pod", full, "-f", file, "--budget", "0")
		if code != 2 {
			t.Errorf("%s: exit code %d\n%s%s", full, code, errs, out)
			continue
		}
		fitsTheScreen(t, full, out)
		joined := strings.Join(strings.Fields(out), " ")
		if !strings.HasPrefix(joined, full+" stays pending: ") || !strings.Contains(joined, " fix: ") && !strings.Contains(joined, " 1. ") {
			t.Errorf("%s: no verdict first, or nothing that helps:\n%s", full, out)
		}
		name := strings.TrimPrefix(full, "default/")
		if want := asked[name]; want != "" && !regexp.MustCompile(want).MatchString(joined) {
			t.Errorf("%s: nothing matches %q in:\n%s", full, want, out)
		}
		delete(asked, name)
	}
	for name := range asked {
		t.Errorf("no pod %s was explained", name)
	}
}

// TestRemediesOfPodsOnWhichTheControllerHasDecided: of a live cluster, the words are the
// controller's, and what helps is found for its pods, too; a Job is made again, since its template
// cannot be changed.
func TestRemediesOfPodsOnWhichTheControllerHasDecided(t *testing.T) {
	c := newFakeCluster(t, "{key: karpenter.azure.com/sku-family, operator: In, values: [D]}",
		"{key: karpenter.azure.com/sku-name, operator: In, values: [Standard_D4s_v5]}", "limits: {nodes: 4}", "limits: {nodes: 0}")
	t.Setenv("KUBECONFIG", c.kubeconfig)
	out, errs, code := c.run(t, false, "explain", "pod", "q-1", "--budget", "0")
	fitsTheScreen(t, "q-1", out)
	for _, want := range []string{
		`^default/q-1 stays pending: quota standardDSv5Family has 98 of 100 vCPUs\. fix: Ask for more quota`,
		` 1\. see which quota is short, and ask for more az vm list-usage --location eastus`,
	} {
		if joined := strings.Join(strings.Fields(out), " "); code != 2 || !regexp.MustCompile(want).MatchString(joined) {
			t.Errorf("exit code %d, nothing matches %q in:\n%s%s", code, want, errs, out)
		}
	}

	job := poolWith("weight: 1", "requirements: []\n      taints: [{key: team, value: a, effect: NoSchedule}]") +
		"---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: sweep}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}\n"
	path := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(path, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code = nap.Run(t, "explain", "job/sweep", "-f", path, "--budget", "0", "-o", "json")
	var answer struct{ Commands []string }
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 2 || len(answer.Commands) == 0 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	readsAsCommand(t, answer.Commands[0])
	if !strings.HasPrefix(answer.Commands[0], "kubectl get job sweep -n default -o json | kubectl patch --local -f - --type merge -p '") ||
		!strings.Contains(answer.Commands[0], `"selector":null`) || !strings.HasSuffix(answer.Commands[0], "| kubectl replace --force -f -") {
		t.Errorf("the Job is not made again by %s", answer.Commands[0])
	}
}
