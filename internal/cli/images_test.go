package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/mask"
)

// images runs nap images on the tenth of September 2026, on a cluster of the simulated Azure.
func images(t *testing.T, change func(*armsim.Config), args ...string) (string, error) {
	t.Helper()
	env := armtest.New(t, func(c *armsim.Config) { c.SubscriptionID = testSubscription }, change)
	var out bytes.Buffer
	c := &imagesCommand{streams: command.Streams{Out: &out, Err: &out}, azureCluster: azureCluster{
		now:       func() time.Time { return time.Date(2026, 9, 10, 12, 0, 0, 0, time.UTC) },
		lookupEnv: func(string) (string, bool) { return "", false },
		connect: func(*config.Config) (azureAccess, error) {
			return azureAccess{env.Credential, env.ClientOptions(), env.HTTP}, nil
		},
	}}
	cmd := &cobra.Command{}
	c.add(cmd)
	if err := cmd.ParseFlags(append([]string{"-g", env.ResourceGroup, "-n", env.ClusterName, "--subscription", testSubscription}, args...)); err != nil {
		t.Fatal(err)
	}
	err := c.run(t.Context())
	return out.String(), err
}

func TestImagesAreListedWithAgeAndEnd(t *testing.T) {
	got, err := images(t, func(*armsim.Config) {})
	if err != nil {
		t.Fatal(err)
	}
	const want = `Node images of Ubuntu (Ubuntu2404) in eastus for Kubernetes 1.35.1

VERSION        PUBLISHED     AGE  ENDS
202606.09.0    2026-06-09    93d  2027-06-09  newest, out of support
202606.02.0    2026-06-02   100d  2027-06-02  out of support
202605.12.0    2026-05-12   121d  2027-05-12  out of support

To pin a class:
  kubectl patch aksnodeclass NAME --type merge \
    -p '{"spec":{"imageVersion":"202606.09.0"}}'
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestImagesOfReleasesThatTheClusterNeeds(t *testing.T) {
	got, err := images(t, func(c *armsim.Config) {
		c.Cluster.KubernetesVersion, c.ImageVersions = "1.31.5", []string{"202609.01.0", "202608.20.0"}
	}, "--image-family", "AzureLinux", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var r imagesReport
	if err := json.Unmarshal([]byte(got), &r); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if r.Release != "AzureLinux2" || len(r.Versions) != 2 || r.Versions[0].Version != "202609.01.0" || !r.Versions[0].Newest ||
		!r.Versions[0].Supported || r.Versions[0].AgeDays != 9 || r.Versions[1].Newest || len(r.Versions[0].Images) != 3 {
		t.Errorf("%+v", r)
	}
}

func TestImagesSayWhatIsWrong(t *testing.T) {
	for want, c := range map[string]struct {
		change func(*armsim.Config)
		args   []string
	}{
		"allowed: Ubuntu":  {func(*armsim.Config) {}, []string{"--image-family", "Windows2022"}},
		"ResourceNotFound": {func(*armsim.Config) {}, []string{"-n", "other"}},
		`--subscription: got "foo", must be a UUID such as`: {func(*armsim.Config) {}, []string{"--subscription", "foo"}},
		"no such node image": {func(c *armsim.Config) { c.ImageVersions = []string{} }, nil},
	} {
		if out, err := images(t, c.change, c.args...); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %q\n%s", c.args, err, want, out)
		}
	}
}

// silentAzure gives no token, and an answer of HTTP instead, as Azure's library shows it.
type silentAzure struct{}

func (silentAzure) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	line := "\n" + strings.Repeat("-", 80) + "\n"
	return azcore.AccessToken{}, errors.New("ClientSecretCredential authentication failed. \nPOST https://login.example/token" + line + "RESPONSE 401: Unauthorized" +
		line + "{\n  \"error\": \"invalid_client\",\n  \"error_description\": \"AADSTS7000215: Invalid client\"\n}" + line + "To troubleshoot, visit https://aka.ms/x")
}

func TestErrorsOfSigningInAreOneLine(t *testing.T) {
	_, err := signIn{silentAzure{}}.GetToken(t.Context(), policy.TokenRequestOptions{})
	const want = "sign in first, with az login or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET of a service principal: " +
		"ClientSecretCredential authentication failed. POST https://login.example/token RESPONSE 401: Unauthorized " +
		`{ "error": "invalid_client", "error_description": "AADSTS7000215: Invalid client" } To troubleshoot, visit https://aka.ms/x`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if told := mask.Text(want); told != want {
		t.Errorf("masked, it is %s", told)
	}
}

// What is not known to be old is not called so.
func TestImagesOfUnknownAgeAreNotOutOfSupport(t *testing.T) {
	now := time.Date(2026, 9, 10, 12, 0, 0, 0, time.UTC)
	for want, p := range map[bool][]image.Published{
		true:  {{}, {At: now.Add(-image.SupportedFor)}, {Ends: now.Add(time.Hour)}},
		false: {{At: now.Add(-image.SupportedFor - time.Hour)}, {Ends: now}},
	} {
		for i := range p {
			if got := imagesVersionOf(&p[i], now); got.Supported != want {
				t.Errorf("published %v, ends %v: supported is %v", p[i].At, p[i].Ends, got.Supported)
			}
		}
	}
}
