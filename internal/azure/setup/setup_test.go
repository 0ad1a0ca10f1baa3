package setup_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/setup"
)

const issuer = "https://eastus.oic.prod-aks.azure.com/t/u/"

// withIssuer is a cluster for workload identity, without a pool of mode Machines.
func withIssuer(c *armsim.Config) {
	c.Cluster.MachinesPools = []string{}
	c.Cluster.Properties = map[string]any{"oidcIssuerProfile": map[string]any{"enabled": true, "issuerURL": issuer}}
}

// target is nap in the cluster of a simulated Azure.
func target(t *testing.T, env *armtest.Env) setup.Target {
	t.Helper()
	clusters, err := armcontainerservice.NewManagedClustersClient(env.SubscriptionID, env.Credential, env.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	facts, err := managedcluster.Read(t.Context(), clusters, env.ResourceGroup, env.ClusterName)
	if err != nil {
		t.Fatal(err)
	}
	return setup.Target{Cluster: facts, Namespace: "nap-system", ServiceAccount: "nap", MachinesPool: "machines"}
}

func plan(t *testing.T, env *armtest.Env) *setup.Plan {
	t.Helper()
	p, err := setup.New(target(t, env), env.Credential, env.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// makeAll makes what is missing, and returns what that was. It stops before the step of
// a number.
func makeAll(t *testing.T, p *setup.Plan, stop int) (made []string) {
	t.Helper()
	for n, step := range p.Steps() {
		if n == stop {
			break
		}
		there, err := step.There(t.Context())
		if err != nil {
			t.Fatalf("look at %s: %v", step.What, err)
		}
		if there {
			continue
		}
		if err := step.Make(t.Context()); err != nil {
			t.Fatalf("make %s: %v", step.What, err)
		}
		made = append(made, step.What)
	}
	return made
}

// signIn asks for a token of an identity with a token that says this, and returns the
// status of the answer.
func signIn(t *testing.T, env *armtest.Env, clientID, iss, subject string) (token string, status int) {
	t.Helper()
	says, err := json.Marshal(map[string]any{"iss": iss, "sub": subject, "aud": []string{setup.Audience}})
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {clientID}, "scope": {"https://management.azure.com/.default"},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_assertion":      {"e30." + base64.RawURLEncoding.EncodeToString(says) + ".signature"},
	}
	resp, err := env.HTTP.PostForm(armtest.Endpoint+"/"+env.TenantID+"/oauth2/v2.0/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Token string `json:"access_token"`
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(text, &answer) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return answer.Token, resp.StatusCode
}

// TestSetupLetsTheServiceAccountActWithinItsScopes: what was made is enough for a token of
// the ServiceAccount to sign in with, no other signs in, and it may do at a scope what its
// role there permits and nothing else.
func TestSetupLetsTheServiceAccountActWithinItsScopes(t *testing.T) {
	env := armtest.New(t, withIssuer)
	p := plan(t, env)
	if made := makeAll(t, p, -1); len(made) != len(p.Steps()) {
		t.Errorf("made %q of %d", made, len(p.Steps()))
	}
	for name, c := range map[string]struct {
		issuer, subject string
		status          int
	}{
		"the ServiceAccount":     {issuer, "system:serviceaccount:nap-system:nap", http.StatusOK},
		"another ServiceAccount": {issuer, "system:serviceaccount:default:nap", http.StatusUnauthorized},
		"another cluster":        {"https://other/", "system:serviceaccount:nap-system:nap", http.StatusUnauthorized},
	} {
		if _, status := signIn(t, env, p.ClientID, c.issuer, c.subject); status != c.status {
			t.Errorf("%s: status %d, want %d", name, status, c.status)
		}
	}
	token, _ := signIn(t, env, p.ClientID, issuer, "system:serviceaccount:nap-system:nap")
	subscription := "/subscriptions/" + env.SubscriptionID
	for path, want := range map[string]int{
		subscription + "/providers/Microsoft.Compute/skus?api-version=2021-07-01":                                                                    http.StatusOK,
		subscription + "/resourceGroups/" + env.NodeResourceGroup + "/providers/Microsoft.Compute/virtualMachines?api-version=2025-04-01":            http.StatusOK,
		subscription + "/resourceGroups/" + env.ResourceGroup + "/providers/Microsoft.Compute/virtualMachines?api-version=2025-04-01":                http.StatusForbidden,
		subscription + "/resourceGroups/" + env.ResourceGroup + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities?api-version=2024-11-30": http.StatusForbidden,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, armtest.Endpoint+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		resp, err := env.HTTP.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d: %.200s", path, resp.StatusCode, want, text)
		}
	}
}

// TestSetupGoesOnWhereItStopped: a run that ended before any of the steps is finished by
// the next one, which makes nothing twice, and all of it can be removed and made again.
func TestSetupGoesOnWhereItStopped(t *testing.T) {
	steps := len(plan(t, armtest.New(t, withIssuer)).Steps())
	for stop := range steps {
		env := armtest.New(t, withIssuer)
		before := makeAll(t, plan(t, env), stop)
		after := makeAll(t, plan(t, env), -1)
		if len(before) != stop || len(before)+len(after) != steps {
			t.Errorf("stopped before step %d: made %q and then %q", stop, before, after)
		}
		if again := makeAll(t, plan(t, env), -1); len(again) != 0 {
			t.Errorf("stopped before step %d: a third run makes %q", stop, again)
		}
	}
	env := armtest.New(t, withIssuer)
	p := plan(t, env)
	makeAll(t, p, -1)
	removeAll(t, p)
	if again := makeAll(t, plan(t, env), -1); len(again) != steps-1 {
		t.Errorf("after a removal %q is made again, and only the pool stays", again)
	}
}

func removeAll(t *testing.T, p *setup.Plan) {
	t.Helper()
	steps := p.Steps()
	for n := range steps {
		if step := steps[len(steps)-1-n]; step.Remove != nil {
			if err := step.Remove(t.Context()); err != nil {
				t.Errorf("remove %s: %v", step.What, err)
			}
		}
	}
}

// TestSetupReplacesWhatAnIdentityOfThePastLeft: an identity that was deleted by hand leaves
// its assignments, whose names the next one needs.
func TestSetupReplacesWhatAnIdentityOfThePastLeft(t *testing.T) {
	env := armtest.New(t, withIssuer)
	p := plan(t, env)
	makeAll(t, p, -1)
	if err := p.Steps()[0].Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := plan(t, env)
	makeAll(t, next, -1)
	if next.PrincipalID == p.PrincipalID {
		t.Error("the identity is the same")
	}
	for _, step := range next.Steps() {
		if there, err := step.There(t.Context()); !there || err != nil {
			t.Errorf("%s is missing: %v", step.What, err)
		}
	}
}

// TestSetupCorrectsWhatDiffers: a credential of another issuer, as after the cluster was made
// again, and a role of an earlier version.
func TestSetupCorrectsWhatDiffers(t *testing.T) {
	env := armtest.New(t, withIssuer)
	old := target(t, env)
	old.Cluster.OIDCIssuer = "https://eastus.oic.prod-aks.azure.com/old/"
	p, err := setup.New(old, env.Credential, env.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	makeAll(t, p, -1)
	if made := makeAll(t, plan(t, env), -1); len(made) != 1 || !strings.HasPrefix(made[0], "federated credential") {
		t.Errorf("corrected %q", made)
	}
}

func TestSetupScopesFollowTheCluster(t *testing.T) {
	env := armtest.New(t, withIssuer)
	own := target(t, env)
	own.SubnetID = "/subscriptions/" + env.SubscriptionID + "/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/own/subnets/nodes"
	own.Cluster.Kubelet.ResourceID = "/subscriptions/" + env.SubscriptionID + "/resourceGroups/net/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubelet"
	var got []string
	for _, a := range own.Assignments() {
		got = append(got, a.Of)
	}
	want := "the subscription|the cluster|resource group " + env.NodeResourceGroup + "|the kubelets' identity|virtual network own"
	if strings.Join(got, "|") != want {
		t.Errorf("scopes %q, want %q", got, want)
	}
}

func TestSetupRefusesAPoolOfAnotherMode(t *testing.T) {
	env := armtest.New(t, withIssuer)
	wrong := target(t, env)
	wrong.MachinesPool = "system"
	p, err := setup.New(wrong, env.Credential, env.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	steps := p.Steps()
	last := steps[len(steps)-1]
	if there, err := last.There(context.Background()); there || err != nil {
		t.Errorf("there %v, %v", there, err)
	}
	if err := last.Make(t.Context()); err == nil || !strings.Contains(err.Error(), "mode System") {
		t.Errorf("error %v", err)
	}
}
