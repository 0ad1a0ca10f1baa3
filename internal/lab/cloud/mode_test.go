package cloud

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/armsim/compute"
	provider "github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
)

func TestProvisionModeErrorNamesAllowedValues(t *testing.T) {
	for _, mode := range ProvisionModes() {
		if _, err := Complete(lab.Config{Executable: "nap-controller"}, Options{ProvisionMode: mode}, "nap"); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
	_, err := Complete(lab.Config{}, Options{ProvisionMode: "bootstrappingclient"}, "nap")
	if want := `provision mode "bootstrappingclient": allowed are aksscriptless, aksmachineapi, aksmachineapiheaderbatch`; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A controller's configuration is read from what the lab tells it and from what the
// cluster does, as on AKS.
func TestProvisionModeKeepsExistingMachines(t *testing.T) {
	azure := armtest.New(t)
	tell := func(mode string) config.Config {
		t.Helper()
		variables := New(Options{ProvisionMode: mode}).machineEnvironment(azure.Server)
		variables = append(variables, "CLUSTER_NAME="+azure.ClusterName, "ARM_RESOURCE_GROUP="+azure.ResourceGroup,
			"AZURE_SUBSCRIPTION_ID="+azure.SubscriptionID)
		c, err := config.Load(func(name string) (string, bool) {
			i := slices.IndexFunc(variables, func(v string) bool { return strings.HasPrefix(v, name+"=") })
			if i < 0 {
				return "", false
			}
			return strings.TrimPrefix(variables[i], name+"="), true
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Cloud.Environment = &config.Environment{ResourceManagerEndpoint: armtest.Endpoint, ActiveDirectoryEndpoint: armtest.Endpoint}
		if c, err = provider.Discover(t.Context(), c, provider.Deps{Credential: azure.Credential, Transport: azure.HTTP}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for told, want := range map[string]string{
		config.ModeVMs: config.ModeVMs, config.ModeAKSMachines: config.ModeAKSMachines,
		config.ModeAKSMachinesBatched: config.ModeAKSMachinesBatched, "": config.ModeAKSMachines,
	} {
		if c := tell(told); c.ProvisionMode != want || c.MachinesPool != machinesPool || c.ManageMachines || (c.ModeChoice != "") != (told == "") {
			t.Errorf("mode %q: %s because %q, pool %q, existing machines %v", told, c.ProvisionMode, c.ModeChoice, c.MachinesPool, c.ManageMachines)
		}
	}
	token, _ := azure.Server.Token("")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		armtest.Endpoint+azure.Server.ClusterID()+"/agentPools/"+machinesPool+"/machines/general-abc12?api-version=2026-04-02-preview",
		strings.NewReader(`{"properties": {"hardware": {"vmSize": "Standard_D4s_v5"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := azure.HTTP.Do(r)
	if err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("%v, %v", answer, err)
	}
	answer.Body.Close()
	if c := tell(config.ModeVMs); c.MachinesPool != machinesPool || !c.ManageMachines {
		t.Errorf("a lab with AKS machines that goes on with virtual machines: pool %q, existing machines %v", c.MachinesPool, c.ManageMachines)
	}
}

func TestProvisioningFaultReachesKubelet(t *testing.T) {
	o := &observer{}
	o.cluster.APIServer, o.cluster.SubscriptionID, o.cluster.ResourceGroup, o.cluster.Location = "c.example", "s", "g", "eastus"
	m := armsim.Machine{
		Size: "Standard_D4s_v5", VCPUs: 4, MemoryBytes: 16 << 30, AKS: &armsim.AKSMachine{Pool: machinesPool, Kubernetes: "1.35.1", MaxPods: 30},
	}
	if got := o.kubelet(m).Broken; got != nil {
		t.Errorf("a machine without a fault is %v", got)
	}
	m.Broken = &compute.BrokenBoot{ExitCode: 52, Output: "no such host"}
	if got := o.kubelet(m).Broken; got == nil || got.ExitCode != 52 || got.Reason != "no such host" {
		t.Errorf("a machine with a fault is %v", got)
	}
}
