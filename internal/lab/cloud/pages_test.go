package cloud_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/pages"
)

// shown is what a command of a page needs before it, and what it answers.
type shown struct {
	// before is a line that makes what the page takes to be there.
	before string
	// want is a regular expression that the answer matches; refused says that the command
	// is meant to fail.
	want    string
	refused bool
	// turn is 0, or a later one for what takes away what others need.
	turn int
}

// await waits until a line succeeds.
func await(line string) string {
	return "n=0; until " + line + "; do n=$((n+1)); [ $n -lt 180 ] || exit 1; sleep 1; done"
}

// ofCluster is every command of the pages that is typed against a cluster in which nap runs
// and has bought a machine, by its text. NAME is that machine's.
func ofCluster() map[string]shown {
	const doctor = "nap doctor --resource-group $ARM_RESOURCE_GROUP --name $CLUSTER_NAME"
	return map[string]shown{
		"kubectl get aksnodeclasses":                 {want: `(?m)^default +True`},
		"kubectl describe aksnodeclass default":      {want: `Image Family: +Ubuntu`},
		"kubectl apply -f nodepools.yaml":            {before: "nap convert --from-agent-pools -f agent-pools.json > nodepools.yaml", want: `nodepool.karpenter.sh/apps created`},
		"nap status":                                 {before: await("nap status | grep -q NODEPOOL"), want: `NODEPOOL`},
		"nap ledger --since 7d":                      {before: await("nap ledger --since 7d | grep -q '1 machine'"), want: `1 machine`},
		"nap ledger purchases":                       {want: `default-`},
		"nap ledger moves -o csv":                    {want: `^MOVE,REASON,`},
		"nap plan --context prod --consolidate":      {want: `keep 1 node for`},
		"nap explain node NAME --context prod":       {want: `NAME`},
		`nap freeze --for 2h --reason "release 4.2"`: {want: `Frozen until .*default`},
		"nap thaw": {want: `Thawed: .*default`},
		"kubectl label namespace default nap.azure.com/resource-requests=Warn":                       {want: `namespace/default labeled`},
		"kubectl delete ledgerpages --all":                                                           {want: `ledgerpage.nap.azure.com "nap" deleted`},
		`kubectl get nodeclaim NAME -o jsonpath='{.status.conditions[?(@.type=="Booted")].message}'`: {want: `^$`}, // it has booted
		"nap status --context nap-lab":                                                               {want: `NODEPOOL`},
		"nap get claims --context nap-lab":                                                           {want: `NAME`},
		"kubectl get events --all-namespaces --field-selector source=karpenter":                      {want: `NodeClaim|nodeclaim`},
		"kubectl --namespace nap-system logs deployment/nap":                                         {want: `msg=starting`},
		doctor: {want: `: \d+ checks`},
		"kubectl annotate nodepool general karpenter.azure.com/max-hourly-cost=12.50": {
			before: "kubectl apply -f docs/examples/nodepool.yaml", want: `nodepool.karpenter.sh/general annotated`},
		"nap controller role --subscription $AZURE_SUBSCRIPTION_ID > role.json": {want: `^$`},
		"nap shadow --since 7d": {before: "nap-controller --shadow --context nap-lab --health-probe-bind-address 127.0.0.1:0 & " +
			await("kubectl get shadowreport nap") + "; kill $!", want: `(?m)^since 20`},
		"kubectl delete shadowreport nap":                                                              {want: `shadowreport.nap.azure.com "nap" deleted`},
		"kubectl get snapshot nap -o yaml":                                                             {want: `kind: Snapshot`},
		"kubectl get nodes --label-columns kubernetes.azure.com/node-image-version":                    {want: `NAME .*AKSUbuntu`},
		"nap images --resource-group $ARM_RESOURCE_GROUP --name $CLUSTER_NAME":                         {want: `(?m)^20\d{4}\.\d\d\.\d .*newest`},
		`kubectl patch aksnodeclass default --type merge -p '{"spec":{"imageVersion":"202606.09.0"}}'`: {want: `default patched`},
		`kubectl patch aksnodeclass default --type merge -p '{"spec":{"imageVersion":null}}'`:          {want: `default patched`},
		"kubectl get napmode":              {want: `(?m)^default +Auto`},
		"kubectl describe napmode default": {want: `Type: +Prerequisites`},
		"nap disable --dry-run":            {want: `(?s)would write to NodePool default: .*would write to NodeAutoProvisioning default: .*Manual`},
		`kubectl patch napmode default --type merge --patch '{"spec":{"mode":"Manual"}}'`: {
			refused: true, want: `(?s)mode Manual would leave machines behind: .*default.*nap disable removes them step by step`},
		"kubectl get nodes --selector karpenter.sh/nodepool": {want: `aks-NAME`},
		`kubectl patch nodepool default --type merge --patch '{"spec":{"limits":{"cpu":"0"},"template":{"spec":` +
			`{"taints":[{"key":"karpenter.azure.com/disable","effect":"NoSchedule"}]}}}}'`: {
			turn: 1, want: `nodepool.karpenter.sh/default patched`},
		"nap disable --wait": {
			before: "kubectl delete deployment demand --ignore-not-found --cascade=foreground",
			turn:   2, want: `Step 5: the mode is Manual|The mode is Manual, and no node of nap is left`},
		"nap enable": {turn: 3, want: `(?s)The mode is Auto.*Opened again: .*default`},
		"kubectl delete nodepools,aksnodeclasses --all": {turn: 4, want: `aksnodeclass.karpenter.azure.com "default" deleted`},
		`kubectl get aksnodeclasses --output name | xargs -I{} kubectl patch {} --type merge --patch '{"metadata":{"finalizers":null}}'`: {
			before: "kubectl apply -f docs/examples/nodepool.yaml; " + await("kubectl get aksnodeclasses -o yaml | grep -q /termination"),
			turn:   5, want: `aksnodeclass.karpenter.azure.com/\w+ patched`},
		`kubectl get customresourcedefinitions --output name | grep -E '\.(karpenter\.sh|karpenter\.azure\.com|nap\.azure\.com)$' | xargs kubectl delete`: {
			before: "kubectl delete nodepools,aksnodeclasses --all", turn: 6, want: `"nodepools.karpenter.sh" deleted`},
	}
}

