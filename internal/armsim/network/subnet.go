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
	if p := subnetPrefix(r); !p.IsValid() || !p.Addr().Is4() {
		s.sub.Resources.Drop(r)
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "InvalidAddressPrefixFormat",
			"Address prefix '%s' of resource %s is not formatted correctly.", arm.Text(r.Doc, "properties", "addressPrefix"), r.ID)
	}
	var subnets []any
	for _, sub := range s.sub.Resources.Sorted(typeSubnet) {
		if arm.Key(sub.ID)[:len(arm.Key(vnet.ID))] == arm.Key(vnet.ID) {
			subnets = append(subnets, arm.Document{"id": sub.ID, "name": arm.LastSegment(sub.ID)})
		}
	}
	s.sub.Resources.Put(vnet, arm.WithProperties(vnet.Doc, arm.Document{"subnets": subnets}))
	return rep, nil
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
