package prerequisites

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// networkRows are those of the cluster's subnets.
func networkRows() []Row {
	row := func(number int, name, wants, why string, worst Verdict, check func(*Facts) answer, more ...Source) Row {
		needs := append([]Source{SourceCluster, SourceNetwork}, more...)
		return Row{Number: number, Name: name, Wants: wants, Why: why, Worst: worst, needs: needs, check: check}
	}
	return []Row{
		row(18, "node-subnet-size", "The subnet of machines has free addresses for ten more machines",
			"A machine needs an address, and with a node subnet one for every pod; without one Azure refuses it with SubnetIsFull.",
			Warning, nodeSubnetSize),
		row(19, "address-overlap", "The address ranges of the network, pods and Services do not overlap",
			"Packets for an address in two ranges go astray: pods reach the wrong end or nothing.", Failed, addressOverlap),
		row(20, "api-server-subnet-size", "The API server's subnet, where it has one, is a /28 or larger",
			"AKS puts the API server's pods and its load balancer there.", Failed, apiServerSubnetSize),
		row(21, "api-server-subnet-delegation", "The API server's subnet is delegated to Microsoft.ContainerService/managedClusters",
			"AKS may put the API server there only where the subnet is delegated to it.", Failed, apiServerDelegation),
		row(22, "api-server-subnet-addresses", "The API server's subnet keeps nine addresses for the cluster",
			"Without them the API server cannot be scaled, and may go down.", Failed, apiServerAddresses),
		row(23, "outbound-path",
			"The subnet of machines has the NAT gateway or the default route that the outbound type counts on, and none that drops all",
			"Machines that do not reach the internet cannot be provisioned: they pull images and packages.", Failed, outboundPath, SourceRoutes),
	}
}

// delegation is what the API server's subnet is delegated to.
const delegation = "Microsoft.ContainerService/managedClusters"

// spareMachines is for how many machines a subnet should have room.
const spareMachines = 10

// addressesOfMachine is how many addresses a machine takes of its subnet.
func addressesOfMachine(f *Facts) int {
	const podsOfNodeSubnet = 30
	if cmp.Or(f.Cluster.Network.Plugin, "azure") == "azure" && f.Cluster.Network.Mode == "" {
		return 1 + podsOfNodeSubnet
	}
	return 1
}

func nodeSubnetSize(f *Facts) answer {
	var read, faults []string
	each := addressesOfMachine(f)
	for _, key := range f.Network.Nodes {
		s := f.Network.Subnets[key]
		read = append(read, fmt.Sprintf("%s %s, %d addresses free", nameOf(s.ID), joined(s.Prefixes), s.Free()))
		if s.Free() < spareMachines*each {
			faults = append(faults, fmt.Sprintf("subnet %s (%s) has %d free addresses, a machine takes %d",
				nameOf(s.ID), joined(s.Prefixes), s.Free(), each))
		}
	}
	a := answer{read: strings.Join(read, "; ")}
	if len(faults) > 0 {
		a.fault = strings.Join(faults, "; ")
		a.fix = "az network vnet subnet update --ids " + f.Network.Subnets[f.Network.Nodes[0]].ID + " --address-prefixes PREFIX"
	}
	return a
}

func addressOverlap(f *Facts) answer {
	type named struct {
		name   string
		prefix netip.Prefix
	}
	var all []named
	add := func(name string, texts ...string) {
		for _, text := range texts {
			if p, err := parsePrefix(text); err == nil {
				all = append(all, named{name, p})
			}
		}
	}
	for _, p := range f.Network.AddressSpace {
		all = append(all, named{"the virtual network", p})
	}
	n := &f.Cluster.Network
	add("pods", n.PodCIDRs...)
	add("Services", n.ServiceCIDRs...)
	a := answer{}
	var read []string
	for i, x := range all {
		read = append(read, x.name+" "+x.prefix.String())
		for _, y := range all[i+1:] {
			if x.name != y.name && x.prefix.Overlaps(y.prefix) {
				a.fault = fmt.Sprintf("%s of %s overlaps %s of %s", x.prefix, x.name, y.prefix, y.name)
			}
		}
	}
	if dns, err := netip.ParseAddr(n.DNSServiceIP); err == nil && a.fault == "" && len(n.ServiceCIDRs) > 0 &&
		!slices.ContainsFunc(all, func(x named) bool { return x.name == "Services" && x.prefix.Contains(dns) }) {
		a.fault = fmt.Sprintf("the address of DNS, %s, is not one of Services (%s)", dns, strings.Join(n.ServiceCIDRs, ", "))
	}
	a.read = strings.Join(read, ", ")
	if a.fault != "" {
		a.fix = "az aks create with --pod-cidr and --service-cidr outside of the virtual network: they cannot be changed later"
	}
	return a
}

