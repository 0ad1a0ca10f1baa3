package network

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Types of resources, lower case, as they are stored.
const (
	TypeInterface  = "microsoft.network/networkinterfaces"
	typeNetwork    = "microsoft.network/virtualnetworks"
	typeSubnet     = "microsoft.network/virtualnetworks/subnets"
	typeBalancer   = "microsoft.network/loadbalancers"
	typeGroup      = "microsoft.network/networksecuritygroups"
	typeRouteTable = "microsoft.network/routetables"
	typeNATGateway = "microsoft.network/natgateways"
)

// The same as they are written.
const (
	displayInterface  = "Microsoft.Network/networkInterfaces"
	displayNetwork    = "Microsoft.Network/virtualNetworks"
	displaySubnet     = "Microsoft.Network/virtualNetworks/subnets"
	displayBalancer   = "Microsoft.Network/loadBalancers"
	displayGroup      = "Microsoft.Network/networkSecurityGroups"
	displayRouteTable = "Microsoft.Network/routeTables"
	displayNATGateway = "Microsoft.Network/natGateways"
)

// Config is what of the subscription's configuration concerns the network.
type Config struct {
	NodeResourceGroup string           // of the cluster's network and machines
	Subnet            netip.Prefix     // of the nodes
	Suffix            string           // the eight digits that AKS puts into the names of the cluster's network
	Latency           arm.Distribution // of the deletion of an interface, before the time scale
	OutboundType      string           // of the managed cluster, such as loadBalancer
}

// subnetName is the name of the subnet of the nodes, as AKS gives it.
const subnetName = "aks-subnet"

// Provider is Microsoft.Network. Its methods need the subscription's lock.
type Provider struct {
	sub        *arm.Subscription
	cfg        Config
	addresses  *addresses
	interfaces *interfaces
	subnets    *subnets
}

// New makes the provider of a subscription.
func New(sub *arm.Subscription, cfg Config) *Provider {
	p := &Provider{sub: sub, cfg: cfg, addresses: &addresses{taken: map[string]map[string]bool{}}}
	p.interfaces = &interfaces{sub: sub, latency: cfg.Latency, addresses: p.addresses, byKey: map[string]*nic{}}
	p.subnets = &subnets{sub: sub, addresses: p.addresses, interfaces: p.interfaces, claims: claims{}}
	sub.Tasks.On(taskDeleted, p.interfaces.ended)
	for _, typ := range []string{TypeInterface, typeNetwork, typeSubnet, typeBalancer, typeGroup, typeRouteTable, typeNATGateway} {
		sub.Resources.ShowETags(typ, "etag")
	}
	return p
}

// versions are those of the SDK modules in use, and older ones that clients of the
// same resources send.
var versions = []string{"2022-01-01", "2024-05-01", "2025-01-01", "2025-03-01", "2025-05-01"}

// Routes are the rows of the provider.
func (p *Provider) Routes() []arm.Route {
	const read, write = "NetworkRead", "NetworkWrite"
	documents := arm.Documents{Resources: p.sub.Resources}
	rows := []arm.Route{
		{Method: http.MethodPut, Type: displayInterface, Item: true, Policy: write, Handle: p.interfaces.put},
		{Method: http.MethodPatch, Type: displayInterface, Item: true, Policy: write, Handle: documents.UpdateTags},
		{Method: http.MethodDelete, Type: displayInterface, Item: true, Policy: write, Handle: p.interfaces.remove},
		{Method: http.MethodGet, Type: displayInterface, Item: true, Policy: read, Handle: documents.Get},
		{Method: http.MethodGet, Type: displayInterface, Policy: read, Handle: documents.List},
		{Method: http.MethodGet, Type: displayNetwork + "/usages", Policy: read, Handle: p.subnets.listUsages},
		{Method: http.MethodGet, Type: displaySubnet, Item: true, Policy: read, Handle: p.subnets.get},
		{Method: http.MethodGet, Type: displaySubnet, Policy: read, Handle: documents.List},
		{Method: http.MethodPut, Type: displaySubnet, Item: true, Policy: write, Handle: p.subnets.put},
		{Method: http.MethodGet, Type: "Microsoft.Network/locations/operations", Item: true,
			Scope: arm.SubscriptionScope, Open: true, Handle: p.sub.Operations.Get},
	}
	for i := range rows {
		rows[i].Versions = versions
	}
	network := documents
	network.Complete = p.completeNetwork
	for _, row := range network.Routes(displayNetwork, read, write, versions, network.UpdateTags) {
		if row.Method == http.MethodPut {
			row.Handle = func(c *arm.Call) (arm.Reply, error) { return p.subnets.putNetwork(c, network) }
		}
		rows = append(rows, row)
	}
	for _, typ := range []string{displayBalancer, displayGroup, displayRouteTable, displayNATGateway} {
		rows = append(rows, documents.Routes(typ, read, write, versions, documents.UpdateTags)...)
	}
	return rows
}

