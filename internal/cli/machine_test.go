package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/cli/clitest"
)

// bootdata runs the command on the NodePool of testdata/machine.
func bootdata(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := nap.Run(t, append([]string{"machine", "bootdata", "-f", "testdata/machine/nodepool.yaml"}, args...)...)
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, stderr %q", code, errs)
	}
	return out
}

// decoded reads the bare configuration, strictly.
func decoded(t *testing.T, text string) *bootstrap.Config {
	t.Helper()
	var c bootstrap.Config
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil || decoder.More() {
		t.Fatalf("not one configuration and nothing else: %v\n%s", err, text)
	}
	return &c
}

func TestMachineBootdataOfClusterFile(t *testing.T) {
	out := bootdata(t, "--cluster", "testdata/machine/cluster.json", "--ca-file", "testdata/machine/ca.crt", "-o", "json")
	clitest.Golden(t, "machine/bootdata-json", out)
	c := decoded(t, out)
	if strings.Contains(out, "secret") || c.HTTPProxy.HTTPProxy != "http://***@proxy.contoso.com:3128/" ||
		c.Bootstrapping.TLSBootstrappingToken.Reveal() != "xxxxxx.xxxxxxxxxxxxxxxx" {
		t.Errorf("proxy %s, token %s", c.HTTPProxy.HTTPProxy, c.Bootstrapping.TLSBootstrappingToken)
	}
	if c.APIServer.Name != "prod-prod-222222-1a2b3c4d.hcp.westeurope.azmk8s.io" || c.KubernetesVersion != "1.31.13" ||
		c.Cluster.Network.VNetName != "hub" || !c.EnableUnattendedUpgrade || len(c.CustomCACerts) != 1 {
		t.Errorf("the cluster's facts are not in it:\n%s", out)
	}
	ca, err := os.ReadFile("testdata/machine/ca.crt")
	if err != nil || c.KubernetesCACert != base64.StdEncoding.EncodeToString(ca) {
		t.Errorf("CA %s, %v", c.KubernetesCACert, err)
	}
}

func TestMachineBootdataForPeople(t *testing.T) {
	clitest.Golden(t, "machine/bootdata", bootdata(t, "--cluster", "testdata/machine/cluster.json"))
}

func TestMachineBootdataWithoutClusterMarksPlaceholders(t *testing.T) {
	out := bootdata(t)
	for _, field := range []string{"api_server_config.api_server_name", "auth_config.tenant_id", "kubernetes_ca_cert", "kubernetes_version"} {
		if !strings.Contains(out, "# placeholder: "+field+": give --") {
			t.Errorf("%s is not marked:\n%s", field, out)
		}
	}
	decoded(t, bootdata(t, "-o", "json"))
}

func TestMachineBootdataOfSize(t *testing.T) {
	c := decoded(t, bootdata(t, "--size", "Standard_D16s_v5", "-o", "json"))
	if c.VMSize != "Standard_D16s_v5" || c.Kubelet.Flags["--kube-reserved"] != "cpu=260m,memory=5611Mi" {
		t.Errorf("%s, %s", c.VMSize, c.Kubelet.Flags["--kube-reserved"])
	}
}

// kubeconfig writes one for a server with a CA.
func kubeconfig(t *testing.T, server *httptest.Server) string {
	t.Helper()
	var ca bytes.Buffer
	ca.WriteString("-----BEGIN CERTIFICATE-----\n")
	ca.WriteString(base64.StdEncoding.EncodeToString(server.Certificate().Raw))
	ca.WriteString("\n-----END CERTIFICATE-----\n")
	path := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: '" + server.URL + "', certificate-authority-data: " +
		base64.StdEncoding.EncodeToString(ca.Bytes()) + "}\nusers:\n- name: u\n  user: {token: t}\n" +
		"contexts:\n- name: prod\n  context: {cluster: c, user: u}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMachineBootdataOfLiveCluster(t *testing.T) {
	answers := map[string]string{
		"/version": `{"major": "1", "minor": "34", "gitVersion": "v1.34.2"}`,
		"/api/v1/nodes": `{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n", "labels": {
			"topology.kubernetes.io/region": "northeurope", "kubernetes.azure.com/kubelet-identity-client-id": "66666666-6666-6666-6666-666666666666",
			"kubernetes.azure.com/azure-cni-overlay": "true", "kubernetes.azure.com/ebpf-dataplane": "cilium"}},
			"spec": {"providerID": "azure:///subscriptions/77777777-7777-7777-7777-777777777777/resourceGroups/mc_live/providers/Microsoft.Compute/x"}}]}`,
		"/api/v1/namespaces/kube-system/services/kube-dns": `{"kind": "Service", "apiVersion": "v1", "spec": {"clusterIP": "10.2.0.10"}}`,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(answers[r.URL.Path])); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	config := kubeconfig(t, server)
	c := decoded(t, bootdata(t, "--kubeconfig", config, "--context", "prod", "-o", "json"))
	if c.KubernetesVersion != "1.34.2" || c.APIServer.Name != "127.0.0.1" || c.Cluster.Location != "northeurope" ||
		c.Cluster.ResourceGroup != "mc_live" || c.Auth.SubscriptionID != "77777777-7777-7777-7777-777777777777" ||
		c.Auth.AssignedIdentityID != "66666666-6666-6666-6666-666666666666" || c.Cluster.Network.CoreDNSServiceIP != "10.2.0.10" ||
		c.Network.Plugin != "NETWORK_PLUGIN_NONE" {
		t.Errorf("%+v", c)
	}
	// With a file, the context gives the CA alone.
	c = decoded(t, bootdata(t, "--kubeconfig", config, "--context", "prod", "--cluster", "testdata/machine/cluster.json", "-o", "json"))
	pem, err := base64.StdEncoding.DecodeString(c.KubernetesCACert)
	if err != nil || !strings.Contains(string(pem), base64.StdEncoding.EncodeToString(server.Certificate().Raw)) ||
		c.KubernetesVersion != "1.31.13" {
		t.Errorf("version %s, CA %s, %v", c.KubernetesVersion, pem, err)
	}
}

