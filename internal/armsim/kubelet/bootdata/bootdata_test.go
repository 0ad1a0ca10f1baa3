package bootdata

import (
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// aCA is any certificate authority in PEM form.
func aCA(t *testing.T) []byte {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// goodScript is a boot script with all that is required, and more lines after it.
func goodScript(ca []byte, extra ...string) string {
	lines := append([]string{
		"#!/bin/bash",
		"# KUBERNETES_VERSION=9.9.9 in a comment does not count",
		`export API_SERVER_NAME="lab.example"`,
		"KUBE_CA_CRT='" + base64.StdEncoding.EncodeToString(ca) + "'",
		"TLS_BOOTSTRAP_TOKEN=abcdef.0123456789abcdef; KUBERNETES_VERSION=1.37.1 /usr/bin/provision --now=yes",
	}, extra...)
	return strings.Join(lines, "\n")
}

func TestBootScriptIsRead(t *testing.T) {
	ca := aCA(t)
	got, err := Parse(goodScript(ca,
		`KUBELET_NODE_LABELS="kubernetes.azure.com/mode=user,karpenter.sh/nodepool=general,empty="`,
		`KUBELET_FLAGS="--register-with-taints=karpenter.sh/unregistered:NoExecute,gpu=yes:NoSchedule --max-pods=30`+
			` --kube-reserved=cpu=100m,memory=1843Mi --eviction-hard=memory.available<750Mi,nodefs.available<10%,nodefs.inodesFree<5%`+
			` --cloud-provider external --event-qps=0 --rotate-certificates"`,
		`GPU_NODE=true`))
	if err != nil {
		t.Fatal(err)
	}
	want := Data{
		Server: "https://lab.example", CA: ca, Token: "abcdef.0123456789abcdef", Version: "v1.37.1",
		Labels: map[string]string{"kubernetes.azure.com/mode": "user", "karpenter.sh/nodepool": "general", "empty": ""},
		Flags: Flags{
			Taints: []corev1.Taint{
				{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute},
				{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule},
			},
			MaxPods: 30,
			KubeReserved: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1843Mi"),
			},
			EvictionMemory: Threshold{Bytes: 750 << 20},
			EvictionDisk:   Threshold{Fraction: 0.1},
			ExternalCloud:  true,
		},
		GPUDriver: true,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Data{}, Flags{})); diff != "" {
		t.Errorf("boot data (-want +got):\n%s", diff)
	}
}

func TestScriptOfBootDataReadsBackTheSame(t *testing.T) {
	want, err := Parse(goodScript(aCA(t),
		"KUBELET_NODE_LABELS=a=b,c=d",
		`KUBELET_FLAGS="--register-with-taints=a=b:NoSchedule,c:NoExecute --max-pods=30 --kube-reserved=cpu=100m,memory=1843Mi`+
			` --system-reserved=ephemeral-storage=1Gi --eviction-hard=memory.available<750Mi,nodefs.available<10% --cloud-provider=external`+
			` --node-ip=10.0.0.4 --provider-id=azure:///x"`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(want.Script())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Data{}, Flags{})); diff != "" {
		t.Errorf("boot data (-want +got):\n%s", diff)
	}
}

