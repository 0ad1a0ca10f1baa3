package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// manner is how a command behaves towards those who know kubectl.
type manner struct {
	// args make it answer of the cluster of the tests.
	args string
	// no says why it asks no cluster; then nothing else is looked at.
	no string
	// chosen asks a cluster only where flags choose one.
	chosen bool
	// forms are those of -o beside json, yaml and jsonpath; none has none of them.
	none  bool
	forms []string
	// dry says that only its dry run takes -o.
	dry bool
	// headers says that it has --no-headers and lists rows.
	headers bool
	// scoped are the flags of kubectl that choose among what is shown.
	scoped []string
	// prose says that it answers in sentences and commands, which no screen need hold.
	prose bool
	// writes says that it changes the cluster, and that --dry-run does not.
	writes bool
}

// manners has every command that does something. A new one is added with what it does.
func manners() map[string]manner {
	rows := []string{"wide", "csv", "name"}
	files := "works on files, and for a machine of an AKS cluster"
	return map[string]manner{
		"status":           {args: "status", scoped: []string{"-n shop", "-A"}},
		"get":              {args: "get nodes", forms: rows, headers: true, scoped: []string{"-n shop", "-A", "-l karpenter.sh/nodepool=general"}},
		"plan":             {args: "plan --budget 0", forms: []string{"wide"}, headers: true, scoped: []string{"-n default", "-A", "-l app=q"}},
		"savings":          {args: "savings --budget 0", forms: []string{"csv", "html"}},
		"ledger":           {args: "ledger", forms: append(rows, "html"), headers: true},
		"shadow":           {args: "shadow", forms: []string{"csv"}, headers: true},
		"catalog":          {args: "catalog", chosen: true, forms: rows, headers: true, scoped: []string{"-l kubernetes.io/arch=arm64"}},
		"explain":          {args: "explain q --budget 0", scoped: []string{"-n default"}},
		"explain workload": {args: "explain workload q --budget 0", scoped: []string{"-n default"}},
		"explain pod":      {args: "explain pod q-1 --budget 0", scoped: []string{"-n default"}},
		"explain node":     {args: "explain node aks-general-x1 --budget 0"},
		"explain offer":    {args: "explain offer Standard_D4s_v5 --budget 0"},
		"explain nodepool": {args: "explain nodepool general --budget 0"},
		"explain reason":   {no: "says what a code means"},
		"what-if":          {args: "what-if --no-spot --budget 0"},
		"diff":             {args: "diff -f POOL --budget 0"},
		"freeze":           {args: "freeze general", none: true, writes: true},
		"thaw":             {args: "thaw", none: true},
		"protect":          {args: "protect aks-general-x1", none: true, writes: true},
		"retire":           {args: "retire aks-general-x1", none: true, writes: true},
		"retry":            {args: "retry --all", none: true, writes: true},
		"disable":          {args: "disable", dry: true, prose: true, writes: true},
		"enable":           {args: "enable", dry: true},
		"lint":             {args: "lint"},
		"doctor":           {no: "asks Azure as well: TestDoctorReachesTheClusterAsKubectlDoes"},
		"images":           {no: "asks Azure"},
		"machine bootdata": {no: files},
		"convert":          {no: "rewrites files"},
		"prices fetch":     {no: "asks the public price list"},
		"prices import":    {no: "asks Azure and the public price list, or reads files"},
		"version":          {no: "is about the program"},
		"lab":              {no: "is another program"},
		"controller":       {no: "is another program"},
	}
}

