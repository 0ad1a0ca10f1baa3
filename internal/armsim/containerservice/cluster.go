package containerservice

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/compute"
)

// properties are those of the cluster, as AKS makes it.
func (cl *Cluster) properties(sub *arm.Subscription) arm.Document {
	kubelet := arm.Document{
		"resourceId": sub.ResourceID(cl.NodeResourceGroup, "Microsoft.ManagedIdentity/userAssignedIdentities", cl.Name+"-agentpool"),
		"clientId":   "c0ffee00-0000-4000-8000-000000000003", "objectId": "c0ffee00-0000-4000-8000-000000000004",
	}
	return arm.Document{
		"provisioningState": "Succeeded", "powerState": arm.Document{"code": "Running"},
		"kubernetesVersion": cl.KubernetesVersion, "currentKubernetesVersion": cl.KubernetesVersion,
		"dnsPrefix": cl.Name + "-dns", "fqdn": cl.Endpoint, "azurePortalFQDN": cl.Endpoint, "nodeResourceGroup": cl.NodeResourceGroup,
		"linuxProfile": arm.Document{"adminUsername": "azureuser",
			"ssh": arm.Document{"publicKeys": []any{arm.Document{"keyData": sshPublicKey}}}},
		"enableRBAC": true, "maxAgentPools": 100,
		"servicePrincipalProfile": arm.Document{"clientId": "msi"},
		"identityProfile":         arm.Document{"kubeletidentity": kubelet},
		"networkProfile":          networkProfile(cl.Network, cl.Outbound),
		"autoUpgradeProfile":      arm.Document{"upgradeChannel": "stable", "nodeOSUpgradeChannel": "NodeImage"},
		"nodeProvisioningProfile": arm.Document{"mode": modeManual},
		"oidcIssuerProfile":       arm.Document{"enabled": false},
		"securityProfile":         arm.Document{},
		"bootstrapProfile": bootstrapProfile(
			sub.ResourceID(cl.NodeResourceGroup, "Microsoft.ContainerRegistry/registries", "bootstrap"+cl.Suffix), cl.Outbound),
		"disableLocalAccounts": false,
		"supportPlan":          "KubernetesOfficial",
	}
}

// Seed makes the managed cluster and its agent pools, unless a restored state has
// them, or a client is to make them.
func (p *Provider) Seed() {
	cl := p.cluster
	if cl.Absent {
		return
	}
	const display = "Microsoft.ContainerService/managedClusters"
	props := cl.properties(p.sub)
	arm.Merge(props, cl.Properties)
	cluster := p.seed(cl.ID, display, typeCluster, props)
	if cluster.Doc["identity"] == nil {
		doc := arm.Clone(cluster.Doc)
		doc["identity"] = arm.Document{
			"type": "SystemAssigned", "principalId": PrincipalID, "tenantId": p.sub.TenantID,
		}
		doc["sku"] = arm.Document{"name": "Base", "tier": "Standard"}
		p.sub.Resources.Put(cluster, doc)
	}
	p.SetKubernetesVersion(cl.KubernetesVersion) // a restored state may have another
	p.pools.seed()
}

// SetKubernetesVersion makes the control plane one of another Kubernetes version, as 1.36.0.
// Agent pools keep theirs, as after an upgrade of the control plane alone.
func (p *Provider) SetKubernetesVersion(version string) {
	cluster := p.sub.Resources.Find(p.cluster.ID)
	if _, stated := p.cluster.Properties["currentKubernetesVersion"]; cluster == nil || stated ||
		arm.Text(cluster.Doc, "properties", "currentKubernetesVersion") == version {
		return
	}
	p.sub.Resources.Put(cluster, arm.WithProperties(cluster.Doc, arm.Document{
		"kubernetesVersion": version, "currentKubernetesVersion": version,
	}))
}

// maintenanceHours is how long windows are that are set from outside.
const maintenanceHours = 4

// SetMaintenanceWindow sets a window of the cluster: open from now on for four hours each day,
// closed until twelve hours from now, or, where open is nil, none at all.
func (p *Provider) SetMaintenanceWindow(name string, open *bool) {
	id := p.cluster.ID + "/maintenanceConfigurations/" + name
	r := p.sub.Resources.Find(id)
	if open == nil {
		if r != nil {
			p.sub.Resources.Drop(r)
		}
		return
	}
	// Windows begin at full minutes, so that one which is to be open begins before now.
	const half = 12 * time.Hour
	begins := p.sub.Clock.Now().UTC().Add(-time.Minute)
	if !*open {
		begins = begins.Add(half)
	}
	if r == nil {
		r = &arm.Resource{ID: id, Type: typeWindow, Group: p.cluster.ResourceGroup}
	}
	p.sub.Resources.Put(r, arm.Document{"id": id, "name": name, "type": "Microsoft.ContainerService/managedClusters/maintenanceConfigurations",
		"properties": arm.Document{"maintenanceWindow": arm.Document{
			"schedule": arm.Document{"daily": arm.Document{"intervalDays": 1}}, "durationHours": maintenanceHours,
			"utcOffset": "+00:00", "startDate": begins.Add(-half).Format(time.DateOnly), "startTime": begins.Format("15:04"),
		}}})
}

