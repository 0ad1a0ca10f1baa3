package managedcluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
)

// resource is a managed cluster as Azure Resource Manager answers it. Names of
// fields are compared without case, because the command line writes some of them in
// another one (vnetSubnetId for vnetSubnetID).
type resource struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Location string `json:"location"`
	Identity struct {
		Type         string `json:"type"`
		TenantID     string `json:"tenantId"`
		PrincipalID  string `json:"principalId"`
		UserAssigned map[string]struct {
			PrincipalID string `json:"principalId"`
		} `json:"userAssignedIdentities"`
	} `json:"identity"`
	Properties *properties `json:"properties"`
}

// properties are those of a managed cluster that count here.
type properties struct {
	ProvisioningState        string                `json:"provisioningState"`
	PowerState               struct{ Code string } `json:"powerState"`
	KubernetesVersion        string                `json:"kubernetesVersion"`
	CurrentKubernetesVersion string                `json:"currentKubernetesVersion"`
	FQDN                     string                `json:"fqdn"`
	PrivateFQDN              string                `json:"privateFQDN"`
	NodeResourceGroup        string                `json:"nodeResourceGroup"`

	NetworkProfile          networkProfile      `json:"networkProfile"`
	IdentityProfile         map[string]identity `json:"identityProfile"`
	ServicePrincipalProfile struct {
		ClientID string `json:"clientId"`
	} `json:"servicePrincipalProfile"`
	LinuxProfile            linuxProfile       `json:"linuxProfile"`
	AgentPoolProfiles       []agentPoolProfile `json:"agentPoolProfiles"`
	NodeProvisioningProfile struct {
		Mode             string `json:"mode"`
		DefaultNodePools string `json:"defaultNodePools"`
	} `json:"nodeProvisioningProfile"`
	AutoUpgradeProfile struct {
		UpgradeChannel       string `json:"upgradeChannel"`
		NodeOSUpgradeChannel string `json:"nodeOSUpgradeChannel"`
	} `json:"autoUpgradeProfile"`
	HTTPProxyConfig httpProxyConfig `json:"httpProxyConfig"`
	SecurityProfile struct {
		CustomCATrustCertificates []string `json:"customCATrustCertificates"`
		WorkloadIdentity          struct {
			Enabled bool `json:"enabled"`
		} `json:"workloadIdentity"`
	} `json:"securityProfile"`
	OIDCIssuerProfile struct {
		IssuerURL string `json:"issuerURL"`
	} `json:"oidcIssuerProfile"`
	APIServerAccessProfile struct {
		EnablePrivateCluster bool   `json:"enablePrivateCluster"`
		SubnetID             string `json:"subnetId"`
	} `json:"apiServerAccessProfile"`
	BootstrapProfile struct {
		ArtifactSource      string `json:"artifactSource"`
		ContainerRegistryID string `json:"containerRegistryId"`
	} `json:"bootstrapProfile"`
}

type networkProfile struct {
	NetworkPlugin     string   `json:"networkPlugin"`
	NetworkPluginMode string   `json:"networkPluginMode"`
	NetworkDataplane  string   `json:"networkDataplane"`
	NetworkPolicy     string   `json:"networkPolicy"`
	DNSServiceIP      string   `json:"dnsServiceIP"`
	OutboundType      string   `json:"outboundType"`
	PodLinkLocal      string   `json:"podLinkLocalAccess"` // API versions in preview alone
	LoadBalancerSKU   string   `json:"loadBalancerSku"`
	IPFamilies        []string `json:"ipFamilies"`
	PodCIDRs          []string `json:"podCidrs"`
	ServiceCIDRs      []string `json:"serviceCidrs"`
}

type identity struct {
	ResourceID string `json:"resourceId"`
	ClientID   string `json:"clientId"`
	ObjectID   string `json:"objectId"`
}

type linuxProfile struct {
	AdminUsername string `json:"adminUsername"`
	SSH           struct {
		PublicKeys []struct {
			KeyData string `json:"keyData"`
		} `json:"publicKeys"`
	} `json:"ssh"`
}

type agentPoolProfile struct {
	Name         string `json:"name"`
	Mode         string `json:"mode"`
	Type         string `json:"type"`
	State        string `json:"provisioningState"`
	VnetSubnetID string `json:"vnetSubnetID"`
	PodSubnetID  string `json:"podSubnetID"`
	PodIPs       string `json:"podIPAllocationMode"`
	OSType       string `json:"osType"`
	AutoScaling  bool   `json:"enableAutoScaling"`

	SecurityProfile struct {
		SSHAccess string `json:"sshAccess"`
	} `json:"securityProfile"`
}

type httpProxyConfig struct {
	Enabled    *bool    `json:"enabled"`
	HTTPProxy  string   `json:"httpProxy"`
	HTTPSProxy string   `json:"httpsProxy"`
	NoProxy    []string `json:"noProxy"`
	// EffectiveNoProxy is what AKS makes of NoProxy: its own destinations with it. Some
	// API versions alone tell it.
	EffectiveNoProxy []string `json:"effectiveNoProxy"`
	TrustedCA        string   `json:"trustedCa"`
}

// ErrNotCluster is the error of a text that describes no managed cluster.
var ErrNotCluster = errors.New("this describes no AKS cluster")

