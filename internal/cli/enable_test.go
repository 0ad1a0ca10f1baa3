package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

const testIssuer = "https://eastus.oic.prod-aks.azure.com/t/u/"

// candidate is a cluster in which nap is to be installed.
type candidate struct {
	*testing.T
	// issuer is that of the tokens of the cluster that the kubeconfig is of.
	issuer string
	azure  func(*armsim.Config)
	env    *armtest.Env
	// objects are the cluster's, as YAML, before the first run; api has them from then on.
	objects    string
	api        *clitest.APIServer
	kubeconfig string
	// nodes is how many there are, with ten pods each.
	nodes int64
}

// ready is a cluster that has what nap enable wants.
func ready(t *testing.T) *candidate {
	return &candidate{T: t, issuer: testIssuer, azure: func(c *armsim.Config) {
		c.SubscriptionID = testSubscription
		c.Cluster.MachinesPools = []string{}
		c.Cluster.Properties = map[string]any{
			"oidcIssuerProfile": map[string]any{"enabled": true, "issuerURL": testIssuer},
			"securityProfile":   map[string]any{"workloadIdentity": map[string]any{"enabled": true}},
		}
	}}
}

// but changes the simulated Azure.
func (c *candidate) but(change func(*armsim.Config)) *candidate {
	before := c.azure
	c.azure = func(cfg *armsim.Config) { before(cfg); change(cfg) }
	return c
}

