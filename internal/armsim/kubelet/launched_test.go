package kubelet

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// hatch hands booted machines to the kubelets, as the lab does; those of an agent pool
// boot from what AKS makes of what it was told.
type hatch struct {
	t        *testing.T
	kubelets *Kubelets
	cluster  bootdata.AKSNode
}

func (h hatch) Booted(m armsim.Machine) {
	zone := strings.TrimPrefix(m.Zone, "0")
	k := Machine{
		ID: m.ID, ComputerName: m.ComputerName, Size: m.Size, VCPUs: int64(m.VCPUs), MemoryBytes: m.MemoryBytes, Arch: m.Arch,
		MaxDataDisks: 4, OSDiskGB: int64(m.OSDiskGB), Region: m.Region, Zone: zone, PrivateIP: m.PrivateIP, CustomData: string(m.CustomData),
	}
	if a := m.AKS; a != nil {
		n := h.cluster
		n.Pool, n.Mode, n.Labels, n.Taints, n.MaxPods, n.Version = a.Pool, a.Mode, a.Labels, a.Taints, a.MaxPods, a.Kubernetes
		n.VCPUs, n.MemoryBytes = k.VCPUs, k.MemoryBytes
		data, err := n.CustomData()
		if err != nil {
			h.t.Error(err)
		}
		k.CustomData = string(data)
	}
	h.kubelets.Booted(k)
}

func (h hatch) EvictionNotice(string, time.Time) {}
func (h hatch) Gone(id string)                   { h.kubelets.Gone(id) }

