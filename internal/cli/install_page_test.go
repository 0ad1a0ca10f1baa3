package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/cli/controllercli"
	"github.com/nodeautoprovision/nap/internal/pages"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// TestDocumentedCommandsMakeTheIdentity: what docs/install.md shows beside nap enable gives
// nap an identity which tokens of its ServiceAccount count for, and all rights that it needs.
func TestDocumentedCommandsMakeTheIdentity(t *testing.T) {
	commands := pages.Of(t, "../..")
	for name, left := range map[string]string{"whole": "", "without its assignment": "az role assignment "} {
		t.Run(name, func(t *testing.T) { makeTheIdentity(t, commands, left) })
	}
}

// makeTheIdentity runs the commands but for those that begin with a text that is not empty.
func makeTheIdentity(t *testing.T, commands []pages.Command, without string) {
	p, principal := healthy(t), ""
	p.configured(func(c *armsim.Config) {
		c.Cluster.Properties = map[string]any{"oidcIssuerProfile": map[string]any{"enabled": true, "issuerURL": "https://issuer.test/"}}
	})
	p.made = func(env *armtest.Env) {
		s := shellOf(t, env)
		s.Root, s.Variables["AZURE_SUBSCRIPTION_ID"] = t.TempDir(), env.SubscriptionID
		for _, c := range commands {
			if without != "" && strings.HasPrefix(c.Text, without) {
				continue
			}
			if args, is := strings.CutPrefix(c.Text, "bin/nap-controller "); is {
				writeRole(t, strings.ReplaceAll(args, "$AZURE_SUBSCRIPTION_ID", env.SubscriptionID), s.Root)
				continue
			}
			if s.Run(c.Text); s.Refused != "" {
				t.Fatalf("%s: %s", &c, s.Refused)
			}
		}
		const show = "az identity show --resource-group $ARM_RESOURCE_GROUP --name nap --query "
		principal = s.Run(show + "principalId --output tsv")
		if client := s.Run(show + "clientId --output tsv"); client == "" || s.Variables["CLIENT_ID"] != client {
			t.Errorf("CLIENT_ID is %q, the identity's %q", s.Variables["CLIENT_ID"], client)
		}
		group, _, _ := strings.Cut(env.Server.ClusterID(), "/providers/")
		credential := group +
			"/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nap/federatedIdentityCredentials/nap"
		status, text := env.Ask(t, "GET", credential, "2024-11-30", nil)
		if !bytes.Contains(text, []byte("system:serviceaccount:nap-system:nap")) || !bytes.Contains(text, []byte("https://issuer.test/")) {
			t.Errorf("%d: the federated credential is %s", status, text)
		}
	}
	p.examine()
	report, text, _ := p.examine("--principal-id", principal)
	role := slices.IndexFunc(report.Results, func(r prerequisites.Result) bool { return r.Name == "role-of-nap" })
	want := prerequisites.OK
	if without != "" {
		want = prerequisites.Failed
	}
	if role < 0 || report.Results[role].Verdict != want {
		t.Errorf("the rights of the identity %s, want %s: %s", principal, want, text)
	}
}

// writeRole runs nap-controller role, whose answer goes into a file of a folder.
func writeRole(t *testing.T, line, dir string) {
	t.Helper()
	args, file, _ := strings.Cut(line, " > ")
	var out, errs bytes.Buffer
	if code := controllercli.Main(t.Context(), strings.Fields(args), "test", command.Streams{Out: &out, Err: &errs}); code != 0 {
		t.Fatalf("nap-controller %s: %s", line, &errs)
	}
	if err := os.WriteFile(filepath.Join(dir, file), out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDocumentedTemplateOfNapDeploys: the command of docs/enable.md, with the issuer that it
// asks for.
func TestDocumentedTemplateOfNapDeploys(t *testing.T) {
	p := healthy(t)
	p.configured(func(c *armsim.Config) {
		c.Cluster.Properties = map[string]any{"oidcIssuerProfile": map[string]any{"enabled": true, "issuerURL": "https://issuer.test/"}}
	})
	p.made = func(env *armtest.Env) {
		s := shellOf(t, env)
		for _, c := range pages.Of(t, "../..") {
			if s.Run(c.Text); s.Refused != "" {
				t.Fatalf("%s: %s", &c, s.Refused)
			}
		}
		const show = "az identity show --resource-group $ARM_RESOURCE_GROUP --name nap-$CLUSTER_NAME --query clientId --output tsv"
		if client := s.Run(show); s.Refused != "" || client == "" {
			t.Errorf("the identity is not there: %s", s.Refused)
		}
	}
	p.examine()
}

// TestDocumentedMaintenanceWindowOpens: the command of docs/upgrades.md makes a window of
// which nap doctor finds that it opens.
func TestDocumentedMaintenanceWindowOpens(t *testing.T) {
	p := healthy(t)
	p.made = func(env *armtest.Env) {
		s := shellOf(t, env)
		for _, c := range pages.Of(t, "../..") {
			if s.Run(c.Text); s.Refused != "" {
				t.Fatalf("%s: %s", &c, s.Refused)
			}
		}
	}
	report, text, _ := p.examine()
	at := slices.IndexFunc(report.Results, func(r prerequisites.Result) bool { return r.Name == "maintenance-windows" })
	if at < 0 || report.Results[at].Verdict != prerequisites.OK || !strings.Contains(report.Results[at].Read, "aksManagedNodeOSUpgradeSchedule") {
		t.Errorf("%s", text)
	}
}