// Without files the NodePool and its node class are the cluster's.
func TestMachineBootdataOfPoolInCluster(t *testing.T) {
	objects, err := os.ReadFile("testdata/machine/nodepool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, config := clitest.NewAPIServer(t, t.TempDir(), objects)
	described := []string{"--cluster", "testdata/machine/cluster.json", "--ca-file", "testdata/machine/ca.crt"}
	want := bootdata(t, described...)
	for name, args := range map[string][]string{"named": {"--nodepool", "general"}, "the only one": {}} {
		args = append(append([]string{"machine", "bootdata", "--kubeconfig", config, "--context", "test"}, described...), args...)
		if out, errs, code := nap.Run(t, args...); code != 0 || errs != "" || out != want {
			t.Errorf("%s: exit code %d, stderr %q, got\n%swant\n%s", name, code, errs, out, want)
		}
	}
	_, errs, code := nap.Run(t, "machine", "bootdata", "--kubeconfig", config, "--nodepool", "x")
	if code != 1 || errs != "nap: --nodepool: got \"x\", allowed: general\n" {
		t.Errorf("a NodePool that there is not: exit code %d, %q", code, errs)
	}
}

func TestMachineBootdataRefusals(t *testing.T) {
	const pool, missing = "testdata/machine/nodepool.yaml", "testdata/machine/none.json"
	nap.Mistakes(t, map[string]clitest.Mistake{
		"no file":          {Args: []string{"machine", "bootdata"}, Want: "nap: no NodePool: give one with -f FILE, or the cluster that has it with --context"},
		"output":           {Args: []string{"machine", "bootdata", "-f", pool, "-o", "xml"}, Want: `nap: --output: got "xml", allowed: text, json`},
		"no such cluster":  {Args: []string{"machine", "bootdata", "-f", pool, "--cluster", missing}, Want: "nap: --cluster " + missing + ": no such file or directory: give the path"},
		"no cluster":       {Args: []string{"machine", "bootdata", "-f", pool, "--cluster", pool}, Want: "nap: --cluster: " + pool + ": this describes no AKS cluster"},
		"no such CA":       {Args: []string{"machine", "bootdata", "-f", pool, "--ca-file", missing}, Want: "nap: --ca-file " + missing + ": no such file or directory: give the path"},
		"no CA":            {Args: []string{"machine", "bootdata", "-f", pool, "--ca-file", pool}, Want: "nap: --ca-file: " + pool + " holds no certificate in PEM"},
		"no such size":     {Args: []string{"machine", "bootdata", "-f", pool, "--size", "D4"}, Want: `nap: --size: got "D4", which the built-in table does not have`},
		"forbidden size":   {Args: []string{"machine", "bootdata", "-f", pool, "--size", "Standard_E4s_v5"}, Want: "nap: NodePool general: none of the "},
		"several pools":    {Args: []string{"machine", "bootdata", "-f", "testdata/machine/twopools.yaml"}, Want: "nap: testdata/machine/twopools.yaml has 2 NodePools: choose one with --nodepool: one, two"},
		"no such pool":     {Args: []string{"machine", "bootdata", "-f", "testdata/machine/twopools.yaml", "--nodepool", "x"}, Want: `nap: --nodepool: got "x", allowed: one, two`},
		"no such context":  {Args: []string{"machine", "bootdata", "-f", pool, "--kubeconfig", missing}, Want: "nap: --kubeconfig " + missing},
		"files without it": {Args: []string{"machine", "bootdata", "-f", "testdata/machine/cluster.json"}, Want: "nap: "},
	})
}

func TestClusterIDFollowsFromDNSPrefix(t *testing.T) {
	// The prefix and its number are those of AgentBaker's own test.
	for _, fqdn := range []string{"foo_hosted_master-00000000.hcp.eastus.azmk8s.io", "foo_hosted_master"} {
		if got := clusterID(fqdn); got != "42761241" {
			t.Errorf("%s: %s, want 42761241", fqdn, got)
		}
	}
	if clusterID("a") == clusterID("b") {
		t.Error("two clusters have one name")
	}
}

func TestPlaceholdersAreMadeOnlyWhereNothingSays(t *testing.T) {
	d := &describedCluster{placeholders: map[string]string{}}
	f := &managedcluster.Facts{PrivateFQDN: "prod-12345678.privatelink.eastus.azmk8s.io", Private: true, Location: "eastus"}
	d.complete(f)
	if d.placeholders["api_server_config.api_server_name"] != "" || d.placeholders["cluster_config.location"] != "" || f.APIServer() != f.PrivateFQDN {
		t.Errorf("%v, %s", d.placeholders, f.APIServer())
	}
}