// Parse reads a managed cluster: the resource as Azure Resource Manager answers it,
// or what "az aks show -o json" prints, in which the properties stand at the top.
// Fields that it does not know are left alone. The error wraps ErrNotCluster.
func Parse(text []byte) (Facts, error) {
	var r resource
	if err := decode(text, &r); err != nil {
		return Facts{}, err
	}
	if r.Properties == nil {
		r.Properties = &properties{}
		if err := decode(text, r.Properties); err != nil {
			return Facts{}, err
		}
	}
	id, err := arm.ParseResourceID(r.ID)
	if err != nil || !strings.EqualFold(id.ResourceType.String(), "Microsoft.ContainerService/managedClusters") {
		return Facts{}, fmt.Errorf("%w: its id %q is not that of a Microsoft.ContainerService/managedClusters; "+
			`give what "az aks show -o json" prints`, ErrNotCluster, r.ID)
	}
	f := r.Properties.facts()
	f.ID, f.Subscription, f.ResourceGroup, f.Name = r.ID, id.SubscriptionID, id.ResourceGroupName, id.Name
	f.TenantID = r.Identity.TenantID
	f.Owner.Type = r.Identity.Type
	if id := r.Identity.PrincipalID; id != "" {
		f.Owner.PrincipalIDs = append(f.Owner.PrincipalIDs, id)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Identity.UserAssigned)) {
		f.Owner.PrincipalIDs = append(f.Owner.PrincipalIDs, r.Identity.UserAssigned[id].PrincipalID)
	}
	f.Location = strings.ToLower(strings.ReplaceAll(r.Location, " ", ""))
	return f, nil
}

// decode reads one JSON value and nothing after it.
func decode(text []byte, into any) error {
	if err := json.Unmarshal(bytes.TrimSpace(text), into); err != nil {
		return fmt.Errorf("%w: %w", ErrNotCluster, err)
	}
	return nil
}

// managedIdentity is the client id of the service principal of clusters that sign in
// with a managed identity.
const managedIdentity = "msi"

func (p *properties) facts() Facts {
	n := &p.NetworkProfile
	kubelet := p.IdentityProfile["kubeletidentity"]
	if strings.EqualFold(n.NetworkPluginMode, "none") { // as much as not set
		n.NetworkPluginMode = ""
	}
	f := Facts{
		NodeResourceGroup: p.NodeResourceGroup,
		FQDN:              p.FQDN, PrivateFQDN: p.PrivateFQDN, Private: p.APIServerAccessProfile.EnablePrivateCluster,
		Network: Network{
			Plugin: n.NetworkPlugin, Mode: n.NetworkPluginMode, Dataplane: n.NetworkDataplane, Policy: n.NetworkPolicy,
			DNSServiceIP: n.DNSServiceIP, OutboundType: n.OutboundType, LoadBalancerSKU: strings.ToLower(n.LoadBalancerSKU),
			IPFamilies: n.IPFamilies, PodCIDRs: n.PodCIDRs, ServiceCIDRs: n.ServiceCIDRs,
			IMDSKeptFromPods: strings.EqualFold(n.PodLinkLocal, "None"),
		},
		Kubelet: Identity(kubelet),

		APIServerSubnetID: p.APIServerAccessProfile.SubnetID,
		AdminUsername:     p.LinuxProfile.AdminUsername,

		State: State{
			KubernetesVersion: cmp.Or(p.CurrentKubernetesVersion, p.KubernetesVersion), Provisioning: p.ProvisioningState, Power: p.PowerState.Code,
			NodeProvisioning: p.NodeProvisioningProfile.Mode, DefaultNodePools: p.NodeProvisioningProfile.DefaultNodePools,
			UpgradeChannel: p.AutoUpgradeProfile.UpgradeChannel, NodeOSUpgradeChannel: p.AutoUpgradeProfile.NodeOSUpgradeChannel,
		},

		CustomCAs: p.SecurityProfile.CustomCATrustCertificates, OIDCIssuer: p.OIDCIssuerProfile.IssuerURL,
		WorkloadIdentity: p.SecurityProfile.WorkloadIdentity.Enabled,
		ArtifactSource:   p.BootstrapProfile.ArtifactSource, ContainerRegistryID: p.BootstrapProfile.ContainerRegistryID,
		UnattendedUpgrades: strings.EqualFold(p.AutoUpgradeProfile.NodeOSUpgradeChannel, "Unmanaged"),
	}
	if id := p.ServicePrincipalProfile.ClientID; !strings.EqualFold(id, managedIdentity) {
		f.ServicePrincipal = id
	}
	// A proxy that is switched off is still described.
	if h := &p.HTTPProxyConfig; h.Enabled == nil || *h.Enabled {
		f.Proxy = Proxy{HTTP: h.HTTPProxy, HTTPS: h.HTTPSProxy, NoProxy: h.NoProxy, TrustedCA: h.TrustedCA}
		if len(h.EffectiveNoProxy) > 0 {
			f.Proxy.NoProxy = h.EffectiveNoProxy
		}
	}
	for _, key := range p.LinuxProfile.SSH.PublicKeys {
		if text := strings.TrimSpace(key.KeyData); text != "" {
			f.SSHPublicKeys = append(f.SSHPublicKeys, text)
		}
	}
	for _, a := range p.AgentPoolProfiles {
		if strings.EqualFold(a.Mode, "System") && f.SSHAccess == "" {
			f.SSHAccess = a.SecurityProfile.SSHAccess
		}
		f.Pools = append(f.Pools, AgentPool{
			Name: a.Name, Mode: a.Mode, Type: a.Type, Provisioning: a.State, SubnetID: a.VnetSubnetID, PodSubnetID: a.PodSubnetID,
			PodIPAllocation: a.PodIPs, OS: a.OSType, AutoScaling: a.AutoScaling,
		})
	}
	return f
}
