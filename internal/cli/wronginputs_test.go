package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/cli/clitest"
)

// wrongInput is a mistake of a user: what is in the file in.yaml, and the command line.
type wrongInput struct {
	name, file string
	args       []string
}

func planned(name, file string) wrongInput {
	return wrongInput{name: name, file: file, args: []string{"plan", "-f", "in.yaml", "--budget", "0"}}
}

func typed(name string, args ...string) wrongInput { return wrongInput{name: name, args: args} }

// poolWith is a NodePool with something added to its spec and to the spec of its template.
func poolWith(spec, template string) string {
	return "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  " + spec +
		"\n  template:\n    spec:\n      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}\n      " + template + "\n"
}

func podWith(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: " + spec + "\n"
}

func budgetWith(spec string) string {
	return "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: " + spec + "\n"
}

func wrongInputs(gz, denied string) []wrongInput {
	const one = "{containers: [{name: c, resources: {requests: {cpu: 1}}}]}"
	return []wrongInput{
		typed("file that is not there", "plan", "-f", "nowhere.yaml"),
		typed("file without -f", "plan", "app.yaml"),
		planned("YAML that is none", "a: [b\nc: d"),
		planned("quantity that is none", podWith("{containers: [{name: c, resources: {requests: {cpu: lots}}}]}")),
		planned("request below zero", podWith("{containers: [{name: c, resources: {requests: {cpu: -1}}}]}")),
		planned("empty file", ""),
		planned("nothing but comments", "# nothing\n# here\n"),
		planned("template", "kind: {{ .Values.kind }}\n"),
		planned("object without apiVersion", "kind: Pod\nmetadata: {name: p}\n"),
		planned("too many replicas", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 2000000, "+
			"selector: {matchLabels: {a: b}}, "+
			"template: {metadata: {labels: {a: b}}, spec: "+one+"}}\n"),
		planned("value followed by what is none", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}} and so on`),
		planned("replicas that are there twice", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  replicas: 2\n  "+
			"selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: "+one+"}\n  replicas: 20\n"),
		planned("kind that is no text", "apiVersion: v1\nkind: y\nmetadata: {name: p}\n"),
		planned("Deployment without a selector", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: "+one+"}}\n"),
		planned("freeze until what is no time", strings.Replace(poolWith("weight: 1", "requirements: []"), "{name: general}",
			"{name: general, annotations: {karpenter.azure.com/frozen-until: tomorrow}}", 1)),
		planned("bytes that are no text", "\x00\x01\x02\x03ELF\x00"),
		planned("compressed file", gz),
		planned("kind with a typing error", strings.Replace(poolWith("weight: 1", "requirements: []"), "NodePool", "Nodepool", 1)),
		planned("pods beside a kind with a typing error",
			strings.Replace(poolWith("weight: 1", "requirements: []"), "NodePool", "Nodepool", 1)+"---\n"+podWith(one)),
		planned("buffer of fewer pods than none", "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: b}\n"+
			"spec: {replicas: -1, podTemplateRef: {name: t}, replica: 2}\n"),
		planned("mode that is none", "apiVersion: nap.azure.com/v1alpha1\nkind: NodeAutoProvisioning\nmetadata: {name: default}\nspec: {mode: Sometimes}\n"),
		planned("kind with letters swapped", "apiVersion: apps/v1\nkind: Deploymnet\nmetadata: {name: d}\nspec: {replicas: 1}\n"),
		planned("API group that no cluster has", "apiVersion: app/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"),
		planned("class with a typing error in its kind", "apiVersion: karpenter.azure.com/v1beta1\nkind: AKSNodeclass\nmetadata: {name: d}\nspec: {}\n"),
		planned("reference to a kind of classes that is none", strings.Replace(poolWith("weight: 1", "requirements: []"), "AKSNodeClass", "AKSNodeClas", 1)),
		planned("API version of old", "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"),
		planned("NodePool of v1beta1", strings.Replace(poolWith("weight: 1", "requirements: []"), "karpenter.sh/v1", "karpenter.sh/v1beta1", 1)),
		planned("policy of v1beta1", poolWith("disruption: {consolidationPolicy: WhenUnderutilized}", "requirements: []")),
		planned("label of EKS", poolWith("weight: 1", "requirements: [{key: karpenter.k8s.aws/instance-category, operator: In, values: [c]}]")),
		planned("operator that is none", poolWith("weight: 1", "requirements: [{key: kubernetes.io/arch, operator: Is, values: [amd64]}]")),
		planned("capacity type in capitals", poolWith("weight: 1", "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [Spot]}]")),
		planned("architecture that is none", poolWith("weight: 1", "requirements: [{key: kubernetes.io/arch, operator: In, values: [x86]}]")),
		planned("weight out of range", poolWith("weight: 200", "requirements: []")),
		planned("limit below zero", poolWith("limits: {cpu: -1}", "requirements: []")),
		planned("effect of a taint that is none", poolWith("weight: 1", "requirements: []\n      taints: [{key: a, effect: NoRun}]")),
		planned("limit that is no quantity", poolWith("limits: {cpu: abc, memory: 1Gi}", "requirements: []")),
		planned("half a node", poolWith("limits: {nodes: 1.5}", "requirements: []")),
		planned("expiry that is no duration", poolWith("weight: 1", "requirements: []\n      expireAfter: 5x")),
		planned("expiry beyond all time", poolWith("weight: 1", "requirements: []\n      expireAfter: 99999999h")),
		planned("expiry that is a number", poolWith("weight: 1", "requirements: []\n      expireAfter: 5")),
		planned("wait that is no duration", poolWith("disruption: {consolidateAfter: soon}", "requirements: []")),
		planned("budgets that are none", poolWith("disruption: {budgets: [{nodes: some, schedule: at nine, duration: 30s}, "+
			"{nodes: 1, duration: 8h}, {nodes: '5', reasons: [Bored]}, {nodes: '5', reasons: [Empty, Empty]}]}", "requirements: []")),
		planned("weight of nothing", poolWith("weight: 0", "requirements: []")),
		planned("requirements that are none", poolWith("weight: 1", "requirements: [{key: kubernetes.io/arch, operator: Is}, "+
			"{key: kubernetes.io/os, operator: In, values: [linux], minValues: 0}, {key: 'a b', operator: Exists}]")),
		planned("values that their operators do not take", poolWith("weight: 1", "requirements: [{key: kubernetes.io/arch, operator: In, values: []}, "+
			"{key: karpenter.azure.com/sku-cpu, operator: Gt, values: [many]}]")),
		planned("taints that are none", poolWith("weight: 1", "requirements: []\n      taints: [{key: a b, effect: NoRun}, {effect: NoSchedule}]")),
		planned("everything at once", poolWith("weight: 101\n  weigth: 1\n  limits: {cpu: abc, nodes: 1.5}\n  disruption: {consolidateAfter: soon}",
			"requirements: [{key: kubernetes.io/arch, operator: Is}]\n      expireAfter: 5x")),
		planned("faults of which nap and the API server tell one each", poolWith("replicas: 1\n  weight: 1\n  limits: {nodes: -1}", "requirements: []")),
		planned("name that is none", strings.Replace(poolWith("weight: 1", "requirements: []"), "general", "General_Pool", 1)),
		planned("class of a version that there is not", "apiVersion: karpenter.azure.com/v1\nkind: AKSNodeClass\nmetadata: {name: d}\nspec: {}\n"),
		planned("NodeClaim that cannot be", "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: c}\nspec: {requirements: [], "+
			"nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: d}, resources: {requests: {cpu: lots}}, expireAfter: soon}\n"),
		planned("overlay of a capacity that is none", "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\n"+
			"spec: {requirements: [], capacity: {example.com/fuse: many}}\n"),
		planned("budget of pods that says both", budgetWith("{minAvailable: 1, maxUnavailable: 1, selector: {}}")),
		planned("budget of pods with much wrong", budgetWith("{minAvailable: 150%, selector: {matchExpressions: [{key: a, operator: Is}]}, "+
			"unhealthyPodEvictionPolicy: Never, maxUnavailble: 1}")),
		planned("budget of pods of less than none", budgetWith("{maxUnavailable: -1, selector: {}}")),
		planned("budget of half a pod", budgetWith("{maxUnavailable: 1.5, selector: {}}")),
		planned("field that NodePools lack", poolWith("weigth: 1", "requirements: []")),
		planned("field that templates lack", poolWith("weight: 1", "requirements: []\n      taint: []")),
		planned("field that NodeOverlays lack", "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\n"+
			"spec: {requirements: [], prize: '1'}\n"),
		planned("overlay on a label of EKS", "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\n"+
			"spec: {requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}], price: '1'}\n"),
		planned("overlay of two prices", "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\n"+
			"spec: {requirements: [], price: '1', priceAdjustment: '-5%'}\n"),
		planned("priority out of range", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: top}\nvalue: 1500000000\n"),
		planned("policy of preemption that is none", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: top}\n"+
			"value: 1\npreemptionPolicy: Always\n"),
		planned("label of EKS in a pod", podWith("{nodeSelector: {eks.amazonaws.com/capacityType: SPOT}, containers: [{name: c}]}")),
		planned("label of nap with a typing error", podWith("{nodeSelector: {karpenter.azure.com/sku-famliy: D}, containers: [{name: c}]}")),
		planned("label in the wrong domain", podWith("{nodeSelector: {karpenter.azure.com/zone: eastus-1}, containers: [{name: c}]}")),
		planned("label that no machine has", podWith("{nodeSelector: {team: a}, containers: [{name: c}]}")),
		planned("two pods of one name", podWith(one)+"---\n"+podWith(one)),
		planned("class with too many pods", "apiVersion: karpenter.azure.com/v1beta1\nkind: AKSNodeClass\n"+
			"metadata: {name: default}\nspec: {maxPods: 1000}\n"),
		typed("address instead of a file", "plan", "-f", "https://example.com/app.yaml"),
		typed("folder without objects", "plan", "-f", "empty"),
		typed("folder for kustomize", "plan", "-f", "kustomized"),
		typed("unknown context", "plan", "--context", "nowhere"),
		typed("context beside those there are", "plan", "--kubeconfig", "dead.kubeconfig", "--context", "nowhere"),
		typed("kubeconfig that is not there", "plan", "--kubeconfig", "nowhere"),
		typed("cluster that does not answer", "plan", "--kubeconfig", "dead.kubeconfig"),
		typed("credentials that have ended", "plan", "--kubeconfig", denied),
		typed("unknown region", "plan", "-f", "good.yaml", "--region", "eastmars"),
		typed("unknown form", "plan", "-f", "good.yaml", "-o", "xml"),
		typed("unknown engine", "plan", "-f", "good.yaml", "--engine", "autoscaler"),
		typed("unknown flag", "plan", "--frob"),
		typed("unknown command", "frob"),
		typed("seed below zero", "plan", "-f", "good.yaml", "--seed", "-1"),
		typed("budget that is no duration", "plan", "-f", "good.yaml", "--budget", "soon"),
		typed("budget below zero", "plan", "-f", "good.yaml", "--budget", "-1s"),
		typed("price file that is none", "plan", "-f", "good.yaml", "--prices-file", "good.yaml"),
		typed("catalogue that is none", "plan", "-f", "good.yaml", "--catalog", "good.yaml"),
		typed("unknown size", "explain", "offer", "Standard_D4s_v99"),
		typed("no such pod", "explain", "pod", "oo", "-f", "good.yaml"),
		typed("nothing to plan for", "plan"),
		typed("agent pools as objects to convert", "convert", "-f", "pools.json"),
		typed("file to convert that is not there", "convert", "-f", "nowhere.yaml"),
		typed("folder to convert", "convert", "-f", "empty"),
		typed("shell that is not known", "completion", "tcsh"),
		typed("cluster of Azure without a name", "enable", "--resource-group", "rg"),
		typed("default NodePools that are none", "enable", "-g", "rg", "-n", "prod", "--default-node-pools", "Some"),
		typed("subnet that is none", "enable", "-g", "rg", "-n", "prod", "--subscription", someSubscription, "--subnet", "nodes"),
		typed("no kubeconfig to enable with", "enable", "-g", "rg", "-n", "prod", "--subscription", someSubscription, "--image", "r.example/nap:v1"),
		typed("no kubeconfig to disable with", "disable"),
		typed("nobody is signed in", "images", "-g", "rg", "-n", "prod", "--subscription", someSubscription),
		typed("subscription that is none", "prices", "import", "--region", "eastus", "--subscription", "foo"),
		typed("subscription of a cluster that is none", "images", "-g", "rg", "-n", "prod", "--subscription", "foo"),
		typed("catalogue that is not there", "plan", "-f", "good.yaml", "--catalog", "nowhere.json"),
		typed("prices that are not there", "plan", "-f", "good.yaml", "--prices-file", "nowhere.yaml"),
		typed("answer to replay that is not there", "plan", "-f", "good.yaml", "--replay", "nowhere.json"),
		typed("default spread that is not there", "plan", "-f", "good.yaml", "--scheduler-config", "nowhere.yaml"),
		typed("folder with a link to nothing", "plan", "-f", "linked", "--budget", "0"),
		typed("link to a folder with a link to nothing", "plan", "-f", "link", "--budget", "0"),
		typed("moment that is still to come", "ledger", "--since", "9000-01-01"),
		typed("kubeconfig with a tab", "status", "--kubeconfig", "tabs.kubeconfig"),
		typed("namespace without a pod", "plan", "-f", "good.yaml", "--budget", "0", "-n", "nope"),
		typed("price sheet that is not there", "prices", "import", "--region", "eastus", "--price-sheet", "nowhere.csv"),
	}
}

const someSubscription = "0b1f6471-0000-4000-8000-000000000002"

// TestWrongInputsNameWhatWhereAndNext: for each mistake, the exit code and what is said of it
// are in testdata/wronginputs.txt. Run with -rewrite to accept; read the diff.
func TestWrongInputsNameWhatWhereAndNext(t *testing.T) {
	denying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"Unauthorized","code":401}`)
	}))
	defer denying.Close()
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", "nowhere")
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
	t.Setenv("AZURE_TENANT_ID", "")
	writeFilesBeside(t, denying.URL)
	golden, err := os.ReadFile(home + "/testdata/wronginputs.txt")
	if err != nil {
		t.Fatal(err)
	}
	inputs := wrongInputs(zipped(t, "kind: Pod"), "denied.kubeconfig")
	var all strings.Builder
	for _, in := range inputs {
		t.Run(in.name, func(t *testing.T) {
			said := strings.NewReplacer(denying.URL, "SERVER", dir, "DIR").Replace(saidOf(t, in))
			all.WriteString(said)
			if !*rewrite && !strings.Contains("\n"+string(golden), "\n"+said) {
				t.Errorf("not in testdata/wronginputs.txt, see -rewrite:\n%s", said)
			}
		})
	}
	if len(inputs) < 40 {
		t.Errorf("only %d mistakes", len(inputs))
	}
	t.Chdir(home)
	clitest.Golden(t, "wronginputs", all.String())
}