// commandsOf are the commands of a tree that do something.
func commandsOf(root *cobra.Command) []string {
	var out []string
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if name := strings.TrimPrefix(cmd.CommandPath(), "nap "); name != "nap" && (cmd.Name() == "explain" || !cmd.HasSubCommands()) {
			out = append(out, name)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	return out
}

// fakeCluster is an API server with what a live cluster has, and the kubeconfig for it with a
// second context of the name "other".
type fakeCluster struct {
	*clitest.APIServer
	kubeconfig, pool string
}

// newFakeCluster makes one; edits are texts of its objects, each with what stands in its place.
func newFakeCluster(t *testing.T, edits ...string) *fakeCluster {
	t.Helper()
	dir := t.TempDir()
	c := &fakeCluster{pool: filepath.Join(dir, "pool.yaml")}
	cluster := []byte(strings.NewReplacer(edits...).Replace(string(fileOf(t, "01-status", "cluster.yaml")) + modeObject))
	c.APIServer, c.kubeconfig = clitest.NewAPIServer(t, dir, cluster)
	for _, err := range []error{
		addSnapshot(t.Context(), c.APIServer, fileOf(t, "01-status", "told.yaml")),
		addLedger(c.APIServer, fileOf(t, "ledger", "book.yaml")),
		addShadow(c.APIServer, fileOf(t, "shadow", "record.yaml")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(`"contexts":[`), []byte(`"contexts":[{"name":"other","context":{"cluster":"c","user":"u"}},`), 1)
	edited, _, _ := strings.Cut(string(cluster), "status:")
	for path, content := range map[string]string{c.kubeconfig: string(text), c.pool: strings.Replace(edited, "cpu: 200", "cpu: 100", 1)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// fileOf is a file of a script of testdata/live.
func fileOf(t *testing.T, script, name string) []byte {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "live", script+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if f.Name == name {
			return slices.Clone(f.Data)
		}
	}
	t.Fatalf("%s has no %s", script, name)
	return nil
}

const modeObject = `---
apiVersion: nap.azure.com/v1alpha1
kind: NodeAutoProvisioning
metadata: {name: default}
spec: {mode: Auto}
---
apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: default}
spec: {}
`

// run runs nap at noon, as the plugin of kubectl where that is asked for.
func (c *fakeCluster) run(t *testing.T, plugin bool, args ...string) (out, errs string, code int) {
	t.Helper()
	main := clitest.Main(func(ctx context.Context, args []string, s command.Streams) int {
		if plugin {
			s = asPlugin(s)
		}
		root := newRoot("test", s, func() time.Time { return noon })
		if plugin {
			pluginOf(root, &s)
		}
		return command.Run(ctx, root, args, s)
	})
	args = slices.Clone(args)
	for i := range args {
		if args[i] == "POOL" {
			args[i] = c.pool
		}
	}
	return main.Run(t, args...)
}

// TestEveryCommandHasTheMannersOfKubectl: each command that asks a cluster finds it as kubectl
// does, writes the forms that kubectl's users expect, and fits the screen.
func TestEveryCommandHasTheMannersOfKubectl(t *testing.T) {
	known := manners()
	all := commandsOf(newRoot("test", command.Streams{}, time.Now))
	for _, name := range all {
		m, is := known[name]
		if !is {
			t.Errorf("nap %s is in no row: say what kubectl's users may expect of it", name)
		}
		if m.no != "" || !is {
			continue
		}
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(m.args)
			t.Run("cluster", func(t *testing.T) { findsCluster(t, args, m.chosen) })
			t.Run("identity", func(t *testing.T) { impersonates(t, args) })
			t.Run("output", func(t *testing.T) { writesForms(t, args, m) })
			t.Run("plugin", func(t *testing.T) { isSameAsPlugin(t, args) })
			if m.writes {
				t.Run("dry run", func(t *testing.T) { writesNothingDry(t, args) })
			}
		})
	}
	for name := range known {
		if !slices.Contains(all, name) {
			t.Errorf("there is no command nap %s any more", name)
		}
	}
}

// findsCluster: KUBECONFIG, --kubeconfig and --context are heeded, and a wrong context is refused
// with those that there are.
func findsCluster(t *testing.T, args []string, chosen bool) {
	c := newFakeCluster(t)
	asked := func(how string, args ...string) {
		t.Helper()
		before := len(c.Users())
		out, errs, code := c.run(t, false, args...)
		if code == 1 || len(c.Users()) == before {
			t.Errorf("%s: exit code %d, %d requests\n%s%s", how, code, len(c.Users())-before, errs, out)
		}
	}
	t.Setenv("KUBECONFIG", c.kubeconfig)
	if !chosen {
		asked("KUBECONFIG", args...)
	}
	asked("--context", append(args, "--context", "other")...)
	if _, errs, code := c.run(t, false, append(args, "--context", "prod")...); code != 1 ||
		!strings.Contains(errs, `nap: --context: got "prod", the kubeconfig has: other, test`) {
		t.Errorf("unknown context: exit code %d, %s", code, errs)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	asked("--kubeconfig", append(args, "--kubeconfig", c.kubeconfig)...)
}

// impersonates: --as and --as-group reach the API server with every request.
func impersonates(t *testing.T, args []string) {
	c := newFakeCluster(t)
	out, errs, code := c.run(t, false, append(args, "--kubeconfig", c.kubeconfig, "--as", "jane", "--as-group", "devs")...)
	if code == 1 {
		t.Fatalf("exit code 1:\n%s%s", errs, out)
	}
	for _, user := range c.Users() {
		if user != "jane devs" {
			t.Errorf("a request came from %q", user)
		}
	}
}

// writesForms: tables fit the screen, documents can be read, wrong forms are refused with those
// that there are.
func writesForms(t *testing.T, args []string, m manner) {
	c := newFakeCluster(t)
	run := func(more ...string) string {
		t.Helper()
		out, errs, code := c.run(t, false, slices.Concat(args, []string{"--kubeconfig", c.kubeconfig}, more)...)
		if code == 1 || out == "" {
			t.Errorf("%s: exit code %d\n%s%s", strings.Join(more, " "), code, errs, out)
		}
		if strings.Contains(out+errs, "NodePool default") {
			t.Errorf("%s: a NodePool is named that the cluster does not have:\n%s", strings.Join(more, " "), out+errs)
		}
		return out
	}
	table := run()
	if !m.prose {
		narrow(t, table)
	}
	for _, flags := range m.scoped {
		narrow(t, run(strings.Fields(flags)...))
	}
	if m.headers {
		if bare := run("--no-headers"); strings.Count(bare, "\n") >= strings.Count(table, "\n") {
			t.Errorf("--no-headers leaves no line out:\n%s", bare)
		}
	}
	if m.none {
		return
	}
	if m.dry {
		if _, errs, code := c.run(t, false, append(args, "--kubeconfig", c.kubeconfig, "-o", "json")...); code != 1 ||
			!strings.Contains(errs, `nap: --output: got "json", which goes with --dry-run`) {
			t.Errorf("-o json: exit code %d, %s", code, errs)
		}
		args = append(slices.Clone(args), "--dry-run")
	}
	var value any
	if err := json.Unmarshal([]byte(run("-o", "json")), &value); err != nil {
		t.Errorf("-o json: %v", err)
	}
	if err := yaml.Unmarshal([]byte(run("-o", "yaml")), &value); err != nil {
		t.Errorf("-o yaml: %v", err)
	}
	document, _ := value.(map[string]any)
	for key, part := range document {
		if text, is := part.(string); is {
			if got := run("-o", "jsonpath={."+key+"}"); got != text+"\n" {
				t.Errorf("-o jsonpath={.%s}: got %q, want %q", key, got, text)
			}
			break
		}
	}
	for _, form := range m.forms {
		run("-o", form)
	}
	_, errs, code := c.run(t, false, append(args, "--kubeconfig", c.kubeconfig, "-o", "xml")...)
	if code != 1 || !strings.HasPrefix(errs, `nap: --output: got "xml", allowed: `) || !strings.HasSuffix(errs, ", jsonpath=TEMPLATE\n") {
		t.Errorf("-o xml: exit code %d, %s", code, errs)
	}
	words, _, _ := c.run(t, false, append(append([]string{"__complete"}, args...), "-o", "")...)
	for _, form := range append([]string{"json", "yaml", "jsonpath="}, m.forms...) {
		if !slices.Contains(strings.Split(words, "\n"), form) || !strings.Contains(errs, form) {
			t.Errorf("-o %s is not completed, or not named in %s", form, errs)
		}
	}
}

// narrow wants no line over the width of the screen.
func narrow(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > screenColumns {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
}

// isSameAsPlugin: kubectl nap answers what nap does, but for the name by which it is to be called.
func isSameAsPlugin(t *testing.T, args []string) {
	c := newFakeCluster(t)
	args = append(args, "--kubeconfig", c.kubeconfig)
	out, errs, code := c.run(t, false, args...)
	c = newFakeCluster(t)
	args[len(args)-1] = c.kubeconfig
	again, talk, same := c.run(t, true, args...)
	for _, found := range regexp.MustCompile(`(?:kubectl )?\bnap ([a-z-]+)`).FindAllStringSubmatch(again+talk, -1) {
		if strings.HasPrefix(found[0], "nap ") && strings.Contains(offeredCommands, " "+found[1]+" ") {
			t.Errorf("kubectl nap offers %q:\n%s%s", found[0], talk, again)
		}
	}
	plain := func(text string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(text, "kubectl nap ", "nap ")), " ")
	}
	if code != same || plain(out) != plain(again) || plain(errs) != plain(talk) {
		t.Errorf("nap: exit code %d\n%s%s\nkubectl nap: exit code %d\n%s%s", code, errs, out, same, talk, again)
	}
}

// writesNothingDry: --dry-run, also in kubectl's words, writes nothing.
func writesNothingDry(t *testing.T, args []string) {
	for _, flag := range []string{"--dry-run", "--dry-run=client", "--dry-run=server"} {
		c := newFakeCluster(t)
		out, errs, code := c.run(t, false, append(args, "--kubeconfig", c.kubeconfig, flag)...)
		if code == 1 || len(c.Patches()) > 0 || !strings.Contains(out, "would ") {
			t.Errorf("%s: exit code %d, written %q\n%s%s", flag, code, c.Patches(), errs, out)
		}
	}
	c := newFakeCluster(t)
	if _, errs, code := c.run(t, false, append(args, "--kubeconfig", c.kubeconfig, "--dry-run=all")...); code != 1 || !strings.Contains(errs, "allowed: client, server, none") {
		t.Errorf("--dry-run=all: exit code %d, %s", code, errs)
	}
}

// commandsWith are the commands that do something and have a flag.
func commandsWith(root *cobra.Command, flag string) []string {
	return slices.DeleteFunc(commandsOf(root), func(name string) bool {
		cmd, _, err := root.Find(strings.Fields(name))
		return err != nil || cmd.Flags().Lookup(flag) == nil
	})
}

// TestShellsCompleteWhatThereIs: commands, contexts, NodePools, nodes, kinds and reasons.
func TestShellsCompleteWhatThereIs(t *testing.T) {
	c := newFakeCluster(t)
	t.Setenv("KUBECONFIG", c.kubeconfig)
	for line, want := range map[string][]string{
		"":                        {"status", "plan", "completion"},
		"plan --context ":         {"other", "test"},
		"freeze ":                 {"general", "gpu"},
		"thaw general ":           {"gpu"},
		"protect ":                {"aks-general-x1", "aks-system-1"},
		"retire ":                 {"aks-general-x1"},
		"get ":                    {"nodes", "pools", "claims", "moves", "offers"},
		"ledger ":                 {"purchases", "moves"},
		"explain reason ":         {"QuotaExceeded"},
		"version -o ":             {"text", "json", "yaml"},
		"ledger --by ":            {"namespace"},
		"freeze x --dry-run ":     {},
		"protect aks-general-x1 ": {},
	} {
		for _, plugin := range []bool{false, true} {
			words := strings.Fields(line)
			if strings.HasSuffix(line, " ") || line == "" {
				words = append(words, "")
			}
			out, _, code := c.run(t, plugin, append([]string{"__complete"}, words...)...)
			var got []string
			for completed := range strings.Lines(out) {
				word, _, _ := strings.Cut(strings.TrimSuffix(completed, "\n"), "\t")
				got = append(got, word)
			}
			for _, word := range want {
				if code != 0 || !slices.Contains(got, word) {
					t.Errorf("%q is completed by %q, exit code %d; want %s", line, got, code, word)
				}
			}
		}
	}
	for line, want := range map[string]string{ // flags with few values, in each command that has them
		"region": "eastus", "output": "json", "engine": "karpenter", "sort": "price", "preference-policy": "Ignore",
		"min-values-policy": "BestEffort", "image-family": "AzureLinux", "dry-run": "server",
	} {
		for _, name := range commandsWith(newRoot("test", command.Streams{}, time.Now), line) {
			if name == "prices import" && line == "output" { // names a file
				continue
			}
			words := append([]string{"__complete"}, strings.Fields(name)...)
			if out, _, code := c.run(t, false, append(words, "--"+line+"=")...); code != 0 || !strings.Contains("\n"+out, "\n"+want) {
				t.Errorf("%s --%s= is completed by %q, exit code %d; want %s", name, line, out, code, want)
			}
		}
	}
	help, _, _ := c.run(t, true, "--help")
	if !strings.Contains(help, "\n  completion ") {
		t.Error("the help of kubectl nap does not show completion")
	}
}