// completeNetwork gives a virtual network its GUID, which stays once it is drawn, as do
// subnets that a client does not name.
func (p *Provider) completeNetwork(old *arm.Resource, doc arm.Document) {
	if old != nil && arm.At(doc, "properties", "subnets") == nil {
		arm.Section(doc, "properties")["subnets"] = arm.CloneValue(arm.At(old.Doc, "properties", "subnets"))
	}
	guid := p.sub.IDs.GUID()
	if old != nil {
		if had := arm.Text(old.Doc, "properties", "resourceGuid"); had != "" {
			guid = had
		}
	}
	arm.Section(doc, "properties")["resourceGuid"] = guid
}

// Seed makes the cluster's network, as AKS does, unless a restored state has it.
func (p *Provider) Seed() {
	group := p.nodeID(displayGroup, "aks-agentpool-"+p.cfg.Suffix+"-nsg")
	p.seed(group, displayGroup, typeGroup, arm.Document{"securityRules": []any{}})
	p.seed(p.networkID(), displayNetwork, typeNetwork, arm.Document{
		"addressSpace": arm.Document{"addressPrefixes": []any{p.networkPrefix().String()}},
		"resourceGuid": p.sub.IDs.GUID(),
		"subnets":      []any{arm.Document{"id": p.SubnetID(), "name": subnetName}},
	})
	subnet := arm.Document{"addressPrefix": p.cfg.Subnet.String(), "networkSecurityGroup": arm.Document{"id": group}}
	arm.Merge(subnet, p.seedOutbound())
	p.seed(p.SubnetID(), displaySubnet, typeSubnet, subnet)
}

// seedOutbound makes what the nodes reach the internet by, and returns what their subnet
// says of it.
func (p *Provider) seedOutbound() arm.Document {
	routes, subnet := []any{}, arm.Document{}
	table := p.nodeID(displayRouteTable, "aks-agentpool-"+p.cfg.Suffix+"-routetable")
	switch p.cfg.OutboundType {
	case "managedNATGateway":
		gateway := p.nodeID(displayNATGateway, "aks-natgateway-"+p.cfg.Suffix)
		p.seed(gateway, displayNATGateway, typeNATGateway, arm.Document{"idleTimeoutInMinutes": 4})
		subnet["natGateway"] = arm.Document{"id": gateway}
	case "userDefinedRouting":
		routes = []any{arm.Document{"id": table + "/routes/default", "name": "default", "properties": arm.Document{
			"addressPrefix": "0.0.0.0/0", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.225.0.4", "provisioningState": "Succeeded",
		}}}
		subnet["routeTable"] = arm.Document{"id": table}
	case "none":
	default:
		p.seedBalancer()
	}
	p.seed(table, displayRouteTable, typeRouteTable, arm.Document{"routes": routes})
	return subnet
}

// seedBalancer makes the load balancer, which clusters with another way out have only
// once a Service needs it.
func (p *Provider) seedBalancer() {
	balancer := p.nodeID(displayBalancer, "kubernetes")
	var pools []any
	for _, name := range []string{"aksOutboundBackendPool", "kubernetes"} {
		pools = append(pools, arm.Document{"id": balancer + "/backendAddressPools/" + name, "name": name,
			"properties": arm.Document{"provisioningState": "Succeeded"}})
	}
	p.seed(balancer, displayBalancer, typeBalancer, arm.Document{"backendAddressPools": pools})
}

func (p *Provider) seed(id, display, typ string, props arm.Document) {
	props["provisioningState"] = "Succeeded"
	doc := arm.Document{"type": display, "properties": props}
	if typ != typeSubnet { // which is part of its network
		doc["location"] = p.sub.Region
	}
	p.sub.Resources.Seed(id, typ, p.cfg.NodeResourceGroup, doc)
}

// networkPrefix is the address space around the subnet of the nodes.
func (p *Provider) networkPrefix() netip.Prefix {
	around, _ := p.cfg.Subnet.Addr().Prefix(max(8, p.cfg.Subnet.Bits()-4)) // the bits of a valid prefix are in range
	return around
}

// nodeID is the ID of a resource in the node resource group.
func (p *Provider) nodeID(typ, name string) string {
	return p.sub.ResourceID(p.cfg.NodeResourceGroup, typ, name)
}

func (p *Provider) networkID() string { return p.nodeID(displayNetwork, "aks-vnet-"+p.cfg.Suffix) }

// SubnetID is the resource ID of the subnet of the nodes.
func (p *Provider) SubnetID() string { return p.networkID() + "/subnets/" + subnetName }

