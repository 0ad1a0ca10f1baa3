package providertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// loaded is the configuration of variables that no cluster can tell, and more.
func loaded(t *testing.T, env *armtest.Env, more ...string) config.Config {
	t.Helper()
	vars := map[string]string{
		"CLUSTER_NAME": env.ClusterName, "AZURE_SUBSCRIPTION_ID": env.SubscriptionID, "ARM_RESOURCE_GROUP": env.ResourceGroup,
	}
	for i := 0; i < len(more); i += 2 {
		vars[more[i]] = more[i+1]
	}
	c, err := config.Load(func(name string) (string, bool) { v, set := vars[name]; return v, set }, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Cloud.Environment = &config.Environment{
		Name: "simulated", ResourceManagerEndpoint: armtest.Endpoint,
		ActiveDirectoryEndpoint: armtest.Endpoint, Document: []byte("{}"), TokenAudience: "https://management.azure.com",
	}
	return c
}

func discovered(t *testing.T, env *armtest.Env, more ...string) (config.Config, error) {
	t.Helper()
	return azure.Discover(t.Context(), loaded(t, env, more...), azure.Deps{Credential: env.Credential, Transport: env.HTTP})
}

func TestDiscoverLearnsFromManagedCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := armtest.New(t)
		c, err := discovered(t, env)
		if err != nil {
			t.Fatal(err)
		}
		if c.Location != env.Region || c.NodeResourceGroup != env.NodeResourceGroup || c.VNETSubnetID != env.SubnetID ||
			c.NetworkPluginMode != config.ModeOverlay || c.NetworkDataplane != "cilium" || c.DNSServiceIP != "10.0.0.10" ||
			!strings.HasPrefix(c.SSHPublicKey, "ssh-ed25519 ") || c.KubeletIdentityClientID == "" || len(c.NodeIdentities) != 1 ||
			!strings.HasSuffix(c.ClusterEndpoint, ".azmk8s.io:443") || c.Cloud.TenantID != env.TenantID {
			t.Errorf("learned %+v", c)
		}
		if _, err := azure.New(t.Context(), c, azure.Deps{Credential: env.Credential, Transport: env.HTTP}); err != nil {
			t.Errorf("nothing can be bought with it: %v", err)
		}
	})
}

func TestDiscoverNodeSubnetClusterOfOwnNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const subnet = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/corp/subnets/nodes"
		env := armtest.New(t, func(c *armsim.Config) {
			c.Cluster.Properties = map[string]any{
				"networkProfile":    map[string]any{"networkPluginMode": nil, "networkDataplane": "azure", "networkPolicy": nil},
				"agentPoolProfiles": []any{map[string]any{"name": "system", "mode": "System", "vnetSubnetID": subnet}},
			}
		})
		c, err := discovered(t, env)
		if err != nil || !c.PodsTakeNodeSubnet() || c.NetworkDataplane == "cilium" || c.VNETSubnetID != subnet {
			t.Errorf("learned %+v, %v", c, err)
		}
		_, err = discovered(t, env, "NETWORK_PLUGIN_MODE", "overlay")
		if err == nil || !strings.Contains(err.Error(), "NETWORK_PLUGIN_MODE is overlay, the cluster says node subnet") {
			t.Errorf("a contradiction: %v", err)
		}
	})
}

func TestDiscoverWithoutPermissionNeedsEveryVariable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := armtest.New(t, principals([]string{"Microsoft.Compute/skus/read"}))
		_, err := discovered(t, env)
		if err == nil || !strings.Contains(err.Error(), "LOCATION: must be set, because nap could not ask the cluster") {
			t.Errorf("got %v", err)
		}
		c, err := discovered(t, env, "LOCATION", env.Region, "AZURE_NODE_RESOURCE_GROUP", env.NodeResourceGroup, "VNET_SUBNET_ID", env.SubnetID,
			"CLUSTER_ENDPOINT", "https://c.test", "SSH_PUBLIC_KEY", "ssh-rsa AAAA", "KUBELET_IDENTITY_CLIENT_ID", "00000000-0000-0000-0000-000000000009",
			"NODE_IDENTITIES", "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes")
		if err != nil || c.Facts.ID != "" {
			t.Errorf("all is said: %v", err)
		}
	})
}

func TestDiscoverUnknownClusterNamesWhatToCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := armtest.New(t)
		_, err := discovered(t, env, "CLUSTER_NAME", "other")
		if err == nil || !strings.Contains(err.Error(), "check CLUSTER_NAME, ARM_RESOURCE_GROUP and AZURE_SUBSCRIPTION_ID") {
			t.Errorf("got %v", err)
		}
	})
}

// change lays properties over the managed cluster, as its owner does.
func (w *world) change(t *testing.T, properties string) {
	t.Helper()
	token, _ := w.Server.Token("owner")
	url := armtest.Endpoint + w.Server.ClusterID() + "?api-version=2026-04-01"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(
		fmt.Sprintf(`{"location": %q, "properties": %s}`, w.Region, properties)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.HTTP.Do(r)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatalf("%v, %v", answer, err)
	}
	answer.Body.Close()
}

// restartKnowing makes the next process one that knows the cluster's resource group.
func (w *world) restartKnowing(t *testing.T) {
	t.Helper()
	w.stop()
	w.config.ResourceGroup = w.ResourceGroup
	w.start(t)
}

