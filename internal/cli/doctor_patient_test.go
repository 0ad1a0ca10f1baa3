package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/kube/clusterfacts"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// Ids of the simulated subscription.
const (
	testSubscription = "0b1f6471-0000-4000-8000-000000000002"
	ownVNET          = "/subscriptions/" + testSubscription + "/resourceGroups/nap/providers/Microsoft.Network/virtualNetworks/own"
	ownNodes         = ownVNET + "/subnets/nodes"
	ownAPIServer     = ownVNET + "/subnets/apiserver"
	ownGroup         = "/subscriptions/" + testSubscription + "/resourceGroups/nap/providers/Microsoft.Network/networkSecurityGroups/own"
)

// patient is a cluster that the doctor looks at.
type patient struct {
	*testing.T
	azure   func(*armsim.Config)
	put     [][2]string // resources that its owner makes: id and body
	objects []client.Object
	made    func(*armtest.Env) // what else its owner makes, after put
	// version and ahead are what the API server says of itself.
	version string
	ahead   time.Duration
	// denied reports whether the API server refuses an account something, nil for never;
	// noReviews is its error where it does not say.
	denied    func(*authorizationv1.SubjectAccessReviewSpec) bool
	noReviews error
	// access is how the cluster was reached.
	access *rest.Config
}

// healthy is a cluster of which nothing is wrong, in a network that AKS made.
func healthy(t *testing.T) *patient {
	p := &patient{T: t, azure: func(c *armsim.Config) { c.SubscriptionID = testSubscription }, version: "v1.35.1"}
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		p.objects = append(p.objects, d)
	}
	p.objects = append(p.objects, plainPool("default", 100))
	return p
}

func plainPool(name string, cpu int64) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}
	p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: "karpenter.azure.com/sku-family", Operator: corev1.NodeSelectorOpIn, Values: []string{"D"}},
		{Key: "karpenter.sh/capacity-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}}}
	return p
}

// configured changes the configuration of the simulated Azure.
func (p *patient) configured(change func(*armsim.Config)) {
	before := p.azure
	p.azure = func(c *armsim.Config) { before(c); change(c) }
}

// says lays properties over those of the managed cluster, as JSON.
func (p *patient) says(properties string) {
	p.Helper()
	var has map[string]any
	if err := json.Unmarshal([]byte(properties), &has); err != nil {
		p.Fatal(err)
	}
	p.configured(func(c *armsim.Config) {
		if c.Cluster.Properties == nil {
			c.Cluster.Properties = map[string]any{}
		}
		for k, v := range has {
			c.Cluster.Properties[k] = v
		}
	})
}

// inOwnNetwork moves the cluster to a network of its owner's, with an API server subnet;
// rules are security rules of both subnets, as JSON.
func (p *patient) inOwnNetwork(rules ...string) {
	p.says(`{"agentPoolProfiles": [{"name": "system", "mode": "System", "osType": "Linux", "type": "VirtualMachineScaleSets", "vnetSubnetID": "` + ownNodes + `"}],
		"apiServerAccessProfile": {"enableVnetIntegration": true, "subnetId": "` + ownAPIServer + `"}}`)
	p.grant(ownVNET)
	p.put = append(p.put,
		[2]string{ownGroup, `{"location": "eastus", "properties": {"securityRules": [` + strings.Join(rules, ",") + `]}}`},
		[2]string{ownVNET, `{"location": "eastus", "properties": {"addressSpace": {"addressPrefixes": ["172.19.0.0/16"]}}}`},
		[2]string{ownNodes, `{"properties": {"addressPrefix": "172.19.1.0/24", "networkSecurityGroup": {"id": "` + ownGroup + `"}}}`})
	p.apiServerSubnet("172.19.0.0/28", prerequisitesDelegation)
}

const prerequisitesDelegation = "Microsoft.ContainerService/managedClusters"

func (p *patient) apiServerSubnet(prefix, delegation string) {
	body := `{"properties": {"addressPrefix": "` + prefix + `", "networkSecurityGroup": {"id": "` + ownGroup + `"}`
	if delegation != "" {
		body += `, "delegations": [{"name": "d", "properties": {"serviceName": "` + delegation + `"}}]`
	}
	p.put = append(p.put, [2]string{ownAPIServer, body + `}}`})
}

