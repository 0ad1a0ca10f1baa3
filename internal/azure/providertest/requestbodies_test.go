package providertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// dictation collects what Azure is told to make, by the name at the end of the
// resource's id, and how it is told to delete.
type dictation struct {
	http.RoundTripper
	mu      sync.Mutex
	bodies  map[string]any
	deleted map[string]url.Values
}

func (d *dictation) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.Split(strings.ToLower(r.URL.Path), "/")
	name := strings.Join(path[max(0, len(path)-2):], "/")
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.Method {
	case http.MethodPut:
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(strings.NewReader(string(raw)))
		var body any
		if err := json.Unmarshal(raw, &body); err != nil {
			return nil, err
		}
		d.bodies[name] = body
	case http.MethodDelete:
		d.deleted[name] = r.URL.Query()
	}
	return d.RoundTripper.RoundTrip(r)
}

// dictate buys a machine and returns what Azure was told about it.
func (w *world) dictate(t *testing.T, change func(), requirements ...model.Requirement) (vm, nic any) {
	t.Helper()
	d := &dictation{RoundTripper: w.HTTP.Transport, bodies: map[string]any{}, deleted: map[string]url.Values{}}
	w.stop()
	w.HTTP = &http.Client{Transport: d}
	change()
	w.start(t)
	if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", requirements...)); err != nil {
		t.Fatal(err)
	}
	w.deleteAll(t)
	if query := d.deleted["virtualmachines/aks-general-abc12"]; query.Get("forceDeletion") != "true" {
		t.Errorf("the machine was deleted with %v, want by force", query)
	}
	w.HTTP = &http.Client{Transport: d.RoundTripper}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bodies["virtualmachines/aks-general-abc12"], d.bodies["networkinterfaces/aks-general-abc12"]
}

// part follows a path into a document, over keys and indexes; nil where it ends.
func part(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// wantParts holds parts of a document against what they should be.
func wantParts(t *testing.T, what string, document any, want map[string]any) {
	t.Helper()
	for path, value := range want {
		if diff := cmp.Diff(value, part(document, path)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", what, path, diff)
		}
	}
}

func TestVMRequestMatchesAKSNodes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		identity := "/subscriptions/" + w.SubscriptionID + "/resourceGroups/" +
			w.ResourceGroup + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"
		vm, nic := w.dictate(t, func() {
			w.config.NodeIdentities = []string{identity}
			w.config.AdditionalTags = map[string]string{"team": "all", "cost": "1", "karpenter.azure.com_cluster": "stolen"}
			w.class.Tags = map[string]string{"team": "web", "a/b": "c"}
		}, sizes("Standard_D4s_v5"), onDemand(), zones("eastus-2"))
		group := "/subscriptions/" + w.SubscriptionID + "/resourceGroups/" + w.NodeResourceGroup + "/providers/"
		tags := map[string]any{"team": "web", "cost": "1", "a_b": "c", "karpenter.azure.com_cluster": w.ClusterName,
			"karpenter.sh_nodepool": "general", "compute.aks.billing": "linux"}
		wantParts(t, "machine", vm, map[string]any{
			"location": "eastus", "tags": tags, "zones": []any{"2"},
			"identity": map[string]any{
				"type": "UserAssigned", "userAssignedIdentities": map[string]any{identity: map[string]any{}},
			},
			"properties.hardwareProfile":         map[string]any{"vmSize": "Standard_D4s_v5"},
			"properties.priority":                "Regular",
			"properties.evictionPolicy":          nil,
			"properties.billingProfile":          nil,
			"properties.additionalCapabilities":  nil,
			"properties.securityProfile":         nil,
			"properties.osProfile.computerName":  "aks-general-abc12",
			"properties.osProfile.adminUsername": "azureuser",
			"properties.osProfile.linuxConfiguration": map[string]any{"disablePasswordAuthentication": true,
				"ssh": map[string]any{"publicKeys": []any{map[string]any{"keyData": "ssh-rsa AAAA", "path": "/home/azureuser/.ssh/authorized_keys"}}}},
			"properties.storageProfile.osDisk": map[string]any{
				"name": "aks-general-abc12", "diskSizeGB": 128.0, "createOption": "FromImage", "deleteOption": "Delete",
			},
			"properties.storageProfile.imageReference":      map[string]any{"communityGalleryImageId": w.class.Images[0].ID},
			"properties.storageProfile.diskControllerType":  nil,
			"properties.networkProfile.networkInterfaces.1": nil,
			"properties.networkProfile.networkInterfaces.0": map[string]any{"id": group +
				"Microsoft.Network/networkInterfaces/aks-general-abc12", "properties": map[string]any{"primary": true, "deleteOption": "Delete"}},
			"properties.storageProfile.osDisk.diffDiskSettings": nil,
		})
		pools := group + "Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/"
		wantParts(t, "interface", nic, map[string]any{
			"location": "eastus", "tags": tags,
			"properties.enableAcceleratedNetworking": true, "properties.enableIPForwarding": false, "properties.networkSecurityGroup": nil,
			"properties.ipConfigurations": []any{map[string]any{"name": "ipconfig0", "properties": map[string]any{
				"primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": map[string]any{"id": w.SubnetID},
				"loadBalancerBackendAddressPools": []any{map[string]any{"id": pools + "aksOutboundBackendPool"},
					map[string]any{"id": pools + "kubernetes"}},
			}}},
		})
	})
}