// apiServerSubnet is the subnet of the API server; nil, with what to say, where it has none.
func apiServerSubnet(f *Facts) (*Subnet, answer) {
	id := f.Cluster.APIServerSubnetID
	if id == "" {
		return nil, answer{read: "the API server is in no subnet of the network"}
	}
	s := f.Network.Subnets[strings.ToLower(id)]
	if s == nil {
		return nil, answer{read: id, fault: "subnet " + nameOf(id) + " does not exist", fix: "az network vnet subnet create --ids " + id}
	}
	return s, answer{read: fmt.Sprintf("%s %s, %d addresses taken", nameOf(id), joined(s.Prefixes), s.Taken)}
}

func apiServerSubnetSize(f *Facts) answer {
	const smallest = 28
	s, a := apiServerSubnet(f)
	if s == nil {
		return a
	}
	for _, p := range s.Prefixes {
		if p.Bits() > smallest {
			a.fault = fmt.Sprintf("subnet %s is a /%d, the API server needs a /%d or larger", nameOf(s.ID), p.Bits(), smallest)
			a.fix = "az network vnet subnet update --ids " + s.ID + " --address-prefixes PREFIX"
		}
	}
	return a
}

func apiServerDelegation(f *Facts) answer {
	s, a := apiServerSubnet(f)
	if s == nil {
		return answer{read: a.read} // said by the row above
	}
	a.read = nameOf(s.ID) + " delegated to " + cmp.Or(strings.Join(s.Delegations, ", "), "nothing")
	if !slices.ContainsFunc(s.Delegations, func(d string) bool { return strings.EqualFold(d, delegation) }) {
		a.fault = "subnet " + nameOf(s.ID) + " is not delegated to " + delegation
		a.fix = "az network vnet subnet update --ids " + s.ID + " --delegations " + delegation
	}
	return a
}

func apiServerAddresses(f *Facts) answer {
	const reserved, smallest = 9, 28
	s, a := apiServerSubnet(f)
	if s == nil || slices.ContainsFunc(s.Prefixes, func(p netip.Prefix) bool { return p.Bits() > smallest }) {
		return answer{read: a.read} // said by the rows above
	}
	if left := s.size() - s.Foreign; left < reserved {
		a.fault = fmt.Sprintf("subnet %s has %d addresses left for the cluster, which reserves %d: others use %d",
			nameOf(s.ID), left, reserved, s.Foreign)
		a.fix = "az network vnet subnet show --ids " + s.ID + " --query ipConfigurations, and move what is not the cluster's to another subnet"
	}
	return a
}

func outboundPath(f *Facts) answer {
	is := f.Cluster.Network.OutboundType
	udr := strings.EqualFold(is, "userDefinedRouting")
	a := answer{read: "outboundType " + cmp.Or(is, "not set")}
	for _, key := range f.Network.Nodes {
		s := f.Network.Subnets[key]
		switch {
		case !udr && strings.EqualFold(s.DefaultRoute, "None") && !strings.EqualFold(is, "none") && !strings.EqualFold(is, "block"):
			a.fault = "the route table of subnet " + nameOf(s.ID) + " drops what goes to 0.0.0.0/0, and the outbound type is " +
				cmp.Or(is, "not set")
			a.fix = "az network route-table route list --resource-group GROUP --route-table-name " + nameOf(s.RouteTableID) +
				", and delete the route of next hop type None"
		case strings.EqualFold(is, "userAssignedNATGateway") && !s.NATGateway:
			a.fault = "subnet " + nameOf(s.ID) + " has no NAT gateway, and the outbound type is userAssignedNATGateway"
			a.fix = "az network vnet subnet update --ids " + s.ID + " --nat-gateway GATEWAY_ID"
		case udr && s.RouteTableID == "":
			a.fault = "subnet " + nameOf(s.ID) + " has no route table, and the outbound type is userDefinedRouting"
			a.fix = "az network vnet subnet update --ids " + s.ID + " --route-table TABLE_ID"
		case udr && (s.DefaultRoute == "" || strings.EqualFold(s.DefaultRoute, "None")):
			a.fault = "the route table of subnet " + nameOf(s.ID) + " has no way out for 0.0.0.0/0, and the outbound type is userDefinedRouting"
			a.fix = "az network route-table route create --resource-group GROUP --route-table-name " + nameOf(s.RouteTableID) +
				" --name default --address-prefix 0.0.0.0/0 --next-hop-type VirtualAppliance --next-hop-ip-address FIREWALL"
		}
	}
	return a
}

// nameOf is the last part of a resource id.
func nameOf(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

func joined(prefixes []netip.Prefix) string {
	var out []string
	for _, p := range prefixes {
		out = append(out, p.String())
	}
	return strings.Join(out, ", ")
}
