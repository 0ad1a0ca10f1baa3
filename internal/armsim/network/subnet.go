package network

import (
	"net/http"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// subnets answer the calls on subnets.
type subnets struct {
	sub        *arm.Subscription
	addresses  *addresses
	interfaces *interfaces
	claims     claims
}

func (s *subnets) documents() arm.Documents { return arm.Documents{Resources: s.sub.Resources} }

// claims are addresses that are used without an interface of their own, as the
// machines of a scale set do: by ID of the owner.
type claims map[string]claim

type claim struct {
	Subnet  string `json:"subnet"` // key
	Address string `json:"address"`
}

// owners lists the IDs of those that have an address in a subnet, by key.
func (c claims) owners(subnet string) []string {
	var ids []string
	for id, one := range c {
		if one.Subnet == subnet {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(arm.Key(a), arm.Key(b)) })
	return ids
}

// get shows a subnet with the IP configurations in it.
func (s *subnets) get(c *arm.Call) (arm.Reply, error) {
	r := s.sub.Resources.Find(c.Path.ID())
	if r == nil {
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "NotFound", "Resource %s not found.", c.Path.ID())
	}
	refs := []any{}
	for _, n := range s.sub.Resources.Sorted(TypeInterface) {
		for name, subnet := range s.interfaces.find(n.ID).Subnets {
			if subnet == arm.Key(r.ID) {
				refs = append(refs, arm.Document{"id": n.ID + "/ipConfigurations/" + name})
			}
		}
	}
	for _, owner := range s.claims.owners(arm.Key(r.ID)) {
		refs = append(refs, arm.Document{"id": owner + "/networkInterfaces/primary/ipConfigurations/ipconfig1"})
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.WithProperties(r.Doc, arm.Document{"ipConfigurations": refs})}, nil
}

// put creates or changes a subnet and shows it in its network.
func (s *subnets) put(c *arm.Call) (arm.Reply, error) {
	vnet := s.sub.Resources.Find(c.Path.Parent())
	if vnet == nil {
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "ResourceNotFound", "The Resource '%s' was not found.", c.Path.Parent())
	}
	rep, err := s.documents().Put(c)
	if err != nil {
		return rep, err
	}
	r := s.sub.Resources.Find(c.Path.ID())
	if err := s.checkPrefix(r); err != nil {
		return arm.Reply{}, err
	}
	s.show(vnet)
	return rep, nil
}

// putNetwork creates or changes a virtual network, with the subnets in its body.
func (s *subnets) putNetwork(c *arm.Call, networks arm.Documents) (arm.Reply, error) {
	rep, err := networks.Put(c)
	if err != nil {
		return rep, err
	}
	vnet := s.sub.Resources.Find(c.Path.ID())
	named, _ := arm.At(vnet.Doc, "properties", "subnets").([]any)
	for _, one := range named {
		subnet, _ := one.(arm.Document)
		if subnet["properties"] == nil { // one that is there, named alone
			continue
		}
		// A name below that of a network is well-formed.
		p, _ := arm.ParsePath(vnet.ID + "/subnets/" + arm.Text(subnet, "name"))
		r := s.sub.Resources.Find(p.ID())
		if r == nil {
			r = &arm.Resource{ID: p.ID(), Type: typeSubnet, Group: p.Group}
		}
		doc := arm.Stamp(p, arm.Document{"properties": arm.CloneValue(subnet["properties"])})
		arm.Section(doc, "properties")["provisioningState"] = "Succeeded"
		s.sub.Resources.Put(r, doc)
		if err := s.checkPrefix(r); err != nil {
			return arm.Reply{}, err
		}
	}
	s.show(vnet)
	rep.Body = vnet.Doc
	return rep, nil
}

// checkPrefix drops a subnet whose prefix is none of IPv4.
func (s *subnets) checkPrefix(r *arm.Resource) error {
	if p := subnetPrefix(r); p.IsValid() && p.Addr().Is4() {
		return nil
	}
	s.sub.Resources.Drop(r)
	return arm.NewError(http.StatusBadRequest, "InvalidAddressPrefixFormat",
		"Address prefix '%s' of resource %s is not formatted correctly.", arm.Text(r.Doc, "properties", "addressPrefix"), r.ID)
}

// show makes a virtual network list its subnets.
func (s *subnets) show(vnet *arm.Resource) {
	var shown []any
	for _, sub := range s.sub.Resources.Sorted(typeSubnet) {
		if arm.Within(sub.ID, vnet.ID) {
			shown = append(shown, arm.Document{"id": sub.ID, "name": arm.LastSegment(sub.ID)})
		}
	}
	s.sub.Resources.Put(vnet, arm.WithProperties(vnet.Doc, arm.Document{"subnets": shown}))
}

// listUsages shows how many addresses of each subnet are taken.
func (s *subnets) listUsages(c *arm.Call) (arm.Reply, error) {
	vnet := s.sub.Resources.Find(c.Path.Parent())
	if vnet == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	values := []any{}
	for _, sub := range s.sub.Resources.Sorted(typeSubnet) {
		if k := arm.Key(vnet.ID) + "/"; len(arm.Key(sub.ID)) <= len(k) || arm.Key(sub.ID)[:len(k)] != k {
			continue
		}
		values = append(values, arm.Document{
			"id": sub.ID, "unit": "Count", "currentValue": len(s.addresses.of(arm.Key(sub.ID))), "limit": capacityOf(subnetPrefix(sub)),
			"name": arm.Document{"localizedValue": "Subnet size and usage", "value": "SubnetSpace"},
		})
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{"value": values}}, nil
}
