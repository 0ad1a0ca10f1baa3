package containerservice

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/compute"
)

// clusters make and change managed clusters. What a body leaves out stays as it is, or
// becomes what AKS takes by default.
type clusters struct {
	sub    *arm.Subscription
	own    Cluster
	pools  *pools
	rights Rights
}

// Rights are what role assignments permit principals.
type Rights interface {
	// Grants are those of a principal, by object id.
	Grants(principal string) []arm.Grant
}

// The modes of node provisioning (Microsoft.ContainerService, NodeProvisioningMode).
const (
	modeAuto   = "Auto"
	modeManual = "Manual"
)

// tagNodePool is the tag by which machines name the NodePool that they were bought for, in
// AKS's node auto-provisioning as in nap.
const tagNodePool = "karpenter.sh_nodepool"

const (
	joinSubnet = "Microsoft.Network/virtualNetworks/subnets/join/action"
	// delegation is what the API server's subnet is delegated to, apiServerBits the length
	// of the longest prefix that it may have.
	delegation    = "Microsoft.ContainerService/managedClusters"
	apiServerBits = 28
)

// clusterBody is the typed view of a managed cluster's body.
type clusterBody struct {
	Location string `json:"location"`
	Identity struct {
		UserAssigned map[string]any `json:"userAssignedIdentities"`
	} `json:"identity"`
	Properties struct {
		AgentPools []struct {
			Name         string `json:"name"`
			VnetSubnetID string `json:"vnetSubnetID"`
			AutoScaling  bool   `json:"enableAutoScaling"`
		} `json:"agentPoolProfiles"`
		APIServer struct {
			SubnetID string `json:"subnetId"`
		} `json:"apiServerAccessProfile"`
		NodeProvisioning struct {
			Mode string `json:"mode"`
		} `json:"nodeProvisioningProfile"`
	} `json:"properties"`
}

// put makes a cluster, or changes one.
func (s *clusters) put(c *arm.Call) (arm.Reply, error) {
	var body clusterBody
	if _, err := arm.DecodeBody(c.Body, &body); err != nil {
		return arm.Reply{}, err
	}
	old := s.sub.Resources.Find(c.Path.ID())
	if err := s.checkMode(old, &body); err != nil {
		return arm.Reply{}, err
	}
	if err := s.checkNetwork(c, &body); err != nil {
		return arm.Reply{}, err
	}
	if old == nil && (body.Location == "" || len(body.Properties.AgentPools) == 0) {
		return arm.Reply{}, arm.ErrInvalidParameter("agentPoolProfiles", "A managed cluster needs a location and at least one agent pool.")
	}
	var profiles []any
	documents := arm.Documents{Resources: s.sub.Resources, Complete: func(old *arm.Resource, doc arm.Document) {
		profiles, _ = arm.At(doc, "properties", "agentPoolProfiles").([]any)
		s.complete(c.Path, old, doc)
	}}
	reply, err := documents.Put(c)
	if err != nil {
		return reply, err
	}
	s.pools.take(c.Path, profiles)
	reply.Body = s.sub.Resources.Find(c.Path.ID()).Doc
	return reply, nil
}

// checkMode refuses what AKS refuses of node auto-provisioning: to switch it on beside the
// cluster autoscaler, and off while it has nodes or NodePools that may buy. AKS's words for
// the former are public, those for the latter are made after them; the conditions are
// https://learn.microsoft.com/azure/aks/use-node-auto-provisioning#disable-node-auto-provisioning
func (s *clusters) checkMode(old *arm.Resource, body *clusterBody) error {
	const property = ".properties.nodeProvisioningProfile.mode"
	refuse := func(format string, args ...any) error {
		return arm.NewError(http.StatusBadRequest, "OperationNotAllowed", property+" cannot be "+format, args...)
	}
	was := modeManual
	if old != nil {
		was = arm.Text(old.Doc, "properties", "nodeProvisioningProfile", "mode")
	}
	mode := body.Properties.NodeProvisioning.Mode
	switch {
	case mode != "" && mode != modeAuto && mode != modeManual:
		return refuse("%s: allowed are %s and %s.", mode, modeAuto, modeManual)
	case mode == modeAuto:
		for _, p := range body.Properties.AgentPools {
			if p.AutoScaling {
				return refuse("Auto unless all AgentPools have property .properties.enableAutoScaling set to one of [false]")
			}
		}
	case mode == modeManual && was == modeAuto:
		if nodes := s.nodes(); len(nodes) > 0 {
			return refuse("Manual while there are nodes with the label karpenter.sh/nodepool: %s", strings.Join(nodes, ", "))
		}
		if s.own.OpenNodePools == nil {
			return nil
		}
		if open := s.own.OpenNodePools(); len(open) > 0 {
			return refuse("Manual unless all NodePools have .spec.limits.cpu set to 0: %s", strings.Join(open, ", "))
		}
	}
	return nil
}

// nodes are the names of the machines that were bought for NodePools.
func (s *clusters) nodes() []string {
	var names []string
	for _, r := range s.sub.Resources.Sorted(compute.TypeVM) {
		if arm.TagsOf(r.Doc)[tagNodePool] != "" {
			names = append(names, arm.LastSegment(r.ID))
		}
	}
	return names
}

