package containerservice

import (
	"net/http"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/compute"
)

// Types of resources, lower case, as they are stored.
const (
	TypeMachine = "microsoft.containerservice/managedclusters/agentpools/machines"
	typeCluster = "microsoft.containerservice/managedclusters"
	typeWindow  = "microsoft.containerservice/managedclusters/maintenanceconfigurations"
	typePool    = "microsoft.containerservice/managedclusters/agentpools"
)

// Cluster is what of the subscription's configuration concerns the AKS cluster.
type Cluster struct {
	ID                string // resource ID of the managed cluster
	Name              string
	ResourceGroup     string
	NodeResourceGroup string
	KubernetesVersion string         // as 1.35.1
	Endpoint          string         // host name of the API server
	AgentPools        []string       // names of the pools of mode System, the default one first
	MachinesPools     []string       // names of the pools of mode Machines
	Network           string         // one of Networks
	Outbound          string         // one of Outbounds
	Properties        map[string]any // laid over the properties of the managed cluster
	Absent            bool           // no cluster until a client makes one
	// OpenNodePools are the names of the NodePools that may buy, since their limit of CPU is
	// not 0; nil means that there is none. AKS sees them in the API server.
	OpenNodePools func() []string
	Suffix        string // the digits that AKS puts into the names of the cluster's parts
}

// VirtualMachines are what AKS buys its machines from.
type VirtualMachines interface {
	Allocate(id string, m compute.Spec) (failure *arm.Error, now bool)
	Create(path arm.Path, doc arm.Document, m compute.Spec, failure *arm.Error) *compute.VM
	BeginDelete(v *compute.VM, force bool) (operation string)
	Find(id string) *compute.VM
	Describe(v *compute.VM) compute.Machine
	AddFixed(v *compute.VM, d arm.Document)
	NotifyBooted(m compute.Machine)
	Follow(settled, provisioned, deleted func(*compute.VM))
	Restricted(size, zone string) bool
	HasNodeImage(version string) bool
	ListNodeImages(c *arm.Call) (arm.Reply, error)
}

// Interfaces are what AKS gets addresses from.
type Interfaces interface {
	// Create makes an interface in a subnet, by default that of the nodes.
	Create(name, subnet string) (id string, err error)
	// Attach attaches an interface and returns its address.
	Attach(id, vm string) (address string)
	// Claim takes an address in the subnet of the nodes without an interface.
	Claim(owner string) (address string, err error)
}

// Provider is Microsoft.ContainerService. Its methods need the subscription's lock.
type Provider struct {
	sub        *arm.Subscription
	cluster    Cluster
	vms        VirtualMachines
	interfaces Interfaces
	machines   *machines
	pools      *pools
	clusters   *clusters
}

// Neighbours are the parts of the subscription that AKS works with.
type Neighbours struct {
	VMs        VirtualMachines
	Interfaces Interfaces
	Rights     Rights
}

// New makes the provider of a subscription; deletion is how long a VM takes to go,
// before the time scale.
func New(sub *arm.Subscription, cluster Cluster, deletion arm.Distribution, n Neighbours) *Provider {
	vms, interfaces := n.VMs, n.Interfaces
	p := &Provider{sub: sub, cluster: cluster, vms: vms, interfaces: interfaces, pools: &pools{sub: sub, cluster: cluster}}
	p.clusters = &clusters{sub: sub, own: cluster, pools: p.pools, rights: n.Rights}
	p.machines = &machines{sub: sub, cluster: cluster, deletion: deletion, vms: vms, interfaces: interfaces}
	vms.Follow(p.machines.settled, p.machines.provisioned, p.machines.vmDeleted)
	sub.Tasks.On(taskLate, p.machines.late)
	sub.Resources.ShowETags(typeCluster, "eTag")
	sub.Resources.ShowETags(typePool, "properties", "eTag")
	sub.Resources.ShowETags(TypeMachine, "properties", "eTag")
	sub.Tasks.On(taskDeleted, func(t arm.Task) { sub.Operations.Finish(t.Op, nil) })
	sub.Tasks.On(taskPower, p.powered)
	sub.Tasks.On(taskPool, p.pools.made)
	return p
}

// versions are those of the SDK modules in use, the previews with the AKS machine
// API, and older ones that clients of the same resources send.
var versions = []string{"2025-05-01", "2025-08-01", "2025-10-01", "2026-01-01", "2026-03-01",
	"2026-04-01", "2025-10-02-preview", "2026-01-02-preview", "2026-04-02-preview"}

// Routes are the rows of the provider.
func (p *Provider) Routes() []arm.Route {
	const cluster, machine = "Microsoft.ContainerService/managedClusters", "Microsoft.ContainerService/managedClusters/agentPools/machines"
	documents := arm.Documents{Resources: p.sub.Resources}
	rows := []arm.Route{
		{Method: http.MethodGet, Type: "Microsoft.ContainerService/locations/operations",
			Item: true, Scope: arm.SubscriptionScope, Open: true, Handle: p.sub.Operations.Get},
		{Method: http.MethodGet, Type: "Microsoft.ContainerService/locations/nodeImageVersions",
			Scope: arm.SubscriptionScope, Handle: p.vms.ListNodeImages},
		{Method: http.MethodPut, Type: machine, Item: true, Handle: p.machines.put},
		{Method: http.MethodGet, Type: machine, Item: true, Handle: documents.Get},
		{Method: http.MethodGet, Type: machine, Handle: documents.List},
		{Method: http.MethodPost, Type: cluster + "/agentPools/deleteMachines", Handle: p.machines.remove},
		{Method: http.MethodGet, Type: cluster + "/agentPools", Item: true, Handle: documents.Get},
		{Method: http.MethodGet, Type: cluster + "/agentPools", Handle: documents.List},
		{Method: http.MethodPut, Type: cluster + "/agentPools", Item: true, Handle: p.pools.put},
		{Method: http.MethodDelete, Type: cluster + "/agentPools", Item: true, Handle: arm.Documents{
			Resources: p.sub.Resources, Deleted: func(r *arm.Resource) { p.pools.tell(clusterOf(r)) }}.Delete},
		{Method: http.MethodPost, Type: cluster + "/stop", Handle: p.stop},
		{Method: http.MethodPost, Type: cluster + "/start", Handle: p.start},
	}
	for i := range rows {
		rows[i].Versions = versions
	}
	for _, row := range documents.Routes(cluster, "", "", versions, documents.UpdateTags) {
		if row.Method == http.MethodPut {
			row.Handle = p.clusters.put
		}
		rows = append(rows, row)
	}
	windows := documents
	windows.Stateless = true
	rows = append(rows, windows.Routes(cluster+"/maintenanceConfigurations", "", "", versions, nil)...)
	return rows
}

// Drift makes every machine of the agent pools one that AKS would replace.
func (p *Provider) Drift() { p.machines.drift() }