// PrincipalID is the object id of the cluster's system-assigned identity.
const PrincipalID = "c0ffee00-0000-4000-8000-000000000005"

// sshPublicKey is what the cluster was made with. Its private half was thrown away.
const sshPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f lab"

// fixedPoolSize is the size of fixed machines that name none.
const fixedPoolSize = "Standard_D4s_v5"

func (p *Provider) seed(id, display, typ string, props arm.Document) *arm.Resource {
	doc := arm.Document{"type": display, "properties": props}
	if typ == typeCluster {
		doc["location"] = p.sub.Region
	}
	return p.sub.Resources.Seed(id, typ, p.cluster.ResourceGroup, doc)
}

// PoolMachine describes a machine that an agent pool has from the start.
type PoolMachine struct {
	Pool       string // default: the first pool of the cluster
	Name       string // host name; default as AKS names the machines of a scale set
	Size       string // default Standard_D4s_v5
	Zone       string // default "1"
	CustomData []byte // what its kubelet boots from
	Labels     map[string]string
	Taints     []string // key=value:effect
}

// AddMachine puts a running machine into an agent pool. It costs no quota, is not a
// leak, and is there again after a restart from the state file; adding one of the
// same name again changes nothing.
func (p *Provider) AddMachine(m PoolMachine) (compute.Machine, error) {
	if len(p.cluster.AgentPools) > 0 {
		m.Pool = cmp.Or(m.Pool, p.cluster.AgentPools[0])
	}
	m.Size = cmp.Or(m.Size, fixedPoolSize)
	m.Zone = cmp.Or(m.Zone, "1")
	pool := p.sub.Resources.Find(p.cluster.ID + "/agentPools/" + m.Pool)
	if pool == nil {
		return compute.Machine{}, fmt.Errorf("cannot add a machine to agent pool %q: the cluster has pools %v", m.Pool, p.cluster.AgentPools)
	}
	size, ok := p.sub.SKUTable.Size(m.Size)
	if !ok {
		return compute.Machine{}, fmt.Errorf("cannot add a machine of size %q: the catalogue has no such size", m.Size)
	}
	count, _ := arm.At(pool.Doc, "properties", "count").(int)
	if f, ok := arm.At(pool.Doc, "properties", "count").(float64); ok { // restored from JSON
		count = int(f)
	}
	m.Name = cmp.Or(m.Name, fmt.Sprintf("aks-%s-%s-vmss%06d", m.Pool, p.cluster.Suffix, count))
	id := pool.ID + "/machines/" + m.Name
	if v := p.vms.Find(id); v != nil {
		return p.vms.Describe(v), nil
	}
	address, err := p.interfaces.Claim(id)
	if err != nil {
		return compute.Machine{}, fmt.Errorf("cannot add machine %s to agent pool %s: %w", m.Name, m.Pool, err)
	}
	v := &compute.VM{
		Resource:   &arm.Resource{ID: id, Type: TypeMachine, Group: p.cluster.ResourceGroup, Fixed: true},
		Address:    address,
		Spec:       compute.Spec{Size: size.Name, Zone: m.Zone, Priority: arm.Regular, ComputerName: m.Name, OSDiskGB: 128},
		CustomData: base64.StdEncoding.EncodeToString(m.CustomData),
		AKS: &compute.AKSMachine{Cluster: p.cluster.ID, Pool: m.Pool, Name: m.Name,
			Mode: "System", Labels: m.Labels, Taints: m.Taints, MaxPods: 250,
			Kubernetes: p.cluster.KubernetesVersion},
	}
	p.vms.AddFixed(v, arm.Document{"id": id, "name": m.Name,
		"type": "Microsoft.ContainerService/managedClusters/agentPools/machines", "zones": []any{m.Zone},
		"properties": arm.Document{"provisioningState": "Succeeded",
			"network": arm.Document{"ipAddresses": []any{arm.Document{"family": "IPv4", "ip": address}}},
			"status":  arm.Document{"driftAction": "Synced", "creationTimestamp": p.sub.Clock.Now().UTC().Format(time.RFC3339)}}})
	p.sub.Resources.Put(pool, arm.WithProperties(pool.Doc, arm.Document{"count": count + 1}))
	p.pools.tell(p.cluster.ID)
	out := p.vms.Describe(v)
	p.vms.NotifyBooted(out)
	return out, nil
}
