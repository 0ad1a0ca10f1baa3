package azure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

// specifier turns an order and the candidate chosen for it into a description of the
// node.
type specifier struct {
	config  *config.Config
	network *network.Resolver
	// token is that of a machine that is launched now; nil means the configuration's.
	token func(context.Context) (jointoken.Token, error)
}

// joinToken is what a plain machine that is launched now joins with.
func (s *specifier) joinToken(ctx context.Context) (jointoken.Token, error) {
	if s.token == nil || s.config.StartsAKSMachines() {
		return s.config.BootstrapToken, nil
	}
	return s.token(ctx)
}

// spec is the one description of the machine that a candidate would be.
func (s *specifier) spec(ctx context.Context, o Order, c launch.Candidate) (launch.NodeSpec, error) {
	picked, ok := nodeclass.Pick(o.Class.Images, c.SKU.Arch, c.SKU.Generations)
	if !ok {
		return launch.NodeSpec{}, fmt.Errorf("no image of node class %s runs on %s: %w", o.Class.Name, c.SKU.Name, image.ErrNotFound)
	}
	labels, err := s.nodeLabels(ctx, o, c)
	if err != nil {
		return launch.NodeSpec{}, err
	}
	if version := image.NodeImageVersion(picked.ID); version != "" { // none for an image that is not of AKS
		labels[labelNodeImage] = version
	}
	token, err := s.joinToken(ctx)
	if err != nil {
		return launch.NodeSpec{}, err
	}
	return launch.NodeSpec{
		Claim: o.Claim, Pool: o.Pool, SKU: c.SKU, Zone: instancetype.AzureZone(s.config.Location, c.Offering.Zone),
		CapacityType: c.Offering.CapacityType, Class: o.Class, Image: picked,
		Labels: labels, JoinToken: token, Taints: o.Taints, MaxPods: int(c.Type.Capacity.Get(model.Pods)),
		UltraSSD: labels[instancetype.LabelSKUUltraSSD] == "true",
	}, nil
}

// Specify is the one description of the machine that a candidate for an order would be.
// It does not ask Azure: the id of the virtual network must be known, as VNETGUID, and the
// class's images must be.
func Specify(ctx context.Context, c *config.Config, o Order, candidate launch.Candidate) (launch.NodeSpec, error) {
	s := specifier{
		config: c, network: network.NewResolver(network.Clients{}, c.NodeResourceGroup, c.VNETSubnetID, time.Now),
	}
	return s.spec(ctx, o, candidate)
}

// labelNodeImage says which node image a node runs, as AKS's own nodes say.
const labelNodeImage = "kubernetes.azure.com/node-image-version"

// clusterLabels are the same on every node of the cluster.
func clusterLabels(c *config.Config) map[string]string {
	l := map[string]string{instancetype.LabelAKSCluster: clusterLabel(c.NodeResourceGroup)}
	if c.NetworkDataplane == "cilium" {
		l[instancetype.LabelAKSEBPFDataplane] = "cilium"
	}
	return l
}

// clusterLabel makes the node resource group's name a label value, as AKS does.
func clusterLabel(group string) string {
	const longest = 63
	value := strings.NewReplacer("(", "-", ")", "-").Replace(group)
	if len(value) > longest {
		value = value[:longest]
	}
	if strings.HasSuffix(value, "-") || strings.HasSuffix(value, "_") || strings.HasSuffix(value, ".") {
		value = value[:min(len(value), longest-1)] + "z"
	}
	return value
}

// Labels are the labels of a node of this type and offering, the open choices
// made by the requirements: the first allowed value, in the catalogue's order.
func Labels(t *model.InstanceType, o *model.Offering, requirements model.Requirements) map[string]string {
	l := maps.Clone(t.Labels)
	for key, choices := range t.Choices {
		for _, value := range choices {
			if !slices.ContainsFunc(requirements, func(r model.Requirement) bool { return r.Key == key && !r.Matches(value, true) }) {
				l[key] = value
				break
			}
		}
	}
	maps.Copy(l, o.Labels)
	return l
}

// nodeLabels is everything that the node registers with: the order's labels, those
// of size and offering, and those that AKS's own nodes carry.
func (s *specifier) nodeLabels(ctx context.Context, o Order, c launch.Candidate) (map[string]string, error) {
	const aks = "kubernetes.azure.com/"
	l := map[string]string{
		aks + "role":                       "agent",
		"karpenter.sh/do-not-sync-taints":  "true",
		aks + "os-sku-requested":           o.Class.ImageFamily,
		aks + "kubelet-identity-client-id": s.config.KubeletIdentityClientID,
		"karpenter.azure.com/aksnodeclass": o.Class.Name,
	}
	release, err := image.ReleaseFor(o.Class, o.Class.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	l[aks+"os-sku-effective"] = release.Name
	if s.config.KubeletIdentityClientID == "" {
		delete(l, aks+"kubelet-identity-client-id")
	}
	if s.config.NetworkPluginMode == config.ModeOverlay {
		subnet, err := network.ParseSubnet(s.network.Subnet(o.Class.SubnetID))
		if err != nil {
			return nil, err
		}
		l[aks+"network-subnet"], l[aks+"azure-cni-overlay"], l[aks+"podnetwork-type"] = subnet.Name, "true", "overlay"
		guid, err := s.vnetGUID(ctx)
		if err != nil {
			return nil, err
		}
		if guid != "" {
			l[aks+"nodenetwork-vnetguid"] = guid
		}
		if image.AtLeast(o.Class.KubernetesVersion, 34) {
			l[aks+"network-stateless-cni"] = "true"
		}
	}
	l[aks+"localdns-state"] = "disabled"
	if o.Class.LocalDNS {
		l[aks+"localdns-state"] = "enabled"
	}
	if o.Class.ArtifactStreaming {
		l[aks+"artifactstreaming-enabled"] = "true"
	}
	for _, r := range o.Requirements {
		if r.Operator == model.In && len(r.Values) == 1 {
			l[r.Key] = r.Values[0]
		}
	}
	maps.Copy(l, o.Labels)
	maps.Copy(l, Labels(c.Type, c.Offering, o.Requirements))
	return l, nil
}

// vnetGUID is the id of the cluster's virtual network, as its nodes carry it; empty
// where they do not. AKS labels its machines itself.
func (s *specifier) vnetGUID(ctx context.Context) (string, error) {
	if s.config.VNETGUID != "" || s.config.NetworkPluginMode != config.ModeOverlay || s.config.StartsAKSMachines() {
		return s.config.VNETGUID, nil
	}
	return s.network.GUID(ctx)
}
