package armsim

import (
	"cmp"
	"net/http"
	"slices"
)

// seed makes the cluster and its network, as AKS does, unless a restored state
// has them.
func (s *Server) seed() {
	cl := s.cfg.Cluster
	for _, g := range append([]string{cl.ResourceGroup, cl.NodeResourceGroup}, s.cfg.ResourceGroups...) {
		s.seedDocument("/subscriptions/"+s.cfg.SubscriptionID+"/resourceGroups/"+g, "Microsoft.Resources/resourceGroups", typeGroup, g, document{"provisioningState": "Succeeded"})
	}
	network := "Microsoft.Network/"
	s.seedNode(network+"networkSecurityGroups", typeNSG, nsgName, document{"securityRules": []any{}})
	s.seedNode(network+"routeTables", typeRouteTable, routeTableName, document{"routes": []any{}})
	s.seedNode(network+"virtualNetworks", typeVNET, vnetName, document{
		"addressSpace": document{"addressPrefixes": []any{vnetPrefix(cl).String()}},
		"resourceGuid": s.guid(),
		"subnets":      []any{document{"id": s.SubnetID(), "name": subnetName}},
	})
	s.seedDocument(s.SubnetID(), network+"virtualNetworks/subnets", typeSubnet, cl.NodeResourceGroup, document{
		"provisioningState": "Succeeded", "addressPrefix": cl.Subnet.String(),
		"networkSecurityGroup": document{"id": s.nodeID(network+"networkSecurityGroups", nsgName)},
	})
	s.seedNode(network+"loadBalancers", typeLB, "kubernetes", document{"backendAddressPools": []any{
		s.backendPool("kubernetes", "aksOutboundBackendPool"), s.backendPool("kubernetes", "kubernetes"),
	}})
	s.seedCluster()
}

// vnetPrefix is the address space around the subnet of the nodes.
func vnetPrefix(cl Cluster) interface{ String() string } {
	p, _ := cl.Subnet.Addr().Prefix(max(8, cl.Subnet.Bits()-4)) // the bits of a valid prefix are in range
	return p
}

func (s *Server) backendPool(lb, name string) document {
	return document{"id": s.nodeID("Microsoft.Network/loadBalancers", lb) + "/backendAddressPools/" + name, "name": name,
		"properties": document{"provisioningState": "Succeeded"}}
}

// nodeID is the ID of a resource in the node resource group.
func (s *Server) nodeID(typ, name string) string {
	return "/subscriptions/" + s.cfg.SubscriptionID + "/resourceGroups/" + s.cfg.Cluster.NodeResourceGroup + "/providers/" + typ + "/" + name
}

// SubnetID is the resource ID of the subnet of the nodes.
func (s *Server) SubnetID() string {
	return s.nodeID("Microsoft.Network/virtualNetworks", vnetName) + "/subnets/" + subnetName
}

func (s *Server) seedNode(display, typ, name string, props document) {
	props["provisioningState"] = "Succeeded"
	s.seedDocument(s.nodeID(display, name), display, typ, s.cfg.Cluster.NodeResourceGroup, props)
}

// seedDocument stores a resource that the subscription comes with.
func (s *Server) seedDocument(id, display, typ, group string, props document) *resource {
	if r := s.find(id); r != nil {
		return r
	}
	r := &resource{ID: id, Typ: typ, Group: group, Fixed: true}
	s.put(r, document{"id": id, "name": lastSegment(id), "type": display, "location": s.cfg.Region, "properties": props})
	return r
}

// rebuildBooks derives quota, capacity and addresses from the resources of a
// restored state.
func (s *Server) rebuildBooks() {
	for _, r := range s.st.Resources {
		if r.VM != nil && r.VM.Counted {
			r.VM.Counted = false
			s.count(r, 1)
		}
		if r.NIC != nil {
			for name, a := range r.NIC.Addresses {
				s.addresses(r.NIC.Subnets[name])[a] = true
			}
		}
		if r.Fixed && r.VM != nil && r.VM.Address != "" {
			s.addresses(key(s.SubnetID()))[r.VM.Address] = true
		}
		s.graph.settle(key(r.ID), r.Doc)
	}
	s.quota.settle()
}

// sorted lists the resources of a type by ID.
func (s *Server) sorted(typ string) []*resource {
	var rs []*resource
	for _, r := range s.st.byType[typ] {
		rs = append(rs, r)
	}
	slices.SortFunc(rs, func(a, b *resource) int { return cmp.Compare(key(a.ID), key(b.ID)) })
	return rs
}

// getSubnet shows a subnet with the IP configurations in it.
func (s *Server) getSubnet(c *call) (reply, error) {
	r := s.find(c.path.id())
	if r == nil {
		return reply{}, newError(http.StatusNotFound, "NotFound", "Resource %s not found.", c.path.id())
	}
	refs := []any{}
	for _, n := range s.sorted(typeNIC) {
		for name, subnet := range n.NIC.Subnets {
			if subnet == key(r.ID) {
				refs = append(refs, document{"id": n.ID + "/ipConfigurations/" + name})
			}
		}
	}
	for _, m := range s.sorted(typeMachine) {
		if m.Fixed && m.VM != nil && m.VM.Address != "" && key(r.ID) == key(s.SubnetID()) {
			refs = append(refs, document{"id": m.ID + "/networkInterfaces/primary/ipConfigurations/ipconfig1"})
		}
	}
	return reply{status: http.StatusOK, body: withProperties(r.Doc, document{"ipConfigurations": refs})}, nil
}

// putSubnet creates or changes a subnet and shows it in its network.
func (s *Server) putSubnet(c *call) (reply, error) {
	vnet := s.find(c.path.parent())
	if vnet == nil {
		return reply{}, newError(http.StatusNotFound, "ResourceNotFound", "The Resource '%s' was not found.", c.path.parent())
	}
	rep, err := s.putDocument(c)
	if err != nil {
		return rep, err
	}
	r := s.find(c.path.id())
	if p := subnetPrefix(r); !p.IsValid() || !p.Addr().Is4() {
		s.drop(r)
		return reply{}, newError(http.StatusBadRequest, "InvalidAddressPrefixFormat", "Address prefix '%s' of resource %s is not formatted correctly.", text(r.Doc, "properties", "addressPrefix"), r.ID)
	}
	var subnets []any
	for _, sub := range s.sorted(typeSubnet) {
		if key(sub.ID)[:len(key(vnet.ID))] == key(vnet.ID) {
			subnets = append(subnets, document{"id": sub.ID, "name": lastSegment(sub.ID)})
		}
	}
	s.put(vnet, withProperties(vnet.Doc, document{"subnets": subnets}))
	return rep, nil
}

// listSubnetUsages shows how many addresses of each subnet are taken.
func (s *Server) listSubnetUsages(c *call) (reply, error) {
	vnet := s.find(c.path.parent())
	if vnet == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	values := []any{}
	for _, sub := range s.sorted(typeSubnet) {
		if k := key(vnet.ID) + "/"; len(key(sub.ID)) <= len(k) || key(sub.ID)[:len(k)] != k {
			continue
		}
		values = append(values, document{
			"id": sub.ID, "unit": "Count", "currentValue": len(s.addresses(key(sub.ID))), "limit": capacityOf(subnetPrefix(sub)),
			"name": document{"localizedValue": "Subnet size and usage", "value": "SubnetSpace"},
		})
	}
	return reply{status: http.StatusOK, body: document{"value": values}}, nil
}
