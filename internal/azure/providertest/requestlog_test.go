package providertest

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// With the setting, each request of a machine's life is a line with its method, address
// and status, and none holds a secret: not the token that signs requests, not the one
// that the machine joins with, nor its boot data. Without it there is no such line.
func TestRequestsAreLoggedWithoutSecretsWhenAsked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var out bytes.Buffer
		live := func(logged bool) string {
			t.Helper()
			w.stop()
			out.Reset()
			w.log, w.config.LogRequests = &out, logged
			w.start(t)
			if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
				t.Fatal(err)
			}
			w.deleteAll(t)
			w.stop()
			defer w.start(t)
			return out.String()
		}
		if text := live(false); strings.Contains(text, "Azure answered") {
			t.Errorf("requests are logged that nobody asked for: %s", text)
		}
		text := live(true)
		lines := strings.Split(text, "\n")
		for what, parts := range map[string][]string{
			"the machine that is made":    {"method=PUT", "virtualMachines/aks-general-abc12?api-version=", "status=201", "requestID="},
			"the machine that is deleted": {"method=DELETE", "virtualMachines/aks-general-abc12?api-version=", "status=202"},
			"the sizes that are read":     {"method=GET", "Microsoft.Compute/skus?", "filter=REDACTED", "status=200"},
			"the prices that are read":    {"method=GET", "/api/retail/prices?", "status=200"},
		} {
			if !hasLine(lines, parts) {
				t.Errorf("%s is not logged: no line has all of %q", what, parts)
			}
		}
		signed, err := w.Credential.GetToken(t.Context(), policy.TokenRequestOptions{})
		if err != nil {
			t.Fatal(err)
		}
		join := w.config.BootstrapToken.Reveal()
		for _, secret := range []string{signed.Token, "Bearer ", join, base64.StdEncoding.EncodeToString([]byte(join)), "customData"} {
			if strings.Contains(text, secret) {
				t.Errorf("the log shows %q", secret)
			}
		}
	})
}

// hasLine reports whether one line has all the parts.
func hasLine(lines, parts []string) bool {
	for _, line := range lines {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(line, part)
		}
		if found {
			return true
		}
	}
	return false
}
