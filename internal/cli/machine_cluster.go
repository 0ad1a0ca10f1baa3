package cli

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand" //nolint:depguard // the sequence of numbers that AKS uses for its names
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/kube/serverversion"
)

// clusterFlags say which cluster a machine would be of.
type clusterFlags struct {
	file   string
	live   command.Cluster
	caFile string
}

func (f *clusterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "cluster", "", "the cluster: a file with what az aks show -o json prints")
	f.live.Add(flags)
	flags.Lookup("context").Usage = "the cluster, or with --cluster its CA, by this context of the kubeconfig"
	flags.StringVar(&f.caFile, "ca-file", "", "the cluster's CA certificate, a PEM file")
}

// describedCluster is a cluster as far as it is known.
type describedCluster struct {
	config        config.Config
	securityGroup string
	// placeholders are the fields of the node's configuration whose values are made up,
	// each with what would tell the true one.
	placeholders map[string]string
}

// Values that stand for what is not known. They are of the form of what they stand for.
const (
	noGUID    = "00000000-0000-0000-0000-000000000000"
	noVersion = "1.34.0"
	noRegion  = offline.DefaultRegion
	noKey     = "ssh-rsa AAAA placeholder"
)

// read finds out about the cluster, and puts placeholders where nothing says.
func (f *clusterFlags) read(ctx context.Context) (*describedCluster, error) {
	out := &describedCluster{placeholders: map[string]string{}}
	facts, err := f.facts(ctx)
	if err != nil {
		return nil, err
	}
	ca, err := f.ca(ctx)
	if err != nil {
		return nil, err
	}
	subnet := out.complete(&facts)
	if ca == nil {
		out.placeholders["kubernetes_ca_cert"] = "give --ca-file, or --context"
		ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("placeholder: give --ca-file or --context")})
	}
	known := config.Config{
		ClusterName: cmp.Or(facts.Name, "placeholder"), SubscriptionID: facts.Subscription, ResourceGroup: facts.ResourceGroup,
		BootstrapToken: jointoken.New(jointoken.Mask), SSHPublicKey: noKey, VNETGUID: noGUID, VMMemoryOverhead: offline.MemoryOverhead,
		ProvisionMode: config.ModeVMs, ClusterCA: ca,
	}
	if out.config, err = known.Learn(&facts, subnet); err != nil {
		return nil, fmt.Errorf("the cluster: %w", err)
	}
	out.config.DNSServiceIP = cmp.Or(out.config.DNSServiceIP, config.DefaultDNSServiceIP)
	return out, nil
}

// facts are what the file or the context tells; none where neither is given.
func (f *clusterFlags) facts(ctx context.Context) (managedcluster.Facts, error) {
	switch {
	case f.file != "":
		text, err := os.ReadFile(f.file)
		if err != nil {
			return managedcluster.Facts{}, fmt.Errorf("--cluster %s: %w: give the path of a file, as az aks show -o json prints it",
				f.file, plainPath(err))
		}
		facts, err := managedcluster.Parse(text)
		if err != nil {
			return facts, fmt.Errorf("--cluster: %s: %w", f.file, err)
		}
		return facts, nil
	case f.live.Chosen():
		access, err := f.live.Config(ctx)
		if err != nil {
			return managedcluster.Facts{}, err
		}
		return liveFacts(ctx, access)
	}
	return managedcluster.Facts{}, nil
}

// ca is the cluster's CA certificate; nil where nothing says.
func (f *clusterFlags) ca(ctx context.Context) ([]byte, error) {
	if f.caFile != "" {
		text, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file %s: %w: give the path of a certificate in PEM", f.caFile, plainPath(err))
		}
		if block, _ := pem.Decode(text); block == nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("--ca-file: %s holds no certificate in PEM", f.caFile)
		}
		return text, nil
	}
	if !f.live.Chosen() {
		return nil, nil
	}
	access, err := f.live.Config(ctx)
	if err != nil {
		return nil, err
	}
	if err := rest.LoadTLSFiles(access); err != nil {
		return nil, fmt.Errorf("read the CA of the kubeconfig: %w", err)
	}
	if len(access.CAData) == 0 {
		return nil, errors.New("the kubeconfig's cluster has no CA certificate: give it with --ca-file")
	}
	return access.CAData, nil
}