// TestPagesCommandsRunOnACluster runs the commands of the pages that are typed against a
// cluster, those of kubectl by kubectl itself.
func TestPagesCommandsRunOnACluster(t *testing.T) {
	t.Parallel()
	s := newShell(t, "ARM_RESOURCE_GROUP=nap", "CLUSTER_NAME=nap")
	cfg, err := cloud.Complete(lab.Config{Dir: filepath.Join(s.dir, lab.DefaultDir), Executable: controllerProgram(t)},
		cloud.Options{ProvisionMode: config.ModeVMs, DefaultNodePools: "Auto"}, "nap")
	if err != nil {
		t.Fatal(err)
	}
	labtest.Start(t, cfg)
	name := s.buyMachine()
	known, commands := ofCluster(), pages.Of(t, root)
	slices.SortStableFunc(commands, func(a, b pages.Command) int { return cmp.Compare(known[a.Text].turn, known[b.Text].turn) })
	for _, c := range commands {
		want, has := known[c.Text]
		if !has {
			t.Errorf("%s: add what it needs and answers to ofCluster", &c)
			continue
		}
		s.show(&c, &want, name)
	}
}

// TestDocumentedManifestsApply: a cluster without nap takes what nap prints for one of your
// own, and the user has the rights then.
func TestDocumentedManifestsApply(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	labtest.Start(t, lab.Config{Dir: filepath.Join(s.dir, lab.DefaultDir)})
	const right = "kubectl auth can-i create nodeclaims.karpenter.sh --as nap"
	if out, err := s.run(right); err == nil {
		t.Errorf("before: %s", out)
	}
	for _, c := range pages.Of(t, root) {
		if out, err := s.run(c.Text); err != nil || !strings.Contains(out, "clusterrole.rbac.authorization.k8s.io/nap-controller serverside-applied") {
			t.Errorf("%s: %v\n%s", &c, err, out)
		}
	}
	if out, err := s.run(right); err != nil {
		t.Errorf("%s: %v\n%s", right, err, out)
	}
}

// buyMachine has nap buy a machine for a pod, and returns its name. It also makes what the
// pages take to be at hand: files of the repository, a context of kubectl, an agent pool.
func (s *shell) buyMachine() string {
	s.t.Helper()
	here, err := filepath.Abs(root)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, text := range map[string]string{"demand.yaml": strings.Replace(demand, "containers:",
		"nodeSelector: {karpenter.sh/nodepool: default}\n      containers:", 1), "agent-pools.json": agentPools} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, line := range []string{
		"ln -s " + here + "/docs docs",
		"kubectl config set-context prod --cluster $(kubectl config view -o jsonpath='{.contexts[0].context.cluster}') " +
			"--user $(kubectl config view -o jsonpath='{.contexts[0].context.user}')",
		await("kubectl get nodepool default"),
		"kubectl apply -f demand.yaml",
		"kubectl rollout status deployment/demand --timeout 180s",
	} {
		if out, err := s.run(line); err != nil {
			s.t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	out, err := s.run("kubectl get nodeclaims -o name")
	name, is := strings.CutPrefix(strings.TrimSpace(out), "nodeclaim.karpenter.sh/")
	if err != nil || !is || strings.Contains(name, "\n") {
		s.t.Fatalf("NodeClaims %q: %v", out, err)
	}
	return name
}

// show runs a command of a page, signed in as the owner of the subscription.
func (s *shell) show(c *pages.Command, want *shown, name string) {
	s.t.Helper()
	if out, err := s.run(want.before); err != nil {
		s.t.Errorf("%s: before it, %s: %v\n%s", c, want.before, err, out)
		return
	}
	named := regexp.MustCompile(`\bNAME\b`) // and not what is a part of a variable
	out, err := s.run("set -a; . " + lab.DefaultDir + "/" + cloud.AdminFile + "; set +a; " + named.ReplaceAllString(c.Text, name))
	s.t.Logf("%s\n%s", c.Text, out)
	answers := regexp.MustCompile(named.ReplaceAllString(want.want, regexp.QuoteMeta(name))).MatchString(out)
	if (err != nil) != want.refused || !answers {
		s.t.Errorf("%s: %v, want an answer that matches %s\n%s", c, err, want.want, out)
	}
}

// agentPools is a cluster as az aks show prints it.
const agentPools = `{"location": "eastus", "agentPoolProfiles": [
	{"name": "apps", "mode": "User", "vmSize": "Standard_D8s_v5", "osType": "Linux", "count": 3, "enableAutoScaling": true, "minCount": 1, "maxCount": 10}]}`

// demand is what kubectl create deployment makes, with requests.
const demand = `apiVersion: apps/v1
kind: Deployment
metadata: {name: demand, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: demand}}
  template:
    metadata: {labels: {app: demand}}
    spec:
      containers:
        - name: pause
          image: mcr.microsoft.com/oss/kubernetes/pause:3.9
          resources: {requests: {cpu: "1", memory: 1Gi}}
`
