package armsim_test

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

func TestRoutesAreListedOnceWithVersionsAndProvider(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range armtest.New(t).Server.Routes() {
		row := r.Method + " " + r.Path
		if seen[row] {
			t.Errorf("%s is listed twice", row)
		}
		seen[row] = true
		if r.Provider != "" && len(r.Versions) == 0 {
			t.Errorf("%s takes no API version", row)
		}
	}
	for _, want := range []string{
		"GET /subscriptions/{}", "GET /subscriptions/{}/resourceGroups/{}", "GET /subscriptions/{}/locations",
		"PUT /subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/virtualMachines/{}",
		"GET /subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/virtualMachines",
		"GET /subscriptions/{}/providers/Microsoft.Compute/virtualMachines",
		"GET /subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/virtualMachines/{}/instanceView",
		"GET /subscriptions/{}/providers/Microsoft.Compute/locations/{}/operations/{}",
		"GET /subscriptions/{}/providers/Microsoft.Compute/skus",
		"POST /providers/Microsoft.ResourceGraph/resources",
		"POST /{}/oauth2/v2.0/token", "GET /api/retail/prices",
	} {
		if !seen[want] {
			t.Errorf("%s is not among the %d routes", want, len(seen))
		}
	}
	for row := range seen {
		if strings.Contains(row, "/admin/") {
			t.Errorf("%s belongs to the simulator, not to Azure", row)
		}
	}
}