// grant gives the cluster's identity the role on networks at a scope.
func (p *patient) grant(scope string) {
	p.configured(func(c *armsim.Config) {
		c.Account.Assignments = append(c.Account.Assignments, armsim.RoleAssignment{
			PrincipalID: "c0ffee00-0000-4000-8000-000000000005", Scope: scope, Role: "Network Contributor", Actions: []string{"Microsoft.Network/*"}})
	})
}

// rule is a security rule as JSON.
func rule(name string, priority, direction, access, protocol, from, to, ports string) string {
	return `{"name": "` + name + `", "properties": {"priority": ` + priority + `, "direction": "` + direction + `", "access": "` + access +
		`", "protocol": "` + protocol + `", "sourceAddressPrefix": "` + from + `", "destinationAddressPrefix": "` + to +
		`", "sourcePortRange": "*", "destinationPortRange": "` + ports + `"}}`
}

// examine runs nap doctor and returns what it says.
func (p *patient) examine(args ...string) (report doctorReport, text string, code int) {
	p.Helper()
	env := p.admit()
	var out bytes.Buffer
	c := &doctorCommand{azureCluster: newAzureCluster(time.Now), streams: command.Streams{Out: &out, Err: &out}}
	c.lookupEnv = func(string) (string, bool) { return "", false }
	c.connect = func(*config.Config) (azureAccess, error) {
		c.target.RetailPrices = armtest.Endpoint + "/api/retail/prices"
		return azureAccess{env.Credential, env.ClientOptions(), env.HTTP}, nil
	}
	c.cluster = p.readCluster
	cmd := newDoctor(c.streams)
	cmd.ResetFlags()
	c.add(cmd)
	if err := cmd.ParseFlags(append([]string{"-g", env.ResourceGroup, "-n", env.ClusterName, "--subscription", env.SubscriptionID,
		"--principal-id", "owner", "--kubeconfig", kubeconfigOfNothing(p.T), "-o", "json"}, args...)); err != nil {
		p.Fatal(err)
	}
	err := c.run(p.Context())
	var exit *command.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.Fatal(err)
	}
	if exit != nil {
		code = exit.Code
	}
	if c.output == "json" {
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			p.Fatalf("%v: %s", err, &out)
		}
	}
	return report, out.String(), code
}

// admit makes the simulated Azure, with what the owner of the cluster has made there.
func (p *patient) admit() *armtest.Env {
	p.Helper()
	env := armtest.New(p.T, p.azure)
	owner, _ := env.Server.Token("owner")
	for _, resource := range p.put {
		r, err := http.NewRequestWithContext(p.Context(), http.MethodPut, armtest.Endpoint+resource[0]+"?api-version=2025-05-01", strings.NewReader(resource[1]))
		if err != nil {
			p.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+owner)
		r.Header.Set("Content-Type", "application/json")
		answer, err := env.HTTP.Do(r)
		if err != nil {
			p.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode >= http.StatusBadRequest {
			p.Fatalf("PUT %s: %s", resource[0], answer.Status)
		}
	}
	if p.made != nil {
		p.made(env)
	}
	return env
}

// readCluster reads the patient's objects.
func (p *patient) readCluster(ctx context.Context, access *rest.Config, f *prerequisites.Facts) error {
	p.access = access
	judge, err := judgeOf(f.Cluster.Location)
	if err != nil {
		return err
	}
	s, err := clusterfacts.Scheme()
	if err != nil {
		return err
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(p.objects...).WithIndex(&corev1.Secret{}, "type", func(o client.Object) []string {
		return []string{string(o.(*corev1.Secret).Type)}
	}).Build()
	reader := &clusterfacts.Reader{Kube: kube, Judge: judge, Server: func(context.Context) (string, time.Time, error) {
		return p.version, time.Now().Add(p.ahead), nil
	}}
	reader.Rights = rightsBy(func(_ context.Context, of *authorizationv1.SubjectAccessReview) (bool, error) {
		return p.denied == nil || !p.denied(&of.Spec), p.noReviews
	})
	reader.Read(ctx, f)
	return nil
}

// endedCertificate is base64 of a certificate that has ended.
func endedCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
