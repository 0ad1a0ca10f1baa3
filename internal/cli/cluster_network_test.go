package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest/azcli"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest/template"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/pages"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// shellOf runs commands in the simulated Azure.
func shellOf(t *testing.T, env *armtest.Env) *azcli.Shell {
	return &azcli.Shell{TB: t, Env: env, Root: "../..", Variables: map[string]string{
		"ARM_RESOURCE_GROUP": env.ResourceGroup, "CLUSTER_NAME": env.ClusterName, "SSH_PUBLIC_KEY": "ssh-ed25519 AAAA people"}}
}

// withoutCluster is a healthy patient whose Azure has no cluster until one is made.
func withoutCluster(t *testing.T) *patient {
	p := healthy(t)
	p.configured(func(c *armsim.Config) { c.Cluster.Absent, c.ResourceGroups = true, []string{"net"} })
	return p
}

// expectHealthy has the doctor find nothing.
func (p *patient) expectHealthy(t *testing.T) {
	t.Helper()
	report, _, code := p.examine()
	for _, r := range report.Results {
		if r.Verdict != prerequisites.OK {
			t.Errorf("%d %s: %s: %s", r.Number, r.Name, r.Verdict, r.Finding)
		}
	}
	if code != 0 || len(report.Results) != len(prerequisites.Table()) {
		t.Errorf("exit code %d, %d results", code, len(report.Results))
	}
}

// TestDocumentedCommandsMakeHealthyClusters: what docs/networking.md shows makes a network
// of one's own with a cluster in it of which nap doctor finds nothing, by commands and by
// the template.
func TestDocumentedCommandsMakeHealthyClusters(t *testing.T) {
	sections := map[string][]string{}
	for _, c := range pages.Of(t, "../..") {
		sections[c.Section] = append(sections[c.Section], c.Text)
	}
	if len(sections) != 2 {
		t.Errorf("%d sections show how to make a network: %v", len(sections), sections)
	}
	for section, commands := range sections {
		t.Run(section, func(t *testing.T) {
			p := withoutCluster(t)
			p.made = func(env *armtest.Env) {
				s := shellOf(t, env)
				for _, command := range commands {
					if s.Run(command); s.Refused != "" {
						t.Fatalf("%s: %s", command, s.Refused)
					}
				}
			}
			p.expectHealthy(t)
		})
	}
}

// The template takes a network that exists, in another resource group, with and without
// a subnet of the API server.
func TestClusterTemplateTakesNetworkThatExists(t *testing.T) {
	text, err := os.ReadFile("../../deploy/cluster.json")
	if err != nil {
		t.Fatal(err)
	}
	const vnet = "/subscriptions/" + testSubscription + "/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/corp"
	for name, apiServer := range map[string]string{"with API server": vnet + "/subnets/api", "without": ""} {
		t.Run(name, func(t *testing.T) {
			p := withoutCluster(t)
			p.put = append(p.put, [2]string{vnet, `{"location": "eastus", "properties": {"addressSpace": {"addressPrefixes": ["172.19.0.0/16"]}, "subnets": [
				{"name": "nodes", "properties": {"addressPrefix": "172.19.1.0/24"}},
				{"name": "api", "properties": {"addressPrefix": "172.19.0.0/28", "delegations": [{"name": "d", "properties": {"serviceName": "` + prerequisitesDelegation + `"}}]}}]}}`})
			p.made = func(env *armtest.Env) {
				d := template.Deployment{TB: t, Env: env, Scope: "/subscriptions/" + env.SubscriptionID + "/resourceGroups/" + env.ResourceGroup}
				out := d.Deploy(text, map[string]any{"clusterName": env.ClusterName, "sshPublicKey": "ssh-ed25519 AAAA people",
					"nodeSubnetId": vnet + "/subnets/nodes", "apiServerSubnetId": apiServer})
				if out["nodeSubnetId"] != vnet+"/subnets/nodes" || !strings.HasPrefix(out["oidcIssuer"].(string), "https://") {
					t.Errorf("outputs %v", out)
				}
				if env.Server.Exists(strings.Replace(vnet, "/net/providers/Microsoft.Network/virtualNetworks/corp",
					"/"+env.ResourceGroup+"/providers/Microsoft.Network/virtualNetworks/"+env.ClusterName+"-vnet", 1)) {
					t.Error("another network was made")
				}
			}
			p.expectHealthy(t)
		})
	}
}

