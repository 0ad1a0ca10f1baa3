package armsim

import (
	"fmt"
	"time"
)

// ClusterID is the resource ID of the managed cluster.
func (s *Server) ClusterID() string {
	return "/subscriptions/" + s.cfg.SubscriptionID + "/resourceGroups/" + s.cfg.Cluster.ResourceGroup +
		"/providers/Microsoft.ContainerService/managedClusters/" + s.cfg.Cluster.Name
}

// seedCluster makes the managed cluster and its agent pools.
func (s *Server) seedCluster() {
	cl := s.cfg.Cluster
	const display = "Microsoft.ContainerService/managedClusters"
	kubelet := document{
		"resourceId": s.nodeID("Microsoft.ManagedIdentity/userAssignedIdentities", cl.Name+"-agentpool"),
		"clientId":   "c0ffee00-0000-4000-8000-000000000003", "objectId": "c0ffee00-0000-4000-8000-000000000004",
	}
	pools := []any{}
	for _, name := range cl.AgentPools {
		profile := s.poolProperties()
		profile["name"] = name
		pools = append(pools, profile)
	}
	props := document{
		"provisioningState": "Succeeded", "powerState": document{"code": "Running"},
		"kubernetesVersion": cl.KubernetesVersion, "currentKubernetesVersion": cl.KubernetesVersion,
		"dnsPrefix": cl.Name + "-dns", "fqdn": cl.Endpoint, "nodeResourceGroup": cl.NodeResourceGroup,
		"agentPoolProfiles": pools, "enableRBAC": true, "maxAgentPools": 100,
		"servicePrincipalProfile": document{"clientId": "msi"},
		"identityProfile":         document{"kubeletidentity": kubelet},
		"networkProfile": document{
			"networkPlugin": "azure", "networkPluginMode": "overlay", "networkPolicy": "cilium", "networkDataplane": "cilium",
			"loadBalancerSku": "standard", "podCidr": "192.168.0.0/16", "serviceCidr": "10.0.0.0/16", "dnsServiceIP": "10.0.0.10",
			"outboundType": "loadBalancer", "podCidrs": []any{"192.168.0.0/16"}, "serviceCidrs": []any{"10.0.0.0/16"}, "ipFamilies": []any{"IPv4"},
		},
		"autoUpgradeProfile":      document{"upgradeChannel": "stable", "nodeOSUpgradeChannel": "NodeImage"},
		"nodeProvisioningProfile": document{"mode": "Manual"},
		"supportPlan":             "KubernetesOfficial",
	}
	merge(props, cl.Properties)
	cluster := s.seedDocument(s.ClusterID(), display, typeCluster, cl.ResourceGroup, props)
	if cluster.Doc["identity"] == nil {
		doc := clone(cluster.Doc)
		doc["identity"] = document{"type": "SystemAssigned", "principalId": "c0ffee00-0000-4000-8000-000000000005", "tenantId": s.cfg.TenantID}
		doc["sku"] = document{"name": "Base", "tier": "Standard"}
		s.put(cluster, doc)
	}
	for _, name := range cl.AgentPools {
		s.seedDocument(s.ClusterID()+"/agentPools/"+name, display+"/agentPools", typePool, cl.ResourceGroup, s.poolProperties())
	}
}

// poolProperties are those of a fixed pool.
func (s *Server) poolProperties() document {
	return document{
		"provisioningState": "Succeeded", "powerState": document{"code": "Running"}, "count": 0, "vmSize": fixedPoolSize,
		"osDiskSizeGB": 128, "osType": "Linux", "osSKU": "Ubuntu", "mode": "System", "type": "VirtualMachineScaleSets", "enableAutoScaling": false,
		"orchestratorVersion": s.cfg.Cluster.KubernetesVersion, "currentOrchestratorVersion": s.cfg.Cluster.KubernetesVersion, "maxPods": 250,
	}
}

// fixedPoolSize is the size of fixed machines that name none.
const fixedPoolSize = "Standard_D4s_v5"

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

// AddAgentPoolMachine puts a running machine into an agent pool. It costs no
// quota, is not a leak, and is there again after a restart from the state
// file; adding one of the same name again changes nothing.
func (s *Server) AddAgentPoolMachine(m PoolMachine) (Machine, error) {
	s.mu.Lock()
	out, err := s.addPoolMachine(m)
	s.mu.Unlock()
	s.deliver()
	return out, err
}

func (s *Server) addPoolMachine(m PoolMachine) (Machine, error) {
	if len(s.cfg.Cluster.AgentPools) > 0 {
		setDefault(&m.Pool, s.cfg.Cluster.AgentPools[0])
	}
	setDefault(&m.Size, fixedPoolSize)
	setDefault(&m.Zone, "1")
	pool := s.find(s.ClusterID() + "/agentPools/" + m.Pool)
	if pool == nil {
		return Machine{}, fmt.Errorf("cannot add a machine to agent pool %q: the cluster has pools %v", m.Pool, s.cfg.Cluster.AgentPools)
	}
	size, ok := s.cat.Size(m.Size)
	if !ok {
		return Machine{}, fmt.Errorf("cannot add a machine of size %q: the catalogue has no such size", m.Size)
	}
	count, _ := at(pool.Doc, "properties", "count").(int)
	if f, ok := at(pool.Doc, "properties", "count").(float64); ok { // restored from JSON
		count = int(f)
	}
	setDefault(&m.Name, fmt.Sprintf("aks-%s-%s-vmss%06d", m.Pool, clusterSuffix, count))
	id := pool.ID + "/machines/" + m.Name
	if r := s.find(id); r != nil {
		return s.machine(r), nil
	}
	address, err := s.freeAddress(s.find(s.SubnetID()), nil)
	if err != nil {
		return Machine{}, fmt.Errorf("cannot add machine %s to agent pool %s: %w", m.Name, m.Pool, err)
	}
	s.addresses(key(s.SubnetID()))[address] = true
	r := &resource{ID: id, Typ: typeMachine, Group: s.cfg.Cluster.ResourceGroup, Fixed: true}
	r.VM = &vmState{
		ID: s.guid(), Phase: phaseSucceeded, Booted: true, CreatedAt: s.now(), BootedAt: s.now(), Address: address,
		Spec:       vmSpec{Size: size.Name, Zone: m.Zone, Priority: priorityRegular, ComputerName: m.Name, OSDiskGB: 128},
		CustomData: encode(m.CustomData),
		AKS: &AKSMachine{Cluster: s.ClusterID(), Pool: m.Pool, Name: m.Name, Mode: "System", Labels: m.Labels, Taints: m.Taints, MaxPods: 250,
			Kubernetes: s.cfg.Cluster.KubernetesVersion},
	}
	s.put(r, document{"id": id, "name": m.Name, "type": "Microsoft.ContainerService/managedClusters/agentPools/machines", "zones": []any{m.Zone},
		"properties": document{"provisioningState": "Succeeded", "network": document{"ipAddresses": []any{document{"family": "IPv4", "ip": address}}},
			"status": document{"driftAction": "Synced", "creationTimestamp": s.now().UTC().Format(time.RFC3339)}}})
	s.put(pool, withProperties(pool.Doc, document{"count": count + 1}))
	out := s.machine(r)
	s.notify(func(o MachineObserver) { o.Booted(out) })
	return out, nil
}
