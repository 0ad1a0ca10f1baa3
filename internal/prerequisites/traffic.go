package prerequisites

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// trafficRows are those of traffic that security groups must let through.
func trafficRows() []Row {
	needs := []Source{SourceCluster, SourceNetwork, SourceSecurity}
	row := func(number int, name, wants, why string, check func(*Facts) answer) Row {
		return Row{Number: number, Name: name, Wants: wants, Why: why, Worst: Failed, needs: needs, check: check}
	}
	return []Row{
		row(24, "nodes-to-api-server", "Security groups let nodes reach the API server's subnet on TCP 443 and 4443",
			"Kubelets join and work through it.", nodesToAPIServer),
		row(25, "load-balancer-to-api-server", "Security groups let the Azure load balancer reach the API server's subnet on TCP 9988",
			"The load balancer asks there whether the API server is healthy.", balancerToAPIServer),
		row(26, "node-to-node", "Security groups let nodes reach each other on all ports",
			"Kubelets, network agents and node ports count on it.", nodeToNode),
		row(27, "pod-to-node", "Security groups let pods reach nodes on all ports",
			"The routing of Services needs it.", podToNode),
		row(28, "pod-to-pod", "Security groups let pods reach each other on all ports, DNS included",
			"Services and DNS count on it.", podToPod),
		row(29, "required-fqdns", "Machines reach on TCP 443 what they are provisioned from: the registry of Microsoft, the API server, packages",
			"A machine that cannot pull does not become a node.", requiredFQDNs),
	}
}

// local are the prefixes that the tag VirtualNetwork stands for: the network, and the
// pods of an overlay.
func (f *Facts) local() []netip.Prefix {
	return append(slices.Clone(f.Network.AddressSpace), f.pods()...)
}

// pods are the prefixes of pods: those of the overlay, else the nodes'.
func (f *Facts) pods() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range f.Cluster.Network.PodCIDRs {
		if p, err := parsePrefix(text); err == nil && p.Addr().Is4() {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return f.nodes()
	}
	return out
}

// nodes are the prefixes of the subnets of machines.
func (f *Facts) nodes() []netip.Prefix {
	var out []netip.Prefix
	for _, key := range f.Network.Nodes {
		out = append(out, f.Network.Subnets[key].Prefixes...)
	}
	return out
}

// stopped names the rule that stops a flow that leaves the subnets in from and enters
// those in to; either may be empty where the end is outside of the network.
func (f *Facts) stopped(w flow, from, to []*Subnet) string {
	for _, s := range from {
		if rule := blocked(s, false, w, f.local()); rule != "" {
			return "rule " + rule + " of " + nameOf(s.GroupID) + ", outbound"
		}
	}
	for _, s := range to {
		if rule := blocked(s, true, w, f.local()); rule != "" {
			return "rule " + rule + " of " + nameOf(s.GroupID) + ", inbound"
		}
	}
	return ""
}

// nodeSubnets are the subnets of machines.
func (f *Facts) nodeSubnets() []*Subnet {
	var out []*Subnet
	for _, key := range f.Network.Nodes {
		out = append(out, f.Network.Subnets[key])
	}
	return out
}

// groups says which security groups were looked at.
func groups(subnets ...*Subnet) string {
	var names []string
	for _, s := range subnets {
		if s != nil && s.GroupID != "" && !slices.Contains(names, nameOf(s.GroupID)) {
			names = append(names, nameOf(s.GroupID))
		}
	}
	if len(names) == 0 {
		return "no security group"
	}
	return "security group " + strings.Join(names, ", ")
}

// permit is the command that lets a flow through.
func permit(s *Subnet, direction, from, to, protocol, ports string) string {
	group := "GROUP"
	if s != nil && s.GroupID != "" {
		group = nameOf(s.GroupID)
	}
	return fmt.Sprintf("az network nsg rule create --nsg-name %s --resource-group GROUP --name nap-allow --priority 100 --direction %s "+
		"--access Allow --protocol %s --source-address-prefixes %s --destination-address-prefixes %s --destination-port-ranges %s",
		group, direction, protocol, from, to, ports)
}

func nodesToAPIServer(f *Facts) answer {
	s := f.apiServer()
	if s == nil {
		return answer{read: "the API server is in no subnet of the network"}
	}
	a := answer{read: groups(append(f.nodeSubnets(), s)...)}
	for _, port := range []string{"443", "4443"} {
		if rule := f.stopped(flow{protocol: "Tcp", port: port, from: f.nodes(), to: s.Prefixes}, f.nodeSubnets(), []*Subnet{s}); rule != "" {
			a.fault = fmt.Sprintf("%s stops nodes on their way to TCP %s of the API server", rule, port)
			a.fix = permit(s, "Inbound", spaced(f.nodes()), spaced(s.Prefixes), "Tcp", "443 4443")
		}
	}
	return a
}

func balancerToAPIServer(f *Facts) answer {
	s := f.apiServer()
	if s == nil {
		return answer{read: "the API server is in no subnet of the network"}
	}
	a := answer{read: groups(s)}
	if rule := f.stopped(flow{protocol: "Tcp", port: "9988", fromTags: []string{tagBalancer}, to: s.Prefixes}, nil, []*Subnet{s}); rule != "" {
		a.fault = rule + " stops the load balancer on its way to TCP 9988 of the API server"
		a.fix = permit(s, "Inbound", tagBalancer, spaced(s.Prefixes), "Tcp", "9988")
	}
	return a
}

// apiServer is the API server's subnet; nil where it has none that was read.
func (f *Facts) apiServer() *Subnet {
	return f.Network.Subnets[strings.ToLower(f.Cluster.APIServerSubnetID)]
}

// between is the check of traffic of all protocols within the subnets of machines.
func (f *Facts) between(from, to []netip.Prefix, fromName, toName string) answer {
	a := answer{read: groups(f.nodeSubnets()...)}
	if len(from) == 0 || len(to) == 0 {
		return a
	}
	if rule := f.stopped(flow{protocol: anything, port: anything, from: from, to: to}, f.nodeSubnets(), f.nodeSubnets()); rule != "" {
		a.fault = fmt.Sprintf("%s stops %s on their way to %s", rule, fromName, toName)
		a.fix = permit(f.nodeSubnets()[0], "Inbound", spaced(from), spaced(to), "'*'", "'*'")
	}
	return a
}

func nodeToNode(f *Facts) answer { return f.between(f.nodes(), f.nodes(), "nodes", "other nodes") }

// podToNode and podToPod are told apart from nodeToNode in an overlay alone: else pods
// have addresses of the nodes' subnet.
func podToNode(f *Facts) answer {
	if len(f.Cluster.Network.PodCIDRs) == 0 {
		return answer{read: "pods have addresses of the nodes' subnet"}
	}
	return f.between(f.pods(), f.nodes(), "pods", "nodes")
}

func podToPod(f *Facts) answer {
	if len(f.Cluster.Network.PodCIDRs) == 0 {
		return answer{read: "pods have addresses of the nodes' subnet"}
	}
	return f.between(f.pods(), f.pods(), "pods", "other pods")
}

func spaced(prefixes []netip.Prefix) string { return strings.ReplaceAll(joined(prefixes), ", ", " ") }
