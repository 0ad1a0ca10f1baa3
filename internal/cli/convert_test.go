package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/model"
)

const inflate = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: inflate}
spec:
  replicas: 3
  selector: {matchLabels: {app: inflate}}
  template:
    metadata: {labels: {app: inflate}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: inflate, image: pause, resources: {requests: {cpu: "1"}}}]
`

// TestConvertWritesObjectsThatRun converts manifests as they were published, and plans
// pods on what comes out: the API server's schemas and rules take it, and machines are
// bought by it.
func TestConvertWritesObjectsThatRun(t *testing.T) {
	for _, name := range []string{"v1beta1-general-purpose", "v1-default", "v1alpha5-general-purpose", "v1alpha5-spot-priority",
		"v1alpha5-gpu-workloads", "preview-selectors", "preview-numbers", "provisioner", "provisioner-kubelet"} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := nap.Run(t, "convert", "-f", "testdata/convert/"+name+".yaml", "--region", "uksouth")
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			clitest.Golden(t, "convert/"+name, out+"=== said\n"+errs)
			path := filepath.Join(t.TempDir(), "today.yaml")
			if err := os.WriteFile(path, []byte(out+inflate), 0o600); err != nil {
				t.Fatal(err)
			}
			plan, errs, code := nap.Run(t, "plan", "-f", path, "--region", "uksouth")
			if code == 1 || !strings.Contains(plan, "Buy ") {
				t.Errorf("exit code %d: %s%s", code, plan, errs)
			}
			again, _, code := nap.Run(t, "convert", "-f", path)
			if code != 0 || !strings.HasPrefix(again, strings.TrimSuffix(out, "\n")) {
				t.Errorf("what is today's does not stay as it is: %s", again)
			}
		})
	}
}

func TestConvertTakesEveryValueOfAFile(t *testing.T) {
	pool := func(name string) string {
		return `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"` + name + `"},"spec":{"template":{"spec":{` +
			`"requirements":[],"nodeClassRef":{"group":"karpenter.azure.com","kind":"AKSNodeClass","name":"default"}}}}}`
	}
	// The items of a list may be lists, and those of v1beta1 are converted there, too.
	old := strings.ReplaceAll(pool("d"), `"karpenter.sh/v1"`, `"karpenter.sh/v1beta1"`)
	lists := `{"apiVersion":"v1","kind":"List","items":[` + pool("c") + `,{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePoolList","items":[` + old + `]}]}`
	path := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(path, []byte(pool("a")+"\n"+pool("b")+"\n"+lists), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := nap.Run(t, "convert", "-f", path)
	if code != 0 || strings.Count(out, "kind: NodePool\n") != 4 || !strings.Contains(out, "name: d\n") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func TestConvertAgentPools(t *testing.T) {
	for name, args := range map[string][]string{
		"agentpools":    nil,
		"nodepool-list": {"--region", "westeurope"},
	} {
		args = append([]string{"convert", "--from-agent-pools", "-f", "testdata/convert/" + name + ".json"}, args...)
		out, errs, code := nap.Run(t, args...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		clitest.Golden(t, "convert/"+name, out+"=== said\n"+errs)
	}
}

// A requirement on local space that the pool's own size does not meet would leave a NodePool that buys
// nothing.
func TestConvertEphemeralDiskBeyondSize(t *testing.T) {
	const label = "karpenter.azure.com/sku-storage-ephemeralos-maxsize"
	for size, c := range map[string]struct{ requirement, said string }{
		"Standard_NC24ads_A100_v4": {"", "for a disk of 128 GB, size Standard_NC24ads_A100_v4 has 0 GB of local space in the built-in table: " +
			"the requirement on " + label + " is left out; where the disk does not fit, it is a managed one and billed"},
		"Standard_D4ds_v5": {`values: - "106"`, "size Standard_D4ds_v5 has 107 GB of local space in the built-in table: " +
			"the requirement on " + label + " is lowered to Gt 106;"},
		"Standard_D8ds_v5": {`values: - "127"`, ""},
	} {
		out, errs, code := runWith(t, `[{"name": "a", "mode": "User", "osType": "Linux", "count": 1, "osDiskType": "Ephemeral", "osDiskSizeGB": 128, `+
			`"vmSize": "`+size+`"}]`, "--from-agent-pools", "--region", "westeurope")
		made, said := strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(errs), " ")
		if code != 0 || !strings.Contains(said, c.said) || strings.Contains(said, "osDiskType") != (c.said != "") ||
			!strings.Contains(made, c.requirement) || strings.Contains(made, label) != (c.requirement != "") {
			t.Errorf("%s: exit code %d, want requirement %q and %q in\n%s%s", size, code, c.requirement, c.said, out, errs)
		}
	}
}

// TestConvertLosesNoFieldOfAgentPools gives agent pools one field each that a NodePool or an
// AKSNodeClass has not: it is refused or told by name and value, and needs no word where it
// has the value of pools which do not state it.
func TestConvertLosesNoFieldOfAgentPools(t *testing.T) {
	const nothing = ""
	for field, tt := range map[string]struct {
		code int
		want string
	}{
		`"osSku": "Flatcar"`:                                                 {1, `agent pool a: osSku: got "Flatcar", which no AKSNodeClass has`},
		`"osSKU": "AzureContainerLinux"`:                                     {1, `agent pool a: osSku: got "AzureContainerLinux"`},
		`"osDiskSizeGb": 4096`:                                               {1, "osDiskSizeGb: got 4096, allowed in an AKSNodeClass: 30 to 2048"},
		`"osDiskSizeGB": 0`:                                                  {0, nothing},
		`"enableNodePublicIp": true`:                                         {1, "agent pool a: enableNodePublicIp: got true: an AKSNodeClass has no field for it; leave the pool"},
		`"enableNodePublicIP": false`:                                        {0, nothing},
		`"podSubnetId": "/s/p"`:                                              {1, "podSubnetId: got /s/p: nap buys nothing where pods have a subnet of their own"},
		`"capacityReservationGroupId": "/s/c"`:                               {1, "capacityReservationGroupId: got /s/c"},
		`"proximityPlacementGroupID": "/s/g"`:                                {1, "proximityPlacementGroupID: got /s/g"},
		`"hostGroupId": "/s/h"`:                                              {1, "hostGroupId: got /s/h"},
		`"workloadRuntime": "KataVmIsolation"`:                               {1, "workloadRuntime: got KataVmIsolation"},
		`"workloadRuntime": "OCIContainer"`:                                  {0, nothing},
		`"kubeletDiskType": "Temporary"`:                                     {1, "kubeletDiskType: got Temporary"},
		`"kubeletDiskType": "OS"`:                                            {0, nothing},
		`"networkProfile": {"allowedHostPorts": [{"portStart": 80}]}`:        {1, `networkProfile.allowedHostPorts: got [{"portStart":80}]`},
		`"kubeletConfig": {"seccompDefault": "RuntimeDefault"}`:              {1, "kubeletConfig.seccompDefault: got RuntimeDefault"},
		`"linuxOsConfig": {"sysctls": {"kernelPanic": 5}}`:                   {1, "linuxOsConfig.sysctls.kernelPanic: got 5"},
		`"linuxOsConfig": {"sysctls": {"kernelPanic": null}}`:                {0, nothing},
		`"localDnsProfile": {"mode": "Required"}`:                            {1, "localDnsProfile.mode: got Required"},
		`"localDnsProfile": {"mode": "Preferred"}`:                           {0, "localDnsProfile.mode Preferred is left out"},
		`"localDNSProfile": {"mode": "Disabled"}`:                            {0, nothing},
		`"messageOfTheDay": "aGk="`:                                          {0, "messageOfTheDay aGk= is left out"},
		`"spotMaxPrice": -1.0`:                                               {0, nothing},
		`"securityProfile": {"sshAccess": "Disabled"}`:                       {0, "securityProfile.sshAccess Disabled is left out"},
		`"upgradeSettings": {"maxSurge": "50%"}`:                             {0, "upgradeSettings.maxSurge 50% is left out"},
		`"nodeCustomizationProfile": {"id": "x"}`:                            {0, "nodeCustomizationProfile.id x is left out: nap does not know the field"},
		`"osType": null, "osSku": "Windows2022"`:                             {0, "agent pool a runs Windows and stays as it is"},
		`"mode": null`:                                                       {0, nothing},
		`"vmSize": null, "virtualMachinesProfile": null`:                     {1, "agent pool a: vmSize: got nothing, and virtualMachinesProfile.scale has no size either"},
		`"count": "three"`:                                                   {1, "field count: got string, which is of another type"},
		`"properties": {"vmSize": "Standard_D4s_v5", "hostGroupID": "/s/h"}`: {1, "agent pool a: hostGroupID: got /s/h"},
	} {
		text := `[{"name": "a", "mode": "User", "osType": "Linux", "vmSize": "Standard_D4s_v5", "count": 1, "eTag": "e", ` + field + `}]`
		out, errs, code := runWith(t, text, "--from-agent-pools", "--region", "westeurope")
		said := strings.Join(strings.Fields(errs), " ")
		if code != tt.code || !strings.Contains(said, tt.want) || code == 1 && out != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", field, code, out, said)
		}
		if tt.want == nothing && strings.Count(said, "agent pool a:") != 2 { // what it costs, and the label of its pods
			t.Errorf("%s: a word of the default: %q", field, said)
		}
	}
}

// runWith converts a text.
func runWith(t *testing.T, text string, args ...string) (out, errs string, code int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return nap.Run(t, append([]string{"convert", "-f", path}, args...)...)
}

// TestConvertReadsAgentPoolsInEveryForm takes what az and Azure's API print.
func TestConvertReadsAgentPoolsInEveryForm(t *testing.T) {
	const pool = `{"name": "a", "mode": "User", "vmSize": "Standard_D4s_v5", "count": 1}`
	const resource = `{"name": "a", "properties": {"mode": "User", "vmSize": "Standard_D4s_v5", "count": 1}}`
	for name, text := range map[string]string{
		"cluster":           `{"location": "mars", "agentPoolProfiles": [` + pool + `]}`,
		"resource":          `{"properties": {"agentPoolProfiles": [` + pool + `]}}`,
		"list":              `[` + pool + `]`,
		"answer of the API": `{"value": [` + resource + `]}`,
		"one":               pool,
		"one of the API":    resource,
	} {
		out, errs, code := runWith(t, text, "--from-agent-pools", "--region", "westeurope")
		if code != 0 || !strings.Contains(out, "kind: NodePool\nmetadata:\n  name: a\n") {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
	for text, want := range map[string]string{
		`[` + pool + `]`: "does not tell the region of the agent pools: give --region",
		`[{"name": "c", "agentPoolProfiles": [` + pool + `]}]`: "is a list of clusters, must be one of them: give what",
		`"text"`: "got string, must be an object or a list of objects: give what",
		`[]`:     "has no agentPoolProfiles: give what",
		"\n":     "is empty: give what",
	} {
		if out, errs, code := runWith(t, text, "--from-agent-pools"); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s%s", text, code, out, errs)
		}
	}
}

// No label tells which GPU a size has whose name does not: its family would let other GPUs in.
func TestConvertNamesSizesOfGPUsWithoutName(t *testing.T) {
	out, errs, code := runWith(t, `[{"name":"gpu","vmSize":"Standard_NC6s_v3","count":1,"mode":"User"},
{"name":"t4","vmSize":"Standard_NC4as_T4_v3","count":1,"mode":"User"}]`, "--from-agent-pools", "--region", "westeurope")
	said := strings.Join(strings.Fields(errs), " ")
	if code != 0 || strings.Count(out, "- Standard_NC6s_v3") != 1 || strings.Contains(out, "sku-family") ||
		!strings.Contains(said, "Standard_NC6s_v3: no label tells the name of its GPU") || strings.Count(said, "no label tells") != 1 {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errs)
	}
}

func TestConvertClassAndWhatIsNotConverted(t *testing.T) {
	out, errs, code := nap.Run(t, "convert", "-f", "testdata/convert/v1alpha2-class.yaml")
	if code != 0 || !strings.Contains(out, "apiVersion: karpenter.azure.com/v1beta1") || strings.Contains(out, "resourceVersion") ||
		!strings.Contains(errs, "+ apiVersion: karpenter.azure.com/v1beta1") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	path := filepath.Join(t.TempDir(), "in.yaml")
	text := "apiVersion: karpenter.sh/v1beta1\nkind: NodeClaim\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code = nap.Run(t, "convert", "-f", path)
	if code != 0 || !strings.Contains(out, "kind: ConfigMap") || strings.Contains(out, "NodeClaim") || !strings.Contains(errs, "NodeClaim a is left out") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func TestConvertRefusesWhatCannotBeCarriedOver(t *testing.T) {
	pool := func(requirement string) string {
		return "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: p}\nspec: {template: {spec: {nodeClassRef: {name: default}, requirements: [" +
			requirement + "]}}}\n"
	}
	provisioner := func(spec string) string {
		return "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\nspec: {" + spec + "}\n"
	}
	for name, tt := range map[string]struct{ text, want string }{
		"zone without region": {pool(`{key: topology.kubernetes.io/zone, operator: In, values: ["1"]}`), "such as eastus-1: give --region"},
		"no such series":      {pool(`{key: karpenter.k8s.azure/sku-series, operator: In, values: [XYv9]}`), `no series is called "XYv9"`},
		"list of minima":      {pool(`{key: karpenter.k8s.azure/sku-cpu, operator: In, values: ["4", "8"]}`), "it meant at least one number"},
		"no successor":        {pool(`{key: karpenter.k8s.azure/sku-colour, operator: Exists}`), "karpenter.k8s.azure/sku-colour has no successor"},
		"GPU too large":       {pool(`{key: karpenter.k8s.azure/sku-gpu-memory, operator: In, values: ["4000"]}`), "no GPU has 4000 GiB and more; write karpenter.azure.com/sku-gpu-name In"},
		"policy":              {"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec: {disruption: {consolidationPolicy: Sometimes}}\n", `got "Sometimes", allowed: WhenEmptyOrUnderutilized, WhenEmpty, Balanced`},
		"list of GPU memory":  {pool(`{key: karpenter.k8s.azure/sku-gpu-memory, operator: In, values: ["16", "24"]}`), "write karpenter.azure.com/sku-gpu-name In with the GPUs that you mean: A10 (24 GiB)"},
		"label of AWS": {pool(`{key: karpenter.k8s.aws/instance-cpu, operator: In, values: ["4"]}`),
			`NodePool p: spec.template.spec.requirements[0].key: got "karpenter.k8s.aws/instance-cpu", which Azure does not have, use: karpenter.azure.com/sku-cpu`},
		"label of GKE":  {pool(`{key: cloud.google.com/gke-nodepool, operator: Exists}`), `got "cloud.google.com/gke-nodepool", which Azure does not have: remove`},
		"zone of AWS":   {pool(`{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}`), `got "us-east-1a", which is no zone of Azure`},
		"region of AWS": {pool(`{key: topology.kubernetes.io/region, operator: In, values: [us-east-1]}`), `got "us-east-1", which is no region of Azure`},
		"size of AWS":   {pool(`{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}`), `got "m5.large", which is no size of Azure`},
		"class of AWS":  {strings.Replace(pool(""), "{name: default}", "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}", 1), "nodeClassRef: got EC2NodeClass of karpenter.k8s.aws, which Azure does not have: write an AKSNodeClass"},
		"EC2NodeClass":  {"apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: d}\n", `EC2NodeClass d: apiVersion: got "karpenter.k8s.aws/v1", which Azure does not have: write an AKSNodeClass`},
		"second document": {pool(`{key: karpenter.k8s.aws/instance-cpu, operator: Exists}`) + "---\napiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: d}\n",
			`document 2: AWSNodeTemplate d: apiVersion: got "karpenter.k8s.aws/v1alpha1"`},
		"inline provider":  {provisioner("provider: {subnetSelector: {a: b}}"), `Provisioner p: spec.provider: got {"subnetSelector":{"a":"b"}}, which is another cloud's`},
		"provider of AWS":  {provisioner("providerRef: {kind: AWSNodeTemplate, name: d}"), "spec.providerRef.kind: got AWSNodeTemplate, allowed: AKSNodeClass"},
		"kubelet setting":  {provisioner("kubeletConfiguration: {clusterDNS: [10.0.0.1]}"), `spec.kubeletConfiguration.clusterDNS: got ["10.0.0.1"]: an AKSNodeClass has no field for it`},
		"limits of v1":     {provisioner("limits: {cpu: 100}"), "Provisioner p: spec.limits.cpu: there is no such field, allowed: resources"},
		"switch as a word": {provisioner("consolidation: true"), "spec.consolidation: got true, must be a mapping with the fields enabled"},
		"seconds as text":  {provisioner(`ttlSecondsUntilExpired: "3600"`), `spec.ttlSecondsUntilExpired: got "3600", must be a whole number`},
		"misspelled field": {provisioner("taint: [], ttlSecondUntilExpired: 5"), "Provisioner p: spec.taint, spec.ttlSecondUntilExpired: there are no such fields, allowed: "},
		"no class":         {provisioner("kubeletConfiguration: {maxPods: 50}"), "Provisioner p: spec.kubeletConfiguration.maxPods: got 50: it is spec.maxPods of AKSNodeClass default today, which is not in the input: add"},
		"other value":      {provisioner("kubeletConfiguration: {maxPods: 50}") + "---\napiVersion: karpenter.azure.com/v1beta1\nkind: AKSNodeClass\nmetadata: {name: default}\nspec: {maxPods: 30}\n", "today, which has 30: decide for one of them"},
		"class of others":  {provisioner("kubeletConfiguration: {maxPods: 50}") + "---\n" + strings.ReplaceAll(pool(""), "name: p}", "name: q}"), "today, which NodePool q has without it: give each a class of its own"},
		"what stays wrong": {pool(`{key: karpenter.azure.com/sku-cpus, operator: In, values: ["4"]}`), "NodePool p: the API server would refuse it: "},
		"no YAML":          {"a: [", "document 1: is neither YAML nor JSON"},
		"no mapping":       {"[{name: system}]", "document 1: is no mapping, as every Kubernetes object is; for what az aks show or az aks nodepool list prints with -o json, give --from-agent-pools"},
		"no object":        {`{"agentPoolProfiles": [{"name": "system"}]}`, "document 1: has no apiVersion and kind, as every Kubernetes object has; for what az aks show"},
		"limits twice":     {strings.Replace(pool(""), "{template:", "{limits: {cpu: 10}, limits: {cpu: 20}, template:", 1), "document 1: spec.limits: is there twice, in its line 4: give it once"},
		"what follows":     {`{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}} garbage`, "document 2: what follows its value is neither YAML nor JSON: line 1: begins no document"},
	} {
		path := filepath.Join(t.TempDir(), "in.yaml")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := nap.Run(t, "convert", "-f", path)
		if code != 1 || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", name, code, out, errs)
		}
	}
	nap.Mistakes(t, map[string]clitest.Mistake{
		"nothing":      {Args: []string{"convert"}, Want: "nap: nothing to convert: give objects with -f FILE"},
		"no object":    {Args: []string{"convert", "-f", "-"}, Want: "nap: nothing to convert: standard input holds no object: give Kubernetes objects"},
		"no file":      {Args: []string{"convert", "-f", "nowhere.yaml"}, Want: "nap: -f nowhere.yaml: no such file or directory: give the path"},
		"no cluster":   {Args: []string{"convert", "--from-agent-pools", "-f", "testdata/convert/provisioner.yaml"}, Want: "nap: testdata/convert/provisioner.yaml: is not JSON"},
		"wrong region": {Args: []string{"convert", "-f", "testdata/convert/provisioner.yaml", "--region", "mars"}, Want: "nap: "},
	})
}

// TestEveryConsolidationPolicyIsTaken holds the commands that read NodePools against the
// policies that Karpenter's definition has.
func TestEveryConsolidationPolicyIsTaken(t *testing.T) {
	for _, policy := range model.ConsolidationPolicies() {
		path := filepath.Join(t.TempDir(), "in.yaml")
		text := poolWith("limits: {cpu: 64}\n  disruption: {consolidateAfter: 1m, consolidationPolicy: "+policy+"}",
			"requirements: [{key: karpenter.azure.com/sku-family, operator: In, values: [D]}]")
		if err := os.WriteFile(path, []byte(text+inflate), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"convert", "-f", path}, {"plan", "-f", path}, {"lint", "-f", path}, {"explain", "offer", "Standard_D4s_v5", "-f", path},
			{"diff", "-f", path, "--from", path},
		} {
			if out, errs, code := nap.Run(t, args...); code == 1 || strings.Contains(errs, "consolidationPolicy") {
				t.Errorf("%s: %v: exit code %d: %s%s", policy, args, code, out, errs)
			}
		}
	}
}

func TestPlanRefusesOldNodePoolsWithTheCommand(t *testing.T) {
	for _, name := range []string{"v1beta1-general-purpose", "v1alpha5-gpu-workloads", "preview-selectors"} {
		out, errs, code := nap.Run(t, "plan", "-f", "testdata/convert/"+name+".yaml")
		if code != 1 || !strings.Contains(errs, "nap convert -f FILE writes it so") || strings.Contains(out, "Buy 1") {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
}