// complete fills in what the cluster does not tell, and gives the id of the subnet that
// AKS would have made for it. Names that AKS derives are derived as AKS does.
func (d *describedCluster) complete(f *managedcluster.Facts) (subnet string) {
	const tells = "give --cluster FILE, with what az aks show -o json prints"
	fill := func(into *string, placeholder, field string) {
		if *into == "" {
			*into = placeholder
			d.placeholders[field] = tells
		}
	}
	f.FQDN = cmp.Or(f.FQDN, f.PrivateFQDN)
	fill(&f.FQDN, "placeholder-dns-00000000.hcp."+cmp.Or(f.Location, noRegion)+".azmk8s.io", "api_server_config.api_server_name")
	fill(&f.TenantID, noGUID, "auth_config.tenant_id")
	fill(&f.Subscription, noGUID, "auth_config.subscription_id")
	if f.ServicePrincipal == "" { // else it is refused: such clusters have no identity
		fill(&f.Kubelet.ClientID, noGUID, "auth_config.assigned_identity_id")
		f.Kubelet.ResourceID = cmp.Or(f.Kubelet.ResourceID, "placeholder")
	}
	fill(&f.Location, noRegion, "cluster_config.location")
	fill(&f.NodeResourceGroup, "MC_placeholder", "cluster_config.resource_group")
	fill(&f.State.KubernetesVersion, noVersion, "kubernetes_version")
	if f.Network.Plugin == "" {
		f.Network.Plugin, f.Network.Mode, f.Network.Dataplane = config.PluginAzure, config.ModeOverlay, "cilium"
		d.placeholders["network_config"] = tells
	}
	f.ID = cmp.Or(f.ID, "placeholder")
	id := clusterID(f.FQDN)
	d.securityGroup = "aks-agentpool-" + id + "-nsg"
	return fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Network/virtualNetworks/aks-vnet-%s/subnets/aks-subnet",
		f.Subscription, f.NodeResourceGroup, id)
}

// clusterID is the number that AKS puts into the names of a cluster's network: it
// follows from the DNS prefix, which is the first label of the API server's name
// without the eight digits at its end (Azure/AgentBaker, pkg/agent/datamodel,
// GetClusterID).
func clusterID(fqdn string) string {
	const digits, suffix = 8, len("-00000000")
	prefix, _, _ := strings.Cut(fqdn, ".")
	if len(prefix) > suffix && prefix[len(prefix)-suffix] == '-' {
		prefix = prefix[:len(prefix)-suffix]
	}
	h := fnv.New64a()
	h.Write([]byte(prefix))
	random := rand.New(rand.NewSource(int64(h.Sum64()))) //nolint:gosec // a name, and AKS's own arithmetic
	return fmt.Sprintf("%0*d", digits, random.Uint32())[:digits]
}

// liveFacts are what a cluster tells of itself to those who may read its nodes.
func liveFacts(ctx context.Context, access *rest.Config) (managedcluster.Facts, error) {
	var f managedcluster.Facts
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return f, fmt.Errorf("connect to the cluster: %w", err)
	}
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		return f, fmt.Errorf("read the version of the cluster at %s: %w", access.Host, err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 100})
	if err != nil {
		return f, fmt.Errorf("read the nodes of the cluster at %s: %w", access.Host, err)
	}
	f = factsOfNodes(nodes.Items)
	f.State.KubernetesVersion = serverversion.Of(server)
	if u, err := url.Parse(access.Host); err == nil {
		f.FQDN = u.Hostname()
	}
	if dns, err := client.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, "kube-dns", metav1.GetOptions{}); err == nil {
		f.Network.DNSServiceIP = dns.Spec.ClusterIP
	}
	return f, nil
}

// factsOfNodes reads what AKS writes on its nodes.
func factsOfNodes(nodes []corev1.Node) managedcluster.Facts {
	const aks = "kubernetes.azure.com/"
	f := managedcluster.Facts{Network: managedcluster.Network{Plugin: config.PluginAzure}}
	for i := range nodes {
		label := func(key string) string { return nodes[i].Labels[key] }
		f.Location = cmp.Or(f.Location, label(corev1.LabelTopologyRegion))
		f.Kubelet.ClientID = cmp.Or(f.Kubelet.ClientID, label(aks+"kubelet-identity-client-id"))
		f.Network.Dataplane = cmp.Or(f.Network.Dataplane, label(aks+"ebpf-dataplane"))
		if label(aks+"azure-cni-overlay") == "true" {
			f.Network.Mode = config.ModeOverlay
		}
		// azure:///subscriptions/ID/resourceGroups/GROUP/providers/...
		parts := strings.Split(strings.TrimPrefix(nodes[i].Spec.ProviderID, "azure:///"), "/")
		if len(parts) > 3 && parts[0] == "subscriptions" {
			f.Subscription, f.NodeResourceGroup = cmp.Or(f.Subscription, parts[1]), cmp.Or(f.NodeResourceGroup, parts[3])
		}
	}
	return f
}
