package prerequisites

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// TestResultsHaveNoSecrets: neither of what was read, nor of why it could not be.
func TestResultsHaveNoSecrets(t *testing.T) {
	proxies := []string{
		"http://me:sword@fish@proxy:3128", "me:sword/fish@proxy:3128", "swordfish@proxy:3128", "HTTPS://me:sword fish@proxy:3128",
		"me:sword:fi#sh?@proxy:3128", "http://me:%zzswordfish@proxy:3128", "http://a:sword@p1:1,http://b:fish@p2:2",
	}
	for _, proxy := range proxies {
		f := WithoutAzure(time.Now(), `Get "https://y": invalid proxy address "`+proxy+`"`)
		for _, row := range Table() {
			for _, source := range row.needs {
				f.Unread[source] = f.Unread[SourceNetwork]
			}
		}
		for _, source := range []Source{SourceCluster, SourceNetwork, SourceSecurity} {
			delete(f.Unread, source)
		}
		f.Cluster, f.Network = &managedcluster.Facts{Proxy: managedcluster.Proxy{HTTP: proxy, HTTPS: proxy}}, &Network{}
		shownProxy := 0
		for _, r := range Check(f) {
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"sword", "fish", "fi#"} {
				if strings.Contains(string(text), secret) {
					t.Errorf("%s of proxy %s has the secret: %s", r.Name, proxy, text)
				}
			}
			if strings.Contains(string(text), "***@p") {
				shownProxy++
			}
		}
		if shownProxy < 3 {
			t.Errorf("the proxy %s is in %d results", proxy, shownProxy)
		}
	}
}
