package azurefacts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/authorization/armauthorization/v2"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// roles reads what nap's identity and the cluster's may do.
func (r *Reader) roles(ctx context.Context, f *prerequisites.Facts) error {
	out := &prerequisites.Roles{NapPrincipal: r.target.Principal}
	if out.NapPrincipal == "" {
		var err error
		if out.NapPrincipal, err = r.self(ctx); err != nil {
			return err
		}
	}
	known := map[string][]*armauthorization.Permission{} // by role definition
	for _, id := range f.Cluster.Owner.PrincipalIDs {
		grants, err := r.grants(ctx, id, known)
		if err != nil {
			return err
		}
		out.Owner = append(out.Owner, grants...)
	}
	grants, err := r.grants(ctx, out.NapPrincipal, known)
	if err != nil {
		return err
	}
	out.Nap, out.Needs = grants, r.needs(f)
	f.Roles = out
	return nil
}

// self is the object id of the credential's own identity: Azure writes it into its tokens.
func (r *Reader) self(ctx context.Context) (string, error) {
	audience := r.options.Cloud.Services[cloud.ResourceManager].Audience
	token, err := r.credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{audience + "/.default"}})
	if err != nil {
		return "", err
	}
	parts := strings.Split(token.Token, ".")
	var claims struct {
		ObjectID string `json:"oid"`
	}
	if len(parts) == 3 {
		if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil && json.Unmarshal(raw, &claims) == nil && claims.ObjectID != "" {
			return claims.ObjectID, nil
		}
	}
	return "", errors.New("the access token does not say whose it is: give the object id of nap's identity with --principal-id")
}

// grants lists what role assignments permit a principal, at and below and above the
// subscription.
func (r *Reader) grants(ctx context.Context, principal string,
	known map[string][]*armauthorization.Permission) ([]prerequisites.Grant, error) {
	var out []prerequisites.Grant
	filter := "principalId eq '" + strings.ReplaceAll(principal, "'", "''") + "'"
	options := &armauthorization.RoleAssignmentsClientListForSubscriptionOptions{Filter: &filter}
	for pager := r.assignments.NewListForSubscriptionPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range page.Value {
			if a == nil || a.Properties == nil {
				continue
			}
			id := value(a.Properties.RoleDefinitionID)
			if _, asked := known[id]; !asked {
				definition, err := r.definitions.Get(ctx, "subscriptions/"+r.target.Subscription, id[strings.LastIndexByte(id, '/')+1:], nil)
				if err != nil {
					return nil, err
				}
				known[id] = nil
				if definition.Properties != nil {
					known[id] = definition.Properties.Permissions
				}
			}
			for _, p := range known[id] {
				out = append(out, prerequisites.Grant{
					Scope: value(a.Properties.Scope), Actions: texts(nil, p.Actions), NotActions: texts(nil, p.NotActions),
				})
			}
		}
	}
	return out, nil
}

// needs are the actions of nap with the scope at which each is asked for. Actions that
// settings alone call for are left out.
func (r *Reader) needs(f *prerequisites.Facts) []prerequisites.Need {
	bySetting := map[string]bool{
		"Microsoft.Compute/locations/placementScores/generate/action":    true,
		"Microsoft.Compute/diskEncryptionSets/read":                      true,
		"Microsoft.Compute/galleries/images/versions/read":               true,
		"Microsoft.ManagedIdentity/userAssignedIdentities/assign/action": f.Cluster.Kubelet.ResourceID == "",
	}
	subscription := "/subscriptions/" + r.target.Subscription
	nodes := subscription + "/resourceGroups/" + f.Cluster.NodeResourceGroup
	vnet, subnet := nodes, nodes
	if f.Network != nil {
		vnet = f.Network.NetworkID
		subnet = f.Network.Subnets[f.Network.Nodes[0]].ID
		if parts, err := network.ParseSubnet(subnet); err == nil && parts.Managed(f.Cluster.NodeResourceGroup) {
			vnet, subnet = nodes, nodes
		}
	}
	var out []prerequisites.Need
	for _, action := range config.Actions() {
		scope := nodes
		switch {
		case bySetting[action]:
			continue
		case config.OfSubscription(action):
			scope = subscription
		case strings.HasPrefix(action, "Microsoft.ContainerService/"):
			scope = f.Cluster.ID
		case action == "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action":
			scope = f.Cluster.Kubelet.ResourceID
		case strings.HasPrefix(action, "Microsoft.Network/virtualNetworks/subnets/"):
			scope = subnet
		case strings.HasPrefix(action, "Microsoft.Network/virtualNetworks/"):
			scope = vnet
		}
		out = append(out, prerequisites.Need{Action: action, Scope: scope})
	}
	return out
}