// TestDocumentedCommandsSwitchTheModeOfAKS: by the command line and by the template, mode
// Manual is refused while a NodePool may buy, and taken when none may.
func TestDocumentedCommandsSwitchTheModeOfAKS(t *testing.T) {
	for _, c := range pages.Of(t, "../..") {
		command := c.Text
		t.Run(strings.Join(strings.Fields(command)[:3], " "), func(t *testing.T) {
			p, open := withoutCluster(t), []string{"default"}
			p.configured(func(c *armsim.Config) { c.Cluster.OpenNodePools = func() []string { return open } })
			p.made = func(env *armtest.Env) {
				s := shellOf(t, env)
				s.Run(`az deployment group create --resource-group $ARM_RESOURCE_GROUP --template-file deploy/cluster.json ` +
					`--parameters clusterName=$CLUSTER_NAME sshPublicKey=k nodeProvisioningMode=Auto`)
				if s.Run(command); !strings.Contains(s.Refused, "OperationNotAllowed") || !strings.Contains(s.Refused, ".spec.limits.cpu set to 0: default") {
					t.Errorf("while NodePool default may buy: %q", s.Refused)
				}
				const mode = "az aks show --resource-group $ARM_RESOURCE_GROUP --name $CLUSTER_NAME --query nodeProvisioningProfile.mode --output tsv"
				if got := s.Run(mode); got != "Auto" {
					t.Errorf("the mode is %s", got)
				}
				open = nil
				if s.Run(command); s.Refused != "" || s.Run(mode) != "Manual" {
					t.Errorf("when none may: %q", s.Refused)
				}
			}
			p.expectHealthy(t)
		})
	}
}

// TestDocumentedCommandsLeaveTheClusterAutoscaler: the NodePools that are written buy what
// the agent pool had, and the doctor, which finds the autoscaler before, finds nothing after.
func TestDocumentedCommandsLeaveTheClusterAutoscaler(t *testing.T) {
	before, after := healthy(t), healthy(t)
	const pool = "/subscriptions/" + testSubscription + "/resourceGroups/nap/providers/Microsoft.ContainerService/managedClusters/nap/agentPools/apps"
	for _, p := range []*patient{before, after} {
		p.put = append(p.put, [2]string{pool, `{"properties": {"mode": "User", "vmSize": "Standard_D8s_v5", "osType": "Linux",
			"count": 3, "enableAutoScaling": true, "minCount": 1, "maxCount": 10}}`})
	}
	report, _, code := before.examine()
	if r := report.Results[2]; code != exitFailed || r.Name != "cluster-autoscaler" || !strings.Contains(r.Finding, "agent pool apps") {
		t.Errorf("before: exit code %d, %+v", code, r)
	}
	after.configured(func(c *armsim.Config) { c.TimeScale = 1e6 }) // AKS takes 20 s to make a pool
	after.made = func(env *armtest.Env) {
		s := shellOf(t, env)
		for s.Run("az aks nodepool show --resource-group $ARM_RESOURCE_GROUP --cluster-name $CLUSTER_NAME --name apps "+
			"--query provisioningState --output tsv") != "Succeeded" {
			time.Sleep(time.Millisecond)
		}
		for _, c := range pages.Of(t, "../..") {
			az, into, piped := strings.Cut(c.Text, " | nap ")
			answer := s.Run(az)
			if s.Refused != "" {
				t.Fatalf("%s: %s", az, s.Refused)
			}
			if !piped {
				continue
			}
			args, _, _ := strings.Cut(into, " >")
			var out, said bytes.Buffer
			if code := Main(t.Context(), strings.Fields(args), "test", command.Streams{In: strings.NewReader(answer), Out: &out, Err: &said}); code != 0 {
				t.Fatalf("nap %s: exit code %d: %s", args, code, &said)
			}
			if text := out.String(); !strings.Contains(text, "kind: NodePool") || !strings.Contains(text, "name: apps") || !strings.Contains(text, `cpu: "80"`) {
				t.Errorf("nap %s:\n%s%s", args, text, &said)
			}
		}
	}
	after.expectHealthy(t)
}
