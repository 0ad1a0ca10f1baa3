package providertest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/maintenance"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/setup"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
	"github.com/nodeautoprovision/nap/internal/prerequisites/azurefacts"
)

// ownNetwork makes a network of the user's own with a subnet, and keys for disks,
// as their owner does.
func (w *world) ownNetwork(t *testing.T) {
	t.Helper()
	token, _ := w.Server.Token("owner")
	group := "/subscriptions/" + w.SubscriptionID + "/resourceGroups/" + w.NodeResourceGroup + "/providers/"
	vnet, keys := group+"Microsoft.Network/virtualNetworks/own", group+"Microsoft.Compute/diskEncryptionSets/keys"
	for _, put := range [][2]string{
		{keys, `{"location": "eastus", "properties": {}}`},
		{vnet, `{"location": "eastus", "properties": {"addressSpace": {"addressPrefixes": ["10.230.0.0/16"]}}}`},
		{vnet + "/subnets/nodes", `{"properties": {"addressPrefix": "10.230.0.0/24"}}`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
			armtest.Endpoint+put[0]+"?api-version="+apiVersion(strings.TrimPrefix(put[0], group)), strings.NewReader(put[1]))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := w.HTTP.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode >= 300 {
			t.Fatalf("PUT %s: %s", put[0], answer.Status)
		}
	}
	w.config.VNETSubnetID, w.config.DiskEncryptionSetID = vnet+"/subnets/nodes", keys
}

// wholeLife does everything that nap does in Azure, for machines of both kinds,
// and ends at the first thing that is not permitted.
func (w *world) wholeLife(t *testing.T) {
	t.Helper()
	w.ownNetwork(t)
	w.stop()
	// Azure's public cloud has the billing extension.
	w.config.PlacementScores = true
	w.config.NodeIdentities = []string{"/subscriptions/" + w.SubscriptionID + "/resourceGroups/" +
		w.NodeResourceGroup + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"}
	w.config.Cloud.Environment, w.config.Cloud.Name, w.config.ResourceGroup = nil, config.CloudPublic, w.ResourceGroup
	w.start(t)
	buy := func(claim string) func() error {
		return func() error {
			_, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), zones("eastus-1")))
			return err
		}
	}
	collect := func() error {
		_, err := w.provider.CollectNICs(t.Context(), noClaims)
		return err
	}
	steps := []func() error{
		w.readFeatures(t),
		func() error { _, err := w.provider.MaintenanceWindow(t.Context(), maintenance.NodeImages); return err },
		func() error { return w.provider.ValidateSubnet(t.Context(), w.class) },
		func() error { return w.provider.ValidateDiskEncryption(t.Context()) },
		buy("general-vm"),
		func() error { time.Sleep(time.Minute); return nil }, // the extensions
		func() error { // how a boot goes on that an earlier process began
			w.provider.Boots().Joined("general-vm")
			if _, err := w.provider.Boots().Console(t.Context(), "general-vm", ""); err != nil {
				return err
			}
			_, err := w.provider.Boots().Failure(t.Context(), "general-vm", "")
			return err
		},
		func() error { // why a machine failed
			fault, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultFail, Code: "OSProvisioningTimedOut"})
			if err != nil {
				return err
			}
			_ = buy("general-late")()
			return w.Server.RemoveFault(fault.ID)
		},
		func() error {
			class := *w.class
			class.Tags = map[string]string{"team": "web"}
			return w.provider.Update(t.Context(), "general-vm", &class)
		},
		func() error { return w.provider.Boots().Restart(t.Context(), "general-vm") },
		func() error { // a refused machine leaves an interface that is deleted
			fault, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Size: "Standard_D4s_v5"})
			if err != nil {
				return err
			}
			_ = buy("general-none")()
			return w.Server.RemoveFault(fault.ID)
		},
		func() error {
			w.useSharedGalleries(t)
			images, err := w.provider.ResolveImages(t.Context(), w.class, w.class.KubernetesVersion)
			w.class.Images = images
			return err
		},
		buy("general-shared"),
		func() error { w.restartAs(t, config.ModeAKSMachines); time.Sleep(6 * time.Minute); return nil },
		buy("general-aks"),
		collect,
		func() error {
			_, err := w.provider.CollectMachines(t.Context(), func(context.Context) (map[string]bool, error) { return nil, nil })
			return err
		},
		func() error { return w.provider.Delete(t.Context(), "general-aks", "") },
	}
	for _, step := range steps {
		if err := step(); err != nil && w.denials() == 0 {
			t.Fatal(err)
		}
		if w.denials() > 0 {
			return
		}
	}
	w.deleteAll(t)
}

// readFeatures reads the preview features as the controller's look at the prerequisites does.
func (w *world) readFeatures(t *testing.T) func() error {
	t.Helper()
	reader, err := azurefacts.New(azurefacts.Target{
		Subscription: w.SubscriptionID, ResourceGroup: w.ResourceGroup, Name: w.ClusterName, Class: w.class,
		NoRetailPrices: true, Leave: prerequisites.LeftToDoctor(),
	}, w.Credential, w.ClientOptions(), w.HTTP, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		facts, err := reader.Read(t.Context())
		if err == nil && facts.Unread[prerequisites.SourceFeatures] != "" {
			err = errors.New(facts.Unread[prerequisites.SourceFeatures])
		}
		return err
	}
}

