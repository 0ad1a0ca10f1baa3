package setup_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest/template"
	"github.com/nodeautoprovision/nap/internal/azure/setup"
)

// TestTemplateMakesWhatNapEnableMakes: deployed on the simulated Azure, deploy/nap.json
// leaves nothing to make for nap enable, also in a network of one's own, and twice.
func TestTemplateMakesWhatNapEnableMakes(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/nap.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, own := range map[string]bool{"network of AKS": false, "network and kubelet identity of one's own": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { deployed(t, text, own) }) })
	}
}

func deployed(t *testing.T, text []byte, own bool) {
	env := armtest.New(t, withIssuer, func(c *armsim.Config) { c.ResourceGroups = []string{"net"} })
	want := target(t, env)
	parameters := map[string]any{
		"clusterName": env.ClusterName, "clusterResourceGroup": env.ResourceGroup, "location": env.Region, "oidcIssuer": issuer,
	}
	if own {
		group := "/subscriptions/" + env.SubscriptionID + "/resourceGroups/net/providers/"
		want.SubnetID, want.Cluster.Kubelet.ResourceID = group+"Microsoft.Network/virtualNetworks/own/subnets/nodes",
			group+"Microsoft.ManagedIdentity/userAssignedIdentities/kubelet"
		parameters["subnetId"], parameters["kubeletIdentityId"] = want.SubnetID, want.Cluster.Kubelet.ResourceID
	}
	for range 2 {
		d := &template.Deployment{TB: t, Env: env, Scope: "/subscriptions/" + env.SubscriptionID}
		d.Deploy(text, parameters)
	}
	p, err := setup.New(want, env.Credential, env.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	if made := makeAll(t, p, -1); len(made) > 0 {
		t.Errorf("nap enable makes besides: %q", made)
	}
	machines, catalogue := want.Roles()
	for _, r := range []setup.Role{machines, catalogue} {
		var got struct {
			Properties struct {
				RoleName, Description string
				Permissions           []struct{ Actions []string }
			}
		}
		read(t, env, r.ID, &got)
		is := got.Properties
		if len(is.Permissions) != 1 || !slices.Equal(is.Permissions[0].Actions, r.Actions) || is.RoleName != r.Name || is.Description != r.Purpose {
			t.Errorf("role %s of the template is %+v, want %+v", r.ID, got, r)
		}
	}
	for _, a := range want.Assignments() {
		read(t, env, a.Scope+"/providers/Microsoft.Authorization/roleAssignments/"+a.Name, &struct{}{})
	}
}

// read reads a role or an assignment.
func read(t *testing.T, env *armtest.Env, id string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, armtest.Endpoint+id+"?api-version=2022-04-01", nil)
	if err != nil {
		t.Fatal(err)
	}
	token, _ := env.Server.Token("")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := env.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s", id, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
