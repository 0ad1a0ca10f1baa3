package providertest

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
)

func TestTrap9BootDataInNationalCloud(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.config.Cloud = config.Cloud{Name: config.CloudUSGov, TenantID: w.config.Cloud.TenantID}
		w.config.ClusterEndpoint = "https://nap.hcp.usgovvirginia.cx.aks.containerservice.azure.us:443"
		hosts := map[string]bool{}
		var mu sync.Mutex
		plain := w.HTTP.Transport
		w.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			hosts[r.URL.Host] = true
			mu.Unlock()
			return plain.RoundTrip(r)
		})}
		w.start(t)
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		data := nodeConfig(t, w.Server.Machines()[0].CustomData)
		for _, foreign := range []string{"AzurePublicCloud", "azureedge.net",
			"windows.net", "management.azure.com", "CNI_"} {
			if strings.Contains(data, foreign) {
				t.Errorf("the boot data contain %s:\n%s", foreign, data)
			}
		}
		for _, own := range []string{`"api_server_name":"nap.hcp.usgovvirginia.cx.aks.containerservice.azure.us"`,
			`"location":"` + w.Region + `"`, `"kubernetes_version":"1.35.1"`} {
			if !strings.Contains(data, own) {
				t.Errorf("the boot data lack %s:\n%s", own, data)
			}
		}
		if len(hosts) != 1 || !hosts["management.usgovcloudapi.net"] {
			t.Errorf("asked were %v, want the cloud's own Resource Manager alone", hosts)
		}
		if it := w.sold("Standard_D4s_v5"); it == nil || it.Offerings[0].Price == 0 {
			t.Errorf("without retail prices the size is %+v, want it at the price of the embedded table", it)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// nodeConfig is the configuration in a machine's custom data, as the node reads it.
func nodeConfig(t *testing.T, customData []byte) string {
	t.Helper()
	text, err := bootdata.Document(customData)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMachineWithoutBootDataIsNotBought(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.config.BootstrapToken = jointoken.New("no token")
		w.start(t)
		_, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
		if err == nil || !strings.Contains(err.Error(), "NodeClaim general-abc12") ||
			!strings.Contains(err.Error(), "bootstrapping_config.tls_bootstrapping_token") {
			t.Errorf("launch: %v", err)
		}
		w.noLeaks(t)
	})
}