func TestMachineJoinsByBootDataOfRealLauncher(t *testing.T) {
	good, other := newAuthority(t), newAuthority(t)
	const token = "abcdef.0123456789abcdef"
	for name, c := range map[string]struct {
		mode string
		// change spoils the launcher's configuration, order what it is asked for.
		change func(*config.Config)
		order  func(*azure.Order)
		reason string            // why there is no node, empty when there is one
		labels map[string]string // that the node has, in part
		taints string            // that the node has, all of them
	}{
		"a virtual machine": {mode: config.ModeVMs, labels: map[string]string{"team": "blue", "kubernetes.azure.com/mode": "user"},
			taints: "karpenter.sh/unregistered:NoExecute gpu=yes:NoSchedule"},
		"a virtual machine with the wrong token": {mode: config.ModeVMs, reason: "invalid bearer token",
			change: func(c *config.Config) { c.BootstrapToken = jointoken.New("000000.0000000000000000") }},
		"a virtual machine with the wrong authority": {mode: config.ModeVMs, reason: "certificate signed by unknown authority",
			change: func(c *config.Config) { c.ClusterCA = other.pem }},
		"a virtual machine with other labels and taints": {mode: config.ModeVMs,
			labels: map[string]string{"team": "red"}, taints: "karpenter.sh/unregistered:NoExecute",
			order: func(o *azure.Order) { o.Labels, o.Taints = map[string]string{"team": "red"}, nil }},
		"an AKS machine": {mode: config.ModeAKSMachines,
			labels: map[string]string{"team": "blue", "kubernetes.azure.com/mode": "user", "agentpool": "machines"},
			taints: "karpenter.sh/unregistered:NoExecute gpu=yes:NoSchedule"},
		"an AKS machine, in a batch": {mode: config.ModeAKSMachinesBatched, labels: map[string]string{"team": "blue"},
			taints: "karpenter.sh/unregistered:NoExecute gpu=yes:NoSchedule"},
		"an AKS machine does not need nap's token": {mode: config.ModeAKSMachines, labels: map[string]string{"team": "blue"},
			taints: "karpenter.sh/unregistered:NoExecute gpu=yes:NoSchedule",
			change: func(c *config.Config) { c.BootstrapToken, c.ClusterCA = jointoken.Token{}, nil }},
		"an AKS machine with a label that is none": {mode: config.ModeAKSMachines, reason: "--node-labels",
			order: func(o *azure.Order) { o.Labels = map[string]string{"team": "blue and red"} }},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			g := &gate{t: t, ca: good, token: token, client: client}
			address := g.start()
			env := armtest.New(t)
			f := runKubelets(t, client, Config{Logger: slog.New(slog.DiscardHandler), Network: reaching(address)})
			env.Server.Observe(hatch{t, f,
				bootdata.AKSNode{APIServer: apiServer, CA: good.pem, Token: token, SubscriptionID: env.SubscriptionID,
					ResourceGroup: env.NodeResourceGroup, Location: env.Region}})
			config := config.Config{
				ClusterName: env.ClusterName, ClusterEndpoint: "https://" + apiServer + ":443", ClusterCA: good.pem,
				BootstrapToken: jointoken.New(token), KubeletIdentityClientID: "0b1f6471-0000-4000-8000-0000000000ce", SSHPublicKey: "ssh-rsa AAAA", AdminUsername: "azureuser",
				SubscriptionID: env.SubscriptionID, Location: env.Region, ResourceGroup: env.ResourceGroup,
				NodeResourceGroup: env.NodeResourceGroup, VNETSubnetID: env.SubnetID,
				NetworkPlugin: "azure", NetworkPluginMode: "overlay", DNSServiceIP: "10.0.0.10", ProvisionMode: c.mode, MachinesPool: "machines",
				Batching: config.Batching{Size: 1},
				Cloud: config.Cloud{TenantID: env.TenantID, Environment: &config.Environment{
					Name: "simulated", ResourceManagerEndpoint: armtest.Endpoint, ActiveDirectoryEndpoint: armtest.Endpoint, Document: []byte("{}"),
				}},
			}
			if c.change != nil {
				c.change(&config)
			}
			provider, err := azure.New(t.Context(), config, azure.Deps{Credential: env.Credential, Transport: env.HTTP})
			if err != nil {
				t.Fatal(err)
			}
			class := &nodeclass.NodeClass{Name: "default", OSDiskSizeGB: 128, ImageFamily: "Ubuntu", KubernetesVersion: "1.35.1"}
			if class.Images, err = provider.ResolveImages(t.Context(), class, class.KubernetesVersion); err != nil {
				t.Fatal(err)
			}
			order := azure.Order{
				Claim: "general-abc12", Pool: "general", Class: class, Requests: model.Resources{1000, 1 << 30, 0, 1},
				Labels: map[string]string{"team": "blue"}, Taints: []model.Taint{{Key: "gpu", Value: "yes", Effect: model.NoSchedule}},
			}
			if c.order != nil {
				c.order(&order)
			}
			m, err := provider.Launch(t.Context(), order)
			if err != nil {
				t.Fatal(err)
			}
			if c.reason != "" {
				eventually(t, "the reason "+c.reason, func() bool {
					booted := env.Server.Machines()
					if len(booted) == 0 {
						return false
					}
					s, _ := f.Status(booted[0].ID)
					return strings.Contains(s.Reason, c.reason)
				})
				nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				if err != nil || len(nodes.Items) != 0 {
					t.Errorf("%d nodes, %v, want none", len(nodes.Items), err)
				}
				return
			}
			var node *corev1.Node
			eventually(t, "the node is there", func() bool {
				nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				if err == nil && len(nodes.Items) == 1 {
					node = &nodes.Items[0]
				}
				return node != nil
			})
			if node.Spec.ProviderID != m.ProviderID {
				t.Errorf("the node's provider id is %s, the launcher's %s", node.Spec.ProviderID, m.ProviderID)
			}
			for key, want := range c.labels {
				if node.Labels[key] != want {
					t.Errorf("label %s=%q, want %q", key, node.Labels[key], want)
				}
			}
			var taints []string
			for _, taint := range node.Spec.Taints {
				if taint.Key != cloudTaint.Key {
					taints = append(taints, taint.ToString())
				}
			}
			if got := strings.Join(taints, " "); got != c.taints {
				t.Errorf("taints %q, want %q", got, c.taints)
			}
		})
	}
}
