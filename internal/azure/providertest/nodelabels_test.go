package providertest

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/model"
)

const vnetReads = "calls Microsoft.Network/virtualNetworks/read"

// bootLabels are the labels that a machine's kubelet is told, of those whose key
// has the prefix, without it.
func (w *world) bootLabels(t *testing.T, claim, prefix string) map[string]string {
	t.Helper()
	for _, m := range w.Server.Machines() {
		if !strings.HasSuffix(m.ID, "/aks-"+claim) {
			continue
		}
		var document struct {
			Kubelet struct {
				Labels map[string]string `json:"kubelet_node_labels"`
			} `json:"kubelet_config"`
		}
		if err := json.Unmarshal([]byte(nodeConfig(t, m.CustomData)), &document); err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for key, value := range document.Kubelet.Labels {
			if short, ok := strings.CutPrefix(key, prefix); ok {
				out[short] = value
			}
		}
		return out
	}
	t.Fatalf("there is no machine of %s", claim)
	return nil
}

func TestNodeLabelsMatchAKSNodes(t *testing.T) {
	// What every node of this cluster carries, whatever is said below.
	common := map[string]string{
		"role": "agent", "cluster": "", "mode": "user", "scalesetpriority": "regular", "priority": "regular", "os-sku": "Ubuntu",
		"os-sku-requested": "Ubuntu", "os-sku-effective": "Ubuntu2404", "localdns-state": "disabled", "sku-cpu": "4", "sku-memory": "16384",
		"kubelet-identity-client-id": kubeletIdentity, "node-image-version": "AKSUbuntu-2404gen2containerd-202606.09.0",
	}
	network := map[string]string{
		"network-subnet": "aks-subnet", "azure-cni-overlay": "true", "podnetwork-type": "overlay", "network-stateless-cni": "true",
		"nodenetwork-vnetguid": "given", "ebpf-dataplane": "cilium",
	}
	without := func(key string) map[string]string {
		out := maps.Clone(network)
		delete(out, key)
		return out
	}
	for name, row := range map[string]struct {
		prepare func(w *world)
		want    map[string]string // besides the common ones
	}{
		"overlay with Cilium":    {func(*world) {}, network},
		"overlay without Cilium": {func(w *world) { w.config.NetworkDataplane = "azure" }, without("ebpf-dataplane")},
		"before Kubernetes 1.34": {func(w *world) { w.class.KubernetesVersion = "1.33.9" }, map[string]string{
			"network-subnet": "aks-subnet", "azure-cni-overlay": "true", "podnetwork-type": "overlay", "nodenetwork-vnetguid": "given",
			"ebpf-dataplane": "cilium", "os-sku-effective": "Ubuntu2204",
		}},
		"node subnet":        {func(w *world) { w.config.NetworkPluginMode = "" }, map[string]string{"ebpf-dataplane": "cilium"}},
		"a DNS cache":        {func(w *world) { w.class.LocalDNS = true }, with(network, "localdns-state", "enabled")},
		"streamed artifacts": {func(w *world) { w.class.ArtifactStreaming = true }, with(network, "artifactstreaming-enabled", "true")},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.stop()
				w.config.VNETGUID = "given"
				row.prepare(w)
				w.start(t)
				if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute)
				want := maps.Clone(common)
				want["cluster"] = w.NodeResourceGroup
				maps.Copy(want, row.want)
				if diff := cmp.Diff(want, w.bootLabels(t, "general-abc12", "kubernetes.azure.com/")); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				if n := w.Server.Stats()[vnetReads]; n != 0 {
					t.Errorf("the virtual network was read %d times though its id is given", n)
				}
			})
		})
	}
}

func with(labels map[string]string, key, value string) map[string]string {
	out := maps.Clone(labels)
	out[key] = value
	return out
}

func TestVNetGUIDReadOnceWhenNotConfigured(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, claim := range []string{"general-aaaaa", "general-bbbbb"} {
			if _, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), onDemand())); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Minute)
		vnet := w.get(t, "Microsoft.Network/virtualNetworks/aks-vnet-"+regexp.MustCompile(`aks-vnet-(\d{8})`).FindStringSubmatch(w.SubnetID)[1])
		for _, claim := range []string{"general-aaaaa", "general-bbbbb"} {
			guid := w.bootLabels(t, claim, "kubernetes.azure.com/")["nodenetwork-vnetguid"]
			if len(guid) != 36 || !strings.Contains(vnet, `"resourceGuid":"`+guid+`"`) {
				t.Errorf("%s carries id %q, want that of %s", claim, guid, vnet)
			}
		}
		if n := w.Server.Stats()[vnetReads]; n != 2 { // one of them this test's
			t.Errorf("the virtual network was read %d times, want once", n-1)
		}
	})
}

func TestVNetGUIDUnreadableStopsLaunchesWithAdvice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fault, err := w.Server.AddFault(refusal("Microsoft.Network/virtualNetworks/read", http.StatusForbidden, "AuthorizationFailed"))
		if err != nil {
			t.Fatal(err)
		}
		const advice = "permit Microsoft.Network/virtualNetworks/read on it, or set VNET_GUID"
		if err := w.provider.ValidateSubnet(t.Context(), w.class); err == nil || !strings.Contains(err.Error(), advice) {
			t.Errorf("the class: %v, want %q", err, advice)
		}
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err == nil || !strings.Contains(err.Error(), advice) {
			t.Errorf("a launch: %v, want %q", err, advice)
		}
		if n := w.Server.Stats()["vm.accepted"]; n != 0 {
			t.Errorf("%d machines were bought", n)
		}
		w.restartAs(t, config.ModeAKSMachines) // which AKS labels itself
		if _, err := w.provider.Launch(t.Context(), w.order("general-aks", onDemand())); err != nil {
			t.Error(err)
		}
		w.restartAs(t, config.ModeVMs)
		if err := w.Server.RemoveFault(fault.ID); err != nil {
			t.Fatal(err)
		}
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand()))
		if err != nil || m.CapacityType != model.OnDemand {
			t.Errorf("once it is permitted: %+v, %v", m, err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}