// unchecked are the actions that this test cannot take away: those without which
// no world of these tests begins, see below; and what Azure itself checks and the
// simulated Azure does not, about the disk that goes with its machine.
func unchecked() []string {
	return append([]string{"Microsoft.Compute/disks/delete"}, atTheStart()...)
}

// atTheStart are the actions without which there is nothing to buy.
func atTheStart() []string {
	return []string{
		"Microsoft.Compute/skus/read", "Microsoft.Compute/locations/communityGalleries/images/versions/read",
		"Microsoft.ContainerService/locations/nodeImageVersions/read",
	}
}

func TestRoleErrorNamesMissingAction(t *testing.T) {
	for _, action := range atTheStart() {
		synctest.Test(t, func(t *testing.T) {
			others := slices.DeleteFunc(config.Actions(), func(a string) bool { return a == action })
			env := armtest.New(t, principals(others))
			config := config.Config{
				ClusterName: env.ClusterName, SubscriptionID: env.SubscriptionID, Location: env.Region, NodeResourceGroup: env.NodeResourceGroup,
				VNETSubnetID: env.SubnetID, Cloud: config.Cloud{Environment: &config.Environment{
					ResourceManagerEndpoint: armtest.Endpoint, ActiveDirectoryEndpoint: armtest.Endpoint, Document: []byte("{}"),
				}},
			}
			if strings.Contains(action, "nodeImageVersions") {
				config.SIGSubscriptionID = galleries
			}
			provider, err := azure.New(t.Context(), config, azure.Deps{Credential: env.Credential, Transport: env.HTTP})
			if err == nil {
				_, err = provider.ResolveImages(t.Context(), &nodeclass.NodeClass{ImageFamily: "Ubuntu"}, "1.35.1")
			}
			if err == nil || !strings.Contains(err.Error(), "AuthorizationFailed") || !strings.Contains(err.Error(), action) {
				t.Errorf("without %s: %v", action, err)
			}
		})
	}
}

func principals(actions []string) func(*armsim.Config) {
	return func(c *armsim.Config) {
		c.Principals = []armsim.Principal{{ClientID: "nap", Actions: actions}, {ClientID: "owner"}}
	}
}

func TestRoleIsSufficient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.wholeLife(t)
		if n := w.denials(); n != 0 {
			t.Errorf("%d requests were not permitted", n)
		}
		w.noLeaks(t)
	}, principals(config.Actions()))
}

func TestRoleHasNoUnusedAction(t *testing.T) {
	for _, action := range config.Actions() {
		if slices.Contains(unchecked(), action) {
			continue
		}
		t.Run(strings.ReplaceAll(strings.TrimPrefix(action, "Microsoft."), "/", " "), func(t *testing.T) {
			others := slices.DeleteFunc(config.Actions(), func(a string) bool { return a == action })
			inWorld(t, func(t *testing.T, w *world) {
				w.wholeLife(t)
				if w.denials() == 0 {
					t.Errorf("everything goes on without %s", action)
				}
			}, principals(others))
		})
	}
}

// enabled is a principal with what nap enable gives nap's identity, each role at its scope,
// and on the galleries of USE_SIG what their owner gives it.
func enabled(t *testing.T) func(*armsim.Config) {
	t.Helper()
	env := armtest.New(t)
	target := setup.Target{Cluster: managedcluster.Facts{
		Subscription: env.SubscriptionID, ResourceGroup: env.ResourceGroup, Name: env.ClusterName, NodeResourceGroup: env.NodeResourceGroup,
	}}
	grants := []arm.Grant{{Scope: "/subscriptions/" + galleries, Actions: []string{"Microsoft.Compute/galleries/images/versions/read"}}}
	for _, a := range target.Assignments() {
		grants = append(grants, arm.Grant{Scope: a.Scope, Actions: a.Role.Actions})
	}
	return func(c *armsim.Config) {
		c.Principals = []armsim.Principal{{ClientID: "nap", Grants: &grants}, {ClientID: "owner"}}
	}
}

// TestRolesOfEnableAreSufficient: what nap enable gives is enough at the scopes at which it
// gives it. That no action of it is too much is TestRoleHasNoUnusedAction.
func TestRolesOfEnableAreSufficient(t *testing.T) {
	given := enabled(t)
	inWorld(t, func(t *testing.T, w *world) {
		w.wholeLife(t)
		if n := w.denials(); n != 0 {
			t.Errorf("%d requests were not permitted", n)
		}
		w.noLeaks(t)
	}, given)
}

// TestRolesOfEnableHoldEveryActionOnce: the two roles together are the actions that are
// tested here, and no action is in both.
func TestRolesOfEnableHoldEveryActionOnce(t *testing.T) {
	machines, catalogue := (&setup.Target{}).Roles()
	all := slices.Concat(machines.Actions, catalogue.Actions)
	want := config.Actions()
	slices.Sort(all)
	if slices.Sort(want); !slices.Equal(all, want) {
		t.Errorf("the roles permit\n%q, want\n%q", all, want)
	}
}