// Attachable returns the ID of an interface with the case of its creation, or says
// why it cannot be attached to the machine.
func (p *Provider) Attachable(id, vm string) (string, error) { return p.interfaces.attachable(id, vm) }

// Reserve keeps an interface for a machine that could not be created.
func (p *Provider) Reserve(id, vm string) {
	n := p.interfaces.find(id)
	n.Reserved, n.Until = vm, p.sub.Clock.Now().Add(p.sub.Clock.Scaled(reservation))
	p.sub.Changed()
}

// Attach attaches an interface that is attachable and returns its primary address.
func (p *Provider) Attach(id, vm string) string {
	return p.interfaces.attach(p.interfaces.find(id), vm)
}

// Detach takes an interface from a machine that goes; without keep the interface
// goes too. One that is not attached to the machine stays as it is.
func (p *Provider) Detach(id, vm string, keep bool) {
	if n := p.interfaces.find(id); n != nil && arm.Key(n.VM) == arm.Key(vm) {
		p.interfaces.detach(n, keep)
	}
}

// Attached is the ID of the machine that an interface is attached to, empty when
// there is none.
func (p *Provider) Attached(id string) string {
	if n := p.interfaces.find(id); n != nil {
		return n.VM
	}
	return ""
}

// Create makes an interface with one address in a subnet, which exists; an empty ID
// means that of the nodes. It returns the interface's ID, and errs when the subnet
// is full.
func (p *Provider) Create(name, subnet string) (string, error) {
	if subnet == "" {
		subnet = p.SubnetID()
	}
	path, _ := arm.ParsePath(p.nodeID(displayInterface, name)) // well-formed by construction
	config := arm.Document{"name": "ipconfig1", "properties": arm.Document{"primary": true, "subnet": arm.Document{"id": subnet}}}
	doc := arm.Stamp(path, arm.Document{"location": p.sub.Region, "properties": arm.Document{"ipConfigurations": []any{config}}})
	raw, err := json.Marshal(doc)
	if err != nil {
		return "", err
	}
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return "", err
	}
	n, err := p.interfaces.create(path, doc, b)
	if err != nil {
		return "", err
	}
	return n.ID, nil
}

// Claim takes an address in the subnet of the nodes for something that has no
// interface of its own.
func (p *Provider) Claim(owner string) (address string, err error) {
	subnet := p.sub.Resources.Find(p.SubnetID())
	if address, err = p.addresses.free(subnet, nil); err != nil {
		return "", err
	}
	k := arm.Key(subnet.ID)
	p.addresses.take(k, address)
	p.subnets.claims[owner] = claim{Subnet: k, Address: address}
	return address, nil
}

// Unsound names an address that is given twice or lost, or an interface that is
// attached to nothing; empty when all fits together.
func (p *Provider) Unsound() string {
	taken := map[string]string{} // owner by subnet and address
	for _, n := range p.interfaces.byKey {
		if n.VM != "" && p.sub.Resources.Find(n.VM) == nil {
			return n.ID + " is attached to a machine that is gone"
		}
		for name, a := range n.Addresses {
			k := n.Subnets[name] + " " + a
			if other := taken[k]; other != "" {
				return n.ID + " has the address of " + other
			}
			taken[k] = n.ID
			if !p.addresses.of(n.Subnets[name])[a] {
				return a + " is in use and free"
			}
		}
	}
	marked := 0
	for _, set := range p.addresses.taken {
		marked += len(set)
	}
	if used := len(taken) + len(p.subnets.claims); marked != used {
		return fmt.Sprintf("%d addresses are taken, %d in use", marked, used)
	}
	return ""
}

// saved is what the provider keeps of its resources besides their documents.
type saved struct {
	Interfaces map[string]*nic `json:"interfaces"`
	Claims     claims          `json:"claims"`
}

// Snapshot copies what is saved.
func (p *Provider) Snapshot() any {
	c := saved{Interfaces: make(map[string]*nic, len(p.interfaces.byKey)), Claims: maps.Clone(p.subnets.claims)}
	for k, n := range p.interfaces.byKey {
		f := *n
		c.Interfaces[k] = &f
	}
	return c
}

// Restore takes a snapshot, whose resources are restored already, and derives the
// addresses from it.
func (p *Provider) Restore(raw json.RawMessage) error {
	var c saved
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	for k, n := range c.Interfaces {
		if n.Resource = p.sub.Resources.Find(k); n.Resource == nil {
			return fmt.Errorf("interface %s has no resource", strings.ToLower(k))
		}
		p.interfaces.byKey[k] = n
		for name, a := range n.Addresses {
			p.addresses.take(n.Subnets[name], a)
		}
	}
	for owner, one := range c.Claims {
		p.subnets.claims[owner] = one
		p.addresses.take(one.Subnet, one.Address)
	}
	return nil
}