func TestBadBootScriptsAreRefusedNamingTheVariable(t *testing.T) {
	ca := aCA(t)
	cases := map[string]struct {
		script string
		want   []string
	}{
		"nothing in it": {"#!/bin/bash", []string{
			"API_SERVER_NAME: missing", "KUBE_CA_CRT: missing", "TLS_BOOTSTRAP_TOKEN: missing", "KUBERNETES_VERSION: missing"}},
		"server with a path":    {goodScript(ca, "API_SERVER_NAME=https://a/b"), []string{"API_SERVER_NAME", "want host"}},
		"server without TLS":    {goodScript(ca, "API_SERVER_NAME=http://a"), []string{"API_SERVER_NAME", "want host"}},
		"CA not base64":         {goodScript(ca, "KUBE_CA_CRT=%%%"), []string{"KUBE_CA_CRT: not base64"}},
		"CA not PEM":            {goodScript(ca, "KUBE_CA_CRT=aGVsbG8="), []string{"KUBE_CA_CRT: no certificate"}},
		"version":               {goodScript(ca, "KUBERNETES_VERSION=latest"), []string{`KUBERNETES_VERSION: "latest"`}},
		"open quote":            {goodScript(ca, `TLS_BOOTSTRAP_TOKEN="abc`), []string{"TLS_BOOTSTRAP_TOKEN: line 6", `no closing "`}},
		"needs a shell":         {goodScript(ca, `TLS_BOOTSTRAP_TOKEN="$(cat token)"`), []string{"TLS_BOOTSTRAP_TOKEN", "expand"}},
		"label without value":   {goodScript(ca, "KUBELET_NODE_LABELS=a"), []string{`KUBELET_NODE_LABELS: "a"`, "key=value"}},
		"label value malformed": {goodScript(ca, "KUBELET_NODE_LABELS='a=b c'"), []string{"KUBELET_NODE_LABELS", `"b c"`}},
		"label of the cluster's": {goodScript(ca, "KUBELET_NODE_LABELS=node-role.kubernetes.io/master=x"),
			[]string{"node-role.kubernetes.io/master", "may not set"}},
		"label restricted": {goodScript(ca, "KUBELET_NODE_LABELS=node-restriction.kubernetes.io/a=x"), []string{"may not set"}},
		"taint without effect": {goodScript(ca, "KUBELET_FLAGS=--register-with-taints=a=b"),
			[]string{"--register-with-taints", `"a=b"`, "key:Effect"}},
		"taint effect unknown": {goodScript(ca, "KUBELET_FLAGS=--register-with-taints=a=b:Never"),
			[]string{`"Never"`, "NoSchedule, PreferNoSchedule or NoExecute"}},
		"taint key malformed": {goodScript(ca, "KUBELET_FLAGS=--register-with-taints=a/b/c=d:NoSchedule"), []string{`"a/b/c"`}},
		"taint twice": {goodScript(ca, "KUBELET_FLAGS=--register-with-taints=a=b:NoSchedule,a=c:NoSchedule"),
			[]string{"appear twice"}},
		"max-pods zero": {goodScript(ca, "KUBELET_FLAGS=--max-pods=0"), []string{"--max-pods", "positive"}},
		"reservation of unknown": {goodScript(ca, "KUBELET_FLAGS=--kube-reserved=disk=1Gi"),
			[]string{"--kube-reserved", `"disk"`, "ephemeral-storage"}},
		"reservation malformed":   {goodScript(ca, "KUBELET_FLAGS=--system-reserved=cpu=lots"), []string{"--system-reserved", `"lots"`}},
		"eviction signal unknown": {goodScript(ca, "KUBELET_FLAGS='--eviction-hard=cpu<1'"), []string{"--eviction-hard", "memory.available"}},
		"eviction share over all": {goodScript(ca, "KUBELET_FLAGS='--eviction-hard=nodefs.available<200%'"), []string{"200%"}},
		"flag without dashes":     {goodScript(ca, "KUBELET_FLAGS='max-pods=3'"), []string{`"max-pods=3"`, "--name=value"}},
		"node IP":                 {goodScript(ca, "KUBELET_FLAGS='--node-ip=nowhere'"), []string{"--node-ip", "IP address"}},
		"GPU flag":                {goodScript(ca, "GPU_NODE=maybe"), []string{"GPU_NODE", "true or false"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.script)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestLabelsThatAKubeletMaySetAreAccepted(t *testing.T) {
	const labels = "topology.kubernetes.io/zone=0,node.kubernetes.io/instance-type=x,sub.node.kubernetes.io/a=b,kubelet.kubernetes.io/a=b,kubernetes.azure.com/mode=user,plain=x"
	if _, err := parseNodeLabels(labels); err != nil {
		t.Error(err)
	}
}

func TestShellQuoting(t *testing.T) {
	values, bad := assignments("A=a\\ b\nB=\"x'y\\\"z\\n\"\nC='a\"b$c'\nD=one'two'\"three\" E=5\n  export F=6; export " +
		"G=7\nnot an assignment=8\nH=1 command H=2\nI=1\nI=2\r\n")
	want := map[string]string{"A": "a b", "B": `x'y"z\n`, "C": `a"b$c`, "D": "onetwothree", "E": "5", "F": "6", "G": "7", "H": "1", "I": "2"}
	if diff := cmp.Diff(want, values); diff != "" || len(bad) > 0 {
		t.Errorf("errors %v, values (-want +got):\n%s", bad, diff)
	}
}

func FuzzBootDataNeverPanics(f *testing.F) {
	f.Add("A=\"b\\")
	f.Add("KUBELET_FLAGS=--eviction-hard=memory.available<1%,x")
	f.Add("KUBELET_FLAGS='--register-with-taints=a:NoSchedule --max-pods'")
	f.Fuzz(func(t *testing.T, script string) {
		d, err := Parse(script)
		if err == nil && (d.Server == "" || d.Token == "" || len(d.CA) == 0) {
			t.Errorf("accepted without what is required: %+v", d)
		}
	})
}