func TestVMRequestSpotMaxPriceAndEvictionPolicy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		vm, _ := w.dictate(t, func() {}, sizes("Standard_D4s_v5"), spot(), zones("0"))
		wantParts(t, "machine", vm, map[string]any{
			"properties.priority": "Spot", "properties.evictionPolicy": "Delete",
			"properties.billingProfile": map[string]any{"maxPrice": -1.0}, "zones": nil,
		})
	})
}

func TestVMRequestUsesEphemeralOSDiskWhereItFits(t *testing.T) {
	for size, row := range map[string]struct {
		gb   int64
		want any // diffDiskSettings
	}{
		"Standard_D4ds_v5":  {100, "CacheDisk"},
		"Standard_D8ads_v5": {200, "CacheDisk"},
		"Standard_D4ds_v6":  {200, "NvmeDisk"},
		"Standard_D4s_v5":   {30, nil},   // has no drive
		"Standard_D2ds_v5":  {2048, nil}, // larger than its drive
	} {
		t.Run(size, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				vm, _ := w.dictate(t, func() { w.class.OSDiskSizeGB = row.gb }, sizes(size), onDemand())
				settings, caching := any(nil), any(nil)
				if row.want != nil {
					settings, caching = map[string]any{"option": "Local", "placement": row.want}, "ReadOnly"
				}
				wantParts(t, size, vm, map[string]any{
					"properties.storageProfile.osDisk.diffDiskSettings": settings, "properties.storageProfile.osDisk.caching": caching,
				})
			})
		})
	}
}

func TestVMRequestUltraSSDOnlyWhenRequired(t *testing.T) {
	need := func(values ...string) model.Requirement {
		return model.Requirement{Key: instancetype.LabelSKUUltraSSD, Operator: model.In, Values: values}
	}
	for name, row := range map[string]struct {
		ask  []model.Requirement
		want any
	}{
		"required":     {[]model.Requirement{need("true")}, map[string]any{"ultraSSDEnabled": true}},
		"not wanted":   {[]model.Requirement{need("false")}, nil},
		"either":       {[]model.Requirement{need("true", "false")}, nil},
		"not said any": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				vm, _ := w.dictate(t, func() {}, append(row.ask, sizes("Standard_D4s_v5"), onDemand())...)
				wantParts(t, name, vm, map[string]any{"properties.additionalCapabilities": row.want})
			})
		})
	}
}

func TestVMRequestReservesPodAddressesOnInterface(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, nic := w.dictate(t, func() {
			w.config.NetworkPlugin, w.config.NetworkPluginMode, w.config.NetworkDataplane = config.PluginAzure, "", ""
			w.class.MaxPods = 12
		}, sizes("Standard_D4s_v5"), onDemand())
		configurations, _ := part(nic, "properties.ipConfigurations").([]any)
		if len(configurations) != 12 {
			t.Fatalf("the interface has %d addresses, want one for each of 12 pods and the machine's own among them", len(configurations))
		}
		for i, c := range configurations {
			wantParts(t, fmt.Sprint("configuration ", i), c, map[string]any{
				"name": fmt.Sprint("ipconfig", i), "properties.primary": i == 0,
				"properties.subnet.id": w.SubnetID, "properties.privateIPAllocationMethod": "Dynamic",
			})
			if pools := part(c, "properties.loadBalancerBackendAddressPools"); (pools != nil) != (i == 0) {
				t.Errorf("configuration %d joins %v; want the machine's own to join the load balancer, and no pod's", i, pools)
			}
		}
	})
}

func TestVMRequestCustomVNetSetsSecurityGroup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ownNetwork(t)
		w.config.DiskEncryptionSetID = ""
		_, nic := w.dictate(t, func() {}, sizes("Standard_D4s_v5"), onDemand())
		id, _ := part(nic, "properties.networkSecurityGroup.id").(string)
		if !strings.Contains(id, "/networkSecurityGroups/aks-agentpool-") || !strings.HasSuffix(id, "-nsg") {
			t.Errorf("the interface has security group %q, want that of the agent pools", id)
		}
		wantParts(t, "interface", nic, map[string]any{"properties.ipConfigurations.0.properties.subnet.id": w.config.VNETSubnetID})
	})
}