// saidOf is the exit code for a mistake, what the command says is wrong, on standard error or
// of the pod, and what it notes beside it; the note of the prices says nothing of a mistake.
func saidOf(t *testing.T, in wrongInput) string {
	t.Helper()
	if err := os.WriteFile("in.yaml", []byte(in.file), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := nap.Run(t, slices.Clone(in.args)...)
	var lines []string
	priced := false
	for line := range strings.Lines(errs) {
		if strings.HasPrefix(line, "note: ") {
			priced = strings.HasPrefix(line, "note: prices of ")
		}
		if strings.HasPrefix(line, "nap: ") {
			priced = false
			known, _, listed := strings.Cut(line, "; there are: ") // what there is grows
			if listed {
				known += "; there are: ...\n"
			}
			lines = append(lines, known)
		} else if !priced {
			lines = append(lines, line)
		}
	}
	if code == 2 { // the reason is the pod's
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "    ") || in.args[0] == "explain" {
				lines = append(lines, line)
			}
		}
	}
	if code == 0 || len(lines) == 0 {
		t.Errorf("exit code %d, and nothing says what is wrong:\n%s%s", code, out, errs)
	}
	return fmt.Sprintf("%s: exit code %d\n%s", in.name, code, strings.Join(lines, ""))
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var gz bytes.Buffer
	zip := gzip.NewWriter(&gz)
	if _, err := zip.Write([]byte(text)); err != nil || zip.Close() != nil {
		t.Fatal(err)
	}
	return gz.String()
}

// writeFilesBeside writes what the command lines name: a good file, folders, and kubeconfigs
// of a server that is gone and of one that denies.
func writeFilesBeside(t *testing.T, denying string) {
	t.Helper()
	kubeconfig := func(server string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"test","clusters":[{"name":"c","cluster":{"server":%q}}],
"users":[{"name":"u","user":{}}],"contexts":[{"name":"test","context":{"cluster":"c","user":"u"}}]}`, server)
	}
	for name, text := range map[string]string{
		"good.yaml": podWith("{containers: [{name: c, resources: {requests: {cpu: 1}}}]}"), "dead.kubeconfig": kubeconfig("http://127.0.0.1:1"),
		"denied.kubeconfig": kubeconfig(denying), "kustomized/kustomization.yaml": "resources: [app.yaml]\n", "empty/README": "", "tabs.kubeconfig": "apiVersion: v1\nkind: Config\nclusters:\n\t- name: c\n",
		"linked/good.yaml": podWith("{containers: [{name: c, resources: {requests: {cpu: 1}}}]}"),
		"pools.json":       `[{"name": "system"}]`,
	} {
		if folder, _, nested := strings.Cut(name, "/"); nested {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"linked/broken.yaml": "nowhere.yaml", "link": "linked"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
}