// checkNetwork looks at the subnets that a cluster names: that they are there, that the
// caller and the cluster's identities may join them, and that the API server's is one.
func (s *clusters) checkNetwork(c *arm.Call, body *clusterBody) error {
	var nodes []string
	for _, p := range body.Properties.AgentPools {
		if id := p.VnetSubnetID; id != "" {
			nodes = append(nodes, arm.Key(id))
			if err := s.checkSubnet(c, body, id); err != nil {
				return err
			}
		}
	}
	id := body.Properties.APIServer.SubnetID
	if id == "" {
		return nil
	}
	if err := s.checkSubnet(c, body, id); err != nil {
		return err
	}
	subnet := s.sub.Resources.Find(id).Doc
	prefix, _ := netip.ParsePrefix(arm.Text(subnet, "properties", "addressPrefix"))
	delegations, _ := arm.At(subnet, "properties", "delegations").([]any)
	delegated := slices.ContainsFunc(delegations, func(d any) bool {
		one, _ := d.(arm.Document)
		return strings.EqualFold(arm.Text(one, "properties", "serviceName"), delegation)
	})
	const target = "apiServerAccessProfile.subnetId"
	switch {
	case !delegated:
		return arm.ErrInvalidParameter(target, "The subnet %s must be delegated to %s.", id, delegation)
	case prefix.Bits() > apiServerBits:
		return arm.ErrInvalidParameter(target, "The subnet %s is a /%d; the API server needs a /%d or larger.", id, prefix.Bits(), apiServerBits)
	case slices.Contains(nodes, arm.Key(id)):
		return arm.ErrInvalidParameter(target, "The subnet %s is that of an agent pool; the API server needs one of its own.", id)
	}
	return nil
}

func (s *clusters) checkSubnet(c *arm.Call, body *clusterBody, id string) error {
	if s.sub.Resources.Find(id) == nil {
		return arm.NewError(http.StatusNotFound, "SubnetNotFound", "The subnet %s was not found.", id)
	}
	if err := c.AuthorizeLinked(joinSubnet, id); err != nil {
		return err
	}
	for _, identity := range slices.Sorted(maps.Keys(body.Identity.UserAssigned)) {
		r := s.sub.Resources.Find(identity)
		if r == nil {
			return arm.ErrInvalidReference(identity, c.Path.ID())
		}
		principal := arm.Text(r.Doc, "properties", "principalId")
		grants := s.rights.Grants(principal)
		if may := (&arm.Principal{Grants: &grants}); !may.May(joinSubnet, id) {
			return arm.NewError(http.StatusForbidden, "LinkedAuthorizationFailed",
				"The client '%s' with object id '%s' does not have permission to perform action(s) '%s' on the linked scope(s) '%s'.",
				arm.Text(r.Doc, "properties", "clientId"), principal, joinSubnet, id)
		}
	}
	return nil
}

// complete adds to a cluster that a client put what it was before, or what AKS makes of
// a new one.
func (s *clusters) complete(p arm.Path, old *arm.Resource, doc arm.Document) {
	sent := arm.Clone(doc)
	base := arm.Document{
		"identity": arm.Document{"type": "SystemAssigned"}, "sku": arm.Document{"name": "Base", "tier": "Free"},
		"properties": s.defaults(p, arm.Section(sent, "properties")),
	}
	if old != nil {
		base = arm.Clone(old.Doc)
	}
	arm.Merge(base, sent)
	if tags, has := sent["tags"]; has {
		base["tags"] = tags
	}
	s.completeIdentity(arm.Section(base, "identity"))
	issuer := arm.Section(arm.Section(base, "properties"), "oidcIssuerProfile")
	if issuer["enabled"] == true && issuer["issuerURL"] == nil {
		issuer["issuerURL"] = fmt.Sprintf("https://%s.oic.prod-aks.azure.com/%s/%s/", s.sub.Region, s.sub.TenantID, s.sub.IDs.GUID())
	}
	clear(doc)
	maps.Copy(doc, base)
}

// completeIdentity tells which principals a cluster's identities are.
func (s *clusters) completeIdentity(identity arm.Document) {
	if !strings.EqualFold(arm.Text(identity, "type"), "UserAssigned") {
		identity["principalId"], identity["tenantId"] = PrincipalID, s.sub.TenantID
		return
	}
	assigned := arm.Section(identity, "userAssignedIdentities")
	for id := range assigned {
		if r := s.sub.Resources.Find(id); r != nil {
			assigned[id] = arm.Document{
				"principalId": arm.At(r.Doc, "properties", "principalId"), "clientId": arm.At(r.Doc, "properties", "clientId"),
			}
		}
	}
}

// defaults are the properties that AKS gives a new cluster.
func (s *clusters) defaults(p arm.Path, sent arm.Document) arm.Document {
	cl := s.own
	cl.ID, cl.Name, cl.ResourceGroup = p.ID(), p.Name(), p.Group
	if arm.Key(cl.ID) != arm.Key(s.own.ID) {
		cl.NodeResourceGroup = fmt.Sprintf("MC_%s_%s_%s", p.Group, p.Name(), s.sub.Region)
		cl.Endpoint = fmt.Sprintf("%s-%s.hcp.%s.azmk8s.io", arm.Text(sent, "dnsPrefix"), cl.Suffix, s.sub.Region)
	}
	cl.Network, cl.Outbound = "subnet", "loadBalancer" // what was sent goes over it
	if strings.EqualFold(arm.Text(sent, "networkProfile", "networkPluginMode"), "overlay") {
		cl.Network = "overlay"
	}
	out := cl.properties(s.sub)
	delete(out, "autoUpgradeProfile")
	delete(arm.Section(out, "linuxProfile"), "ssh")
	return out
}