// start starts Azure and the API server, which also says what it issues tokens as.
func (c *candidate) start() {
	c.env = armtest.New(c.T, c.azure)
	c.api, _ = clitest.NewAPIServer(c.T, c.TempDir(), []byte(c.objects))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/openid-configuration" {
			fmt.Fprintf(w, `{"issuer": %q}`, c.issuer)
			return
		}
		c.api.ServeHTTP(w, r)
	}))
	c.Cleanup(s.Close)
	file := filepath.Join(c.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`, s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
	c.kubeconfig = file
}

// enable runs nap enable.
func (c *candidate) enable(args ...string) (text string, code int) {
	c.Helper()
	if c.api == nil {
		c.start()
	}
	var out bytes.Buffer
	o := &operator{streams: command.Streams{Out: &out, Err: &out}, now: time.Now}
	e := newEnabler(o)
	e.doctor.lookupEnv = func(string) (string, bool) { return "", false }
	e.doctor.connect = func(*config.Config) (azureAccess, error) {
		e.doctor.target.RetailPrices = armtest.Endpoint + "/api/retail/prices"
		return azureAccess{c.env.Credential, c.env.ClientOptions(), c.env.HTTP}, nil
	}
	e.doctor.cluster = func(_ context.Context, _ *rest.Config, f *prerequisites.Facts) error {
		f.Kubernetes = &prerequisites.Kubernetes{Version: "v1.35.1", Nodes: c.nodes, Pods: 10 * c.nodes}
		return nil
	}
	cmd := enableCommand(o, e)
	cmd.SetArgs(append([]string{"--resource-group", "nap", "--name", "nap", "--subscription", testSubscription, "--kubeconfig", c.kubeconfig}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(c.Context())
	if err == nil {
		return out.String(), 0
	}
	exit := &command.ExitError{Code: 1, Err: err}
	errors.As(err, &exit)
	return out.String() + err.Error(), exit.Code
}

// writes counts what was changed in Azure.
func (c *candidate) writes() (n int) {
	for _, entry := range c.env.Server.Audit(0) {
		if strings.HasSuffix(entry.Action, "/write") || strings.HasSuffix(entry.Action, "/delete") {
			n++
		}
	}
	return n
}

// TestEnableRefusesBeforeItMakesAnything: each refusal says what, and what to do, by its
// exit code, and nothing was made.
func TestEnableRefusesBeforeItMakesAnything(t *testing.T) {
	const image = "--image=registry.example/nap:v1"
	for name, c := range map[string]struct {
		candidate *candidate
		args      []string
		code      int
		says      string
	}{
		"no image":       {ready(t), nil, 1, "which image of nap? give --image REPOSITORY:TAG"},
		"image, no tag":  {ready(t), []string{"--image=registry.example:5000/nap"}, 1, "must be REPOSITORY:TAG or REPOSITORY@DIGEST"},
		"default pools":  {ready(t), []string{image, "--default-node-pools=Some"}, 1, "Auto"},
		"subnet":         {ready(t), []string{image, "--subnet=nodes"}, 1, "--subnet: "},
		"pool's name":    {ready(t), []string{image, "--machines-pool=Machines"}, 1, "--machines-pool: got \"Machines\""},
		"no values file": {ready(t), []string{image, "--values=missing.yaml"}, 1, "--values missing.yaml: there is no such file"},
		"unknown value":  {ready(t), []string{image, "--values=testdata/enable/unknown.yaml"}, 1, "replica"},
		"a shadow":       {ready(t), []string{image, "--values=testdata/enable/shadow.yaml"}, 1, "--values: shadow.enabled is true"},
		"plain machines in a pool": {ready(t), []string{image, "--machines-pool=machines", "--values=testdata/enable/plain.yaml"}, 1,
			`--machines-pool: got "machines", for which settings.provisionMode is aksmachineapi, and --values has aksscriptless`},
		"two pools": {ready(t), []string{image, "--machines-pool=first", "--values=testdata/enable/pool.yaml"}, 1,
			`--machines-pool: got "first", for which settings.aksMachinesPoolName is first, and --values has second`},
		"no issuer": {ready(t).but(func(c *armsim.Config) { delete(c.Cluster.Properties, "oidcIssuerProfile") }), []string{image}, 2,
			"az aks update --resource-group nap --name nap --enable-oidc-issuer --enable-workload-identity"},
		"AKS's own": {ready(t).but(func(c *armsim.Config) {
			c.Cluster.Properties["nodeProvisioningProfile"] = map[string]any{"mode": "Auto"}
		}), []string{image}, 2, " checks failed, see above; nothing was made"},
		"wrong subscription": {ready(t), []string{image, "--subscription=00000000-0000-4000-8000-00000000beef"}, 1, "SubscriptionNotFound"},
		"another cluster": {&candidate{T: t, issuer: "https://other/", azure: ready(t).azure}, []string{image}, 2,
			"az aks get-credentials --resource-group nap --name nap"},
	} {
		text, code := c.candidate.enable(c.args...)
		if code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", name, code, c.code, c.says, text)
		}
		if n := c.candidate.writes(); n != 0 {
			t.Errorf("%s: %d things were changed in Azure", name, n)
		}
	}
}

// TestEnableDryRunSaysHowAndMakesNothing: every step with its commands.
func TestEnableDryRunSaysHowAndMakesNothing(t *testing.T) {
	c := ready(t)
	text, code := c.enable("--image=registry.example/nap:v1", "--dry-run")
	if code != 0 || c.writes() != 0 {
		t.Errorf("exit code %d, %d writes", code, c.writes())
	}
	for _, want := range []string{
		"identity nap-nap is missing", "make: az identity create --resource-group nap --name nap-nap --location eastus",
		"--issuer " + testIssuer + " --subject system:serviceaccount:nap-system:nap", "make: az role definition create", "make: az role assignment create",
		`make: az rest --method PUT`, "undo: az identity delete", "undo: helm uninstall nap --namespace nap-system",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// TestEnableDryRunSaysMemoryOfLargeClusters: what a cluster of this size takes.
func TestEnableDryRunSaysMemoryOfLargeClusters(t *testing.T) {
	c := ready(t)
	c.nodes = 5000
	const want = "release nap of chart nap in namespace nap-system\n  memory limit: 3Gi, for 5000 nodes and 50000 pods\n  undo: "
	if text, code := c.enable("--image=registry.example/nap:v1", "--dry-run"); code != 0 || !strings.Contains(text, want) {
		t.Errorf("exit code %d, it does not say %q:\n%s", code, want, text)
	}
}

// TestEnableDryRunForPrograms: the same steps as one document.
func TestEnableDryRunForPrograms(t *testing.T) {
	read := func(args ...string) dryRunReport {
		t.Helper()
		c := ready(t)
		text, code := c.enable(append(args, "--dry-run", "-o", "json")...)
		var got dryRunReport
		if err := json.Unmarshal([]byte(text), &got); err != nil || code != 0 || c.writes() != 0 {
			t.Fatalf("exit code %d, %d writes, %v:\n%s", code, c.writes(), err, text)
		}
		return got
	}
	got := read("--image=registry.example/nap:v1")
	if got.Checks == nil || len(got.Checks.Results) == 0 || got.Writes == nil || len(got.Writes) > 0 {
		t.Errorf("checks %+v, writes %v", got.Checks, got.Writes)
	}
	if first := got.Azure[0]; first.What != "identity nap-nap" || first.There || !strings.HasPrefix(first.Make, "az identity create ") ||
		!strings.HasPrefix(first.Undo, "az identity delete ") {
		t.Errorf("the first step is %+v", first)
	}
	want := []dryRelease{
		{"nap-crd", "nap-crd", "nap-system", "helm uninstall nap-crd --namespace nap-system", "", false},
		{"nap", "nap", "nap-system", "helm uninstall nap --namespace nap-system", "", false},
	}
	if !slices.Equal(got.Releases, want) {
		t.Errorf("releases %+v", got.Releases)
	}
	undone := read("--undo").Removes
	if n := len(undone); n == 0 || undone[n-1].What != "identity nap-nap" || !strings.HasPrefix(undone[n-1].Command, "az identity delete ") ||
		slices.ContainsFunc(undone, func(r dryRemoval) bool { return r.What == "" || r.Command == "" }) {
		t.Errorf("--undo would remove %+v, want the identity last, since the others are found by it", undone)
	}
	c := ready(t)
	if text, code := c.enable("--image=registry.example/nap:v1", "-o", "yaml"); code != 1 || c.writes() != 0 ||
		!strings.HasPrefix(text, `--output: got "yaml", which goes with --dry-run`) {
		t.Errorf("exit code %d, %d writes:\n%s", code, c.writes(), text)
	}
}

// TestEnableSaysWhatAnOwnerHasToRun: who may make an identity and no role is told the
// commands that are left, and what was made is not among them.
func TestEnableSaysWhatAnOwnerHasToRun(t *testing.T) {
	c := ready(t).but(func(cfg *armsim.Config) {
		cfg.Principals = []armsim.Principal{{ClientID: "contributor", Actions: []string{
			"*/read", "Microsoft.Compute/*", "Microsoft.Network/*", "Microsoft.ContainerService/*", "Microsoft.ManagedIdentity/*",
		}}}
	})
	text, code := c.enable("--image=registry.example/nap:v1")
	if code != 2 || !strings.Contains(text, "identity nap-nap: made") || !strings.Contains(text, "AuthorizationFailed") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	if !strings.Contains(text, "deploy/nap.json") {
		t.Errorf("the template is not named:\n%s", text)
	}
	if _, left, _ := strings.Cut(text, "and then run this again:"); strings.Count(left, "az role definition create") != 2 ||
		strings.Count(left, "az role assignment create") != 3 || strings.Contains(left, "az identity create") {
		t.Errorf("what is left:\n%s", left)
	}
}
