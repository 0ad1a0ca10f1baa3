package vm

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

func certificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func bootSpec() launch.NodeSpec {
	policy, high := "static", int32(85)
	return launch.NodeSpec{
		Claim: "general-abc12", JoinToken: "abcdef.0123456789abcdef",
		SKU: &instancetype.SKU{Name: "Standard_D4s_v5", VCPUs: 4, MemoryGiB: 16}, MaxPods: 250,
		Class: &nodeclass.NodeClass{
			KubernetesVersion: "1.35.1", Kubelet: nodeclass.Kubelet{CPUManagerPolicy: policy, ImageGCHighThresholdPercent: &high},
		},
		Labels: map[string]string{
			"node.kubernetes.io/instance-type": "Standard_D4s_v5", "topology.kubernetes.io/zone": "eastus-1", "karpenter.sh/nodepool": "general",
			"kubernetes.azure.com/mode": "user", "team": "it's",
			"node-restriction.kubernetes.io/secret": "x", "node-role.kubernetes.io/worker": "", "autoscaling.k8s.io/x": "y",
		},
		Taints: []model.Taint{{Key: "nvidia.com/gpu", Value: "true", Effect: model.NoSchedule}, {Key: "boot", Effect: model.NoExecute}},
	}
}

func TestBootDataStartsKubelet(t *testing.T) {
	config := &config.Config{
		ClusterEndpoint: "https://cluster.test:443", ClusterCA: certificate(t),
		SubscriptionID: "s", NodeResourceGroup: "MC_Group", NetworkPlugin: "azure", NetworkPluginMode: "overlay", DNSServiceIP: "10.0.0.10",
	}
	spec := bootSpec()
	spec.Labels["team"] = "blue"
	got, err := bootdata.Parse(BootData(config, spec))
	if err != nil {
		t.Fatal(err)
	}
	if got.Server != "https://cluster.test:443" || got.Token != "abcdef.0123456789abcdef" ||
		got.Version != "v1.35.1" || got.GPUDriver || string(got.CA) != string(config.ClusterCA) {
		t.Errorf("boot data %+v", got)
	}
	wantLabels := map[string]string{
		"node.kubernetes.io/instance-type": "Standard_D4s_v5", "topology.kubernetes.io/zone": "eastus-1",
		"karpenter.sh/nodepool": "general", "kubernetes.azure.com/mode": "user", "team": "blue",
	}
	if diff := cmp.Diff(wantLabels, got.Labels); diff != "" {
		t.Errorf("labels without those that the API server forbids a kubelet (-want +got):\n%s", diff)
	}
	var taints []string
	for _, taint := range got.Flags.Taints {
		taints = append(taints, taint.ToString())
	}
	if diff := cmp.Diff([]string{"karpenter.sh/unregistered:NoExecute",
		"nvidia.com/gpu=true:NoSchedule", "boot:NoExecute"}, taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	f := got.Flags
	if f.MaxPods != 250 || f.KubeReserved.Cpu().String() != "140m" ||
		f.KubeReserved.Memory().String() != "2662Mi" || f.EvictionMemory.Bytes != 750<<20 || !f.ExternalCloud {
		t.Errorf("flags %+v", f)
	}
	if want := "azure:///subscriptions/s/resourceGroups/mc_group/providers/Microsoft.Compute/virtualMachines/aks-general-abc12"; f.ProviderID != want {
		t.Errorf("provider id %s, want %s", f.ProviderID, want)
	}
	for _, flag := range []string{"--cpu-manager-policy=static", "--image-gc-high-threshold=85"} {
		if !strings.Contains(BootData(config, spec), flag) {
			t.Errorf("the class's setting %s is missing", flag)
		}
	}
}

func TestTrap8BootDataHasPlannedEvictionThresholds(t *testing.T) {
	config := &config.Config{
		ClusterEndpoint: "https://cluster.test:443", ClusterCA: certificate(t),
	}
	spec := bootSpec()
	spec.Labels = nil
	got, err := bootdata.Parse(BootData(config, spec))
	if err != nil || got.Flags.EvictionDisk.Fraction != 0.1 || got.Flags.EvictionMemory.Bytes != 750<<20 {
		t.Errorf("%+v, %v", got.Flags, err)
	}
}

func TestBootDataQuotesLabels(t *testing.T) {
	script := BootData(&config.Config{}, bootSpec())
	if !strings.Contains(script, `team=it'\''s`) {
		t.Errorf("the quote in a label is not escaped:\n%s", script)
	}
}

func TestBootDataGPUDriverInstall(t *testing.T) {
	for _, own := range []bool{false, true} {
		spec := bootSpec()
		spec.SKU = &instancetype.SKU{Name: "Standard_NC6s_v3", VCPUs: 6, MemoryGiB: 112, GPUs: 1}
		spec.Class.NoGPUDriver = own
		script := BootData(&config.Config{}, spec)
		want := "CONFIG_GPU_DRIVER_IF_NEEDED='true'"
		if own {
			want = "CONFIG_GPU_DRIVER_IF_NEEDED='false'"
		}
		if !strings.Contains(script, "GPU_NODE='true'") || !strings.Contains(script, want) {
			t.Errorf("class with a driver of its own: %v, script:\n%s", own, script)
		}
	}
}
