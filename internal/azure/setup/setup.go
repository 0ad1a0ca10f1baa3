// Package setup makes what nap needs in Azure before it can run in a cluster: a
// user-assigned identity that trusts the tokens of nap's ServiceAccount, two custom roles
// with their assignments, and the agent pool of AKS machines.
//
// [Plan] lists the steps, each of which can be looked at, made and removed by itself, and
// has the az command that does the same. All names follow from the cluster, so that a
// second run finds what the first one has made, and so does the template
// deploy/nap.json.
package setup

import (
	"cmp"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/network"
)

// Target says for which cluster and which ServiceAccount the setup is.
type Target struct {
	// Cluster is what the managed cluster tells of itself.
	Cluster managedcluster.Facts
	// Namespace and ServiceAccount are those of nap in the cluster.
	Namespace, ServiceAccount string
	// SubnetID is the subnet of nap's machines; empty means the cluster's.
	SubnetID string
	// MachinesPool is the agent pool of AKS machines; empty means none.
	MachinesPool string
}

// The names of what is made, beside those that follow from the cluster.
const (
	CredentialName = "nap"
	// Audience is what tokens of ServiceAccounts are for, when Azure is to take them.
	Audience = "api://AzureADTokenExchange"
	// DefaultMachinesPool is the agent pool that is made where no other is named.
	DefaultMachinesPool = "machines"
)

// IdentityName is the name of nap's identity, which is in the cluster's resource group.
func (t *Target) IdentityName() string { return "nap-" + t.Cluster.Name }

// IdentityID is its resource id.
func (t *Target) IdentityID() string {
	return t.subscription() + "/resourceGroups/" + t.Cluster.ResourceGroup +
		"/providers/Microsoft.ManagedIdentity/userAssignedIdentities/" + t.IdentityName()
}

// Subject is how the tokens of nap's ServiceAccount name it.
func (t *Target) Subject() string {
	return subjectPrefix + t.Namespace + ":" + t.ServiceAccount
}

// subjectPrefix is what the subjects of ServiceAccounts begin with.
const subjectPrefix = "system:serviceaccount:"

// ParseSubject is the inverse of [Target.Subject]: namespace and name of a ServiceAccount;
// both are empty for a subject that is none.
func ParseSubject(subject string) (namespace, account string) {
	names, is := strings.CutPrefix(subject, subjectPrefix)
	if namespace, account, cut := strings.Cut(names, ":"); is && cut {
		return namespace, account
	}
	return "", ""
}

// clusterID is the cluster's resource id as templates write it: AKS spells its own in
// another case.
func (t *Target) clusterID() string {
	return t.subscription() + "/resourceGroups/" + t.Cluster.ResourceGroup +
		"/providers/Microsoft.ContainerService/managedClusters/" + t.Cluster.Name
}

func (t *Target) subscription() string { return "/subscriptions/" + t.Cluster.Subscription }

// Role is a custom role.
type Role struct {
	// ID is its resource id, Name what people call it; both are the same for all clusters
	// of a subscription.
	ID, Name string
	// Purpose says what it is for; Actions are all that it permits.
	Purpose string
	Actions []string
}

// Roles are the two roles of nap: what it may do with machines, and what it may ask the
// subscription. The names of roles are unique in a tenant, hence the subscription in them.
func (t *Target) Roles() (machines, catalogue Role) {
	machines = t.role("nap", "Buy and delete the machines of an AKS cluster, for nap")
	catalogue = t.role("nap catalogue", "Read sizes, usages, node images and preview features of a subscription, for nap")
	for _, action := range config.Actions() {
		if config.OfSubscription(action) {
			catalogue.Actions = append(catalogue.Actions, action)
		} else {
			machines.Actions = append(machines.Actions, action)
		}
	}
	return machines, catalogue
}

func (t *Target) role(kind, purpose string) Role {
	return Role{
		ID:   t.subscription() + "/providers/Microsoft.Authorization/roleDefinitions/" + templateGUID(t.subscription(), kind),
		Name: kind + " " + t.Cluster.Subscription, Purpose: purpose,
	}
}

// Assignment is a role at a scope.
type Assignment struct {
	// Name is the GUID of the assignment.
	Name  string
	Role  Role
	Scope string
	// Of names the scope for people.
	Of string
}

// Assignments are the roles of nap's identity, each at the smallest scope that covers what
// it is for.
func (t *Target) Assignments() []Assignment {
	machines, catalogue := t.Roles()
	nodes := t.subscription() + "/resourceGroups/" + t.Cluster.NodeResourceGroup
	out := []Assignment{
		{Role: catalogue, Scope: t.subscription(), Of: "the subscription"},
		{Role: machines, Scope: t.clusterID(), Of: "the cluster"},
		{Role: machines, Scope: nodes, Of: "resource group " + t.Cluster.NodeResourceGroup},
	}
	beside := func(id, of string) {
		if id != "" && !strings.HasPrefix(strings.ToLower(id), strings.ToLower(nodes)+"/") {
			out = append(out, Assignment{Role: machines, Scope: id, Of: of})
		}
	}
	beside(t.Cluster.Kubelet.ResourceID, "the kubelets' identity")
	if subnet := cmp.Or(t.SubnetID, t.Cluster.SubnetID()); subnet != "" {
		if parts, err := network.ParseSubnet(subnet); err == nil {
			vnet, _, _ := strings.Cut(subnet, "/subnets/")
			beside(vnet, "virtual network "+parts.VNET)
		}
	}
	for i := range out {
		out[i].Name = templateGUID(out[i].Scope, t.IdentityID(), out[i].Role.ID)
	}
	return out
}