func TestPauseNothingBoughtWhileAKSProvisionsNodes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restartKnowing(t)
		w.change(t, `{"nodeProvisioningProfile": {"mode": "Auto"}}`)
		time.Sleep(3 * time.Minute)
		pause := w.provider.Pause()
		if pause == nil || pause.Reason != managedcluster.ReasonAutoprovisioned || !strings.Contains(pause.Message, "--node-provisioning-mode Manual") {
			t.Fatalf("with Auto: %v", pause)
		}
		_, err := w.provider.Launch(t.Context(), w.order("general-a", sizes("Standard_D4s_v5")))
		if !errors.As(err, &pause) {
			t.Errorf("launched: %v", err)
		}
		w.change(t, `{"nodeProvisioningProfile": {"mode": "Manual"}}`)
		time.Sleep(30 * time.Second) // the cluster is read every 20 s while nothing is bought
		if pause := w.provider.Pause(); pause != nil {
			t.Errorf("with Manual: %v", pause)
		}
		if _, err := w.provider.Launch(t.Context(), w.order("general-a", sizes("Standard_D4s_v5"))); err != nil {
			t.Error(err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestPauseWhilePrerequisiteIsNotMet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restartKnowing(t)
		w.change(t, `{"agentPoolProfiles": [{"name": "system", "mode": "System", "enableAutoScaling": true}]}`)
		time.Sleep(3 * time.Minute)
		pause := w.provider.Pause()
		if pause == nil || pause.Reason != managedcluster.ReasonPrerequisite ||
			!strings.Contains(pause.Message, "prerequisite 3 (cluster-autoscaler) of nap doctor") || !strings.Contains(pause.Message, "--disable-cluster-autoscaler") {
			t.Fatalf("with the cluster autoscaler: %v", pause)
		}
		if _, err := w.provider.Launch(t.Context(), w.order("general-a", sizes("Standard_D4s_v5"))); !errors.As(err, &pause) {
			t.Errorf("launched: %v", err)
		}
		w.noLeaks(t)
	})
}

func TestPauseMachinesOutliveStop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restartKnowing(t)
		buy := func() error {
			_, err := w.provider.Launch(t.Context(), w.order("general-a", sizes("Standard_D4s_v5")))
			return err
		}
		if err := buy(); err != nil {
			t.Fatal(err)
		}
		clusters, err := armcontainerservice.NewManagedClustersClient(w.SubscriptionID, w.Credential, w.ClientOptions())
		if err != nil {
			t.Fatal(err)
		}
		stopping, err := clusters.BeginStop(t.Context(), w.ResourceGroup, w.ClusterName, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute) // polling passes no time that counts
		if _, err := stopping.PollUntilDone(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if pause := w.provider.Pause(); pause == nil || pause.Reason != managedcluster.ReasonStopped {
			t.Fatalf("while stopped: %v", pause)
		}
		w.stop()
		w.start(t) // the controller's own node was stopped, too
		starting, err := clusters.BeginStart(t.Context(), w.ResourceGroup, w.ClusterName, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		if _, err := starting.PollUntilDone(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := buy(); err != nil {
			t.Fatal(err)
		}
		if got := w.claimsListed(t); got != "general-a" {
			t.Errorf("machines after the start: %s", got)
		}
		if collected, err := w.provider.CollectMachines(t.Context(), claimed("general-a")); err != nil || len(collected) > 0 {
			t.Errorf("collected %v, %v", collected, err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// runDiscovered runs a provider that is set up as the cluster says, until it is cancelled, and
// returns how it ends.
func (w *world) runDiscovered(t *testing.T) (<-chan error, context.CancelFunc) {
	t.Helper()
	c, err := discovered(t, w.Env)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := azure.New(t.Context(), c, azure.Deps{Credential: w.Credential, Transport: w.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	provider.OnFailed(nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- provider.Run(ctx) }()
	return done, cancel
}

func TestRunEndsWhenClusterIsMadeInAnotherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{Env: armtest.New(t, fewSizes)}
		done, cancel := w.runDiscovered(t)
		defer cancel()
		time.Sleep(5 * time.Minute)
		w.change(t, `{"networkProfile": {"networkPlugin": "azure", "networkDataplane": "azure"}}`)
		time.Sleep(3 * time.Minute)
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "Network") {
				t.Errorf("ended with %v", err)
			}
		default:
			t.Error("machines go on being made for the network that was")
		}
		cancel()
	})
}

// An Azure that is out when a controller starts is asked again until it answers, for the cluster
// and for the sizes; what it refuses is no outage.
func TestStartAsksAgainWhileAzureIsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := armtest.New(t)
		out := func() (ends func()) {
			f, err := env.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Status: http.StatusServiceUnavailable})
			if err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := env.Server.RemoveFault(f.ID); err != nil {
					t.Error(err)
				}
			}
		}
		given, deps := loaded(t, env), azure.Deps{Credential: env.Credential, Transport: env.HTTP}
		ends := out()
		if _, err := azure.Discover(t.Context(), given, deps); !azure.IsOutage(err) {
			t.Fatalf("error %v is no outage", err)
		}
		ends()
		c, err := azure.Discover(t.Context(), given, deps)
		if err != nil {
			t.Fatal(err)
		}
		ends = out()
		asked := 0
		deps.Ask = func(ctx context.Context, by func(context.Context) error) error {
			for {
				if asked++; asked == 3 {
					ends()
				}
				if err := by(ctx); !azure.IsOutage(err) {
					return err
				}
			}
		}
		if _, err := azure.New(t.Context(), c, deps); err != nil || asked != 3 {
			t.Errorf("asked %d times: %v", asked, err)
		}
		given.ClusterName = "another"
		if _, err := azure.Discover(t.Context(), given, deps); err == nil || azure.IsOutage(err) {
			t.Errorf("error %v counts as an outage", err)
		}
	})
}
