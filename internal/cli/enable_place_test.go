package cli

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/setup"
)

// testImage is the image that tests enable.
const testImage = "--image=registry.example/nap:v1"

// runningNap is a Deployment in namespace other, which signs in as its ServiceAccount nap.
const runningNap = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nap, namespace: other}
spec: {template: {spec: {serviceAccountName: nap}}}
---
`

// definitionOf is the definition of NodePools, which a release has made for a namespace.
func definitionOf(namespace string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: nodepools.karpenter.sh
  labels: {app.kubernetes.io/managed-by: Helm}
  annotations: {meta.helm.sh/release-name: nap-crd, meta.helm.sh/release-namespace: ` + namespace + `}
---
`
}

// plan is what nap enable makes in Azure for nap in a namespace.
func (c *candidate) plan(namespace string) *setup.Plan {
	c.Helper()
	clusters, err := armcontainerservice.NewManagedClustersClient(c.env.SubscriptionID, c.env.Credential, c.env.ClientOptions())
	if err != nil {
		c.Fatal(err)
	}
	facts, err := managedcluster.Read(c.Context(), clusters, c.env.ResourceGroup, c.env.ClusterName)
	if err != nil {
		c.Fatal(err)
	}
	p, err := setup.New(setup.Target{Cluster: facts, Namespace: namespace, ServiceAccount: "nap"}, c.env.Credential, c.env.ClientOptions())
	if err != nil {
		c.Fatal(err)
	}
	return p
}

// trust makes identity and roles of the nap of a namespace.
func (c *candidate) trust(namespace string) {
	c.Helper()
	p := c.plan(namespace)
	for _, step := range p.Steps() {
		if err := step.Make(c.Context()); err != nil {
			c.Fatal(err)
		}
	}
}

// subject is the ServiceAccount that nap's identity trusts.
func (c *candidate) subject() string {
	c.Helper()
	subject, err := c.plan("any").TrustedSubject(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	return subject
}

// TestEnableLeavesTheNapOfAnotherNamespaceAlone: its identity stays its own, whichever tells
// where it is.
func TestEnableLeavesTheNapOfAnotherNamespaceAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		objects, trusted, says string
	}{
		"its Deployment signs in": {runningNap, "other", "nap is in namespace other already, and --namespace is nap-system; nothing was made. Run this again with --namespace other"},
		"it has the definitions":  {definitionOf("other"), "", "belongs to release nap-crd in namespace other. Nothing was written to the cluster"},
		"it has no definitions":   {definitionOf("other"), "", "Or install it where it was before: --namespace other"},
	} {
		c := ready(t)
		c.objects = tt.objects
		c.start()
		if tt.trusted != "" {
			c.trust(tt.trusted)
		}
		before, subject := c.writes(), c.subject()
		for _, more := range [][]string{nil, {"--dry-run"}} {
			text, code := c.enable(append(more, testImage)...)
			if code != exitFirst || !strings.Contains(text, tt.says) {
				t.Errorf("%s: exit code %d, it does not say %q:\n%s", name, code, tt.says, text)
			}
		}
		if c.writes() != before || c.subject() != subject {
			t.Errorf("%s: %d writes in Azure, the identity trusts %q", name, c.writes()-before, c.subject())
		}
	}
}

// TestEnableTakesTheIdentityOfANapThatIsGone: a credential that names a namespace without a nap
// keeps none out.
func TestEnableTakesTheIdentityOfANapThatIsGone(t *testing.T) {
	c := ready(t)
	c.start()
	c.trust("other")
	if text, _ := c.enable(testImage, "--timeout=0s"); c.subject() != "system:serviceaccount:nap-system:nap" {
		t.Errorf("the identity trusts %q:\n%s", c.subject(), text)
	}
}

// TestUndoLeavesTheNapOfAnotherNamespaceAlone: it names the namespace, and removes nothing; with
// that namespace it removes all.
func TestUndoLeavesTheNapOfAnotherNamespaceAlone(t *testing.T) {
	c := ready(t)
	c.start()
	if text, code := c.enable(testImage, "--namespace=other", "--timeout=0s"); code != exitNotReady {
		t.Fatalf("exit code %d:\n%s", code, text)
	}
	before := c.writes()
	for _, more := range [][]string{{}, {"--dry-run"}, {"--namespace=third"}} {
		text, code := c.enable(append(more, "--undo")...)
		if code != exitFirst || !strings.Contains(text, "nap is in namespace other, and --namespace is ") ||
			!strings.Contains(text, "nothing was removed. Run this again with --namespace other") {
			t.Errorf("%v: exit code %d:\n%s", more, code, text)
		}
	}
	if c.writes() != before || c.subject() == "" {
		t.Errorf("%d writes in Azure, the identity trusts %q", c.writes()-before, c.subject())
	}
	text, code := c.enable("--undo", "--namespace=other")
	if code != 0 || !strings.Contains(text, "release nap: removed") || !strings.Contains(text, "identity nap-nap: removed") ||
		strings.Contains(text, "there is none") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}

// TestUndoWithoutAReleaseSaysSo: and removes what is left in Azure.
func TestUndoWithoutAReleaseSaysSo(t *testing.T) {
	c := ready(t)
	c.start()
	c.trust("other")
	text, code := c.enable("--undo")
	if code != 0 || !strings.Contains(text, "release nap: there is none in any namespace") || !strings.Contains(text, "identity nap-nap: removed") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}
