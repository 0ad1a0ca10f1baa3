package armsim

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// nicReservation is how long a network interface stays reserved for a machine
// whose creation failed, before TimeScale.
const nicReservation = 180 * time.Second

// nicState is what the simulator knows about a network interface.
type nicState struct {
	VM        string            `json:"vm,omitempty"` // the machine that it is attached to
	Reserved  string            `json:"reserved,omitempty"`
	Until     time.Time         `json:"until,omitzero"`
	Deleting  bool              `json:"deleting,omitempty"`
	Addresses map[string]string `json:"addresses"` // by name of the IP configuration
	Subnets   map[string]string `json:"subnets"`   // likewise, keys of subnets
	Primary   string            `json:"primary"`
}

// primary is the address of the primary IP configuration.
func (n *nicState) primary() string { return n.Addresses[n.Primary] }

// reservedFor names the machine that the interface is kept for, if any.
func (s *Server) reservedFor(r *resource) string {
	if r.NIC.Reserved != "" && s.now().Before(r.NIC.Until) {
		return r.NIC.Reserved
	}
	return ""
}

// reserveNICs keeps interfaces for a machine that could not be created.
func (s *Server) reserveNICs(nics []*resource, vm string) {
	for _, n := range nics {
		n.NIC.Reserved, n.NIC.Until = vm, s.now().Add(s.scaled(nicReservation))
		s.dirty()
	}
}

func errReserved(n *resource, vm string) *apiError {
	return newError(http.StatusBadRequest, "NicReservedForAnotherVm",
		"Nic(s) in request is reserved for another Virtual Machine for 180 seconds. Please provide another nic(s) or retry after 180 seconds. Reserved VM: %s. Nic: %s", vm, n.ID)
}

// nicBody is the typed view of an interface's body.
type nicBody struct {
	Location   string `json:"location"`
	Properties struct {
		NetworkSecurityGroup struct {
			ID string `json:"id"`
		} `json:"networkSecurityGroup"`
		IPConfigurations []struct {
			Name       string `json:"name"`
			Properties struct {
				Primary          bool   `json:"primary"`
				PrivateIPAddress string `json:"privateIPAddress"`
				Subnet           struct {
					ID string `json:"id"`
				} `json:"subnet"`
				Pools []struct {
					ID string `json:"id"`
				} `json:"loadBalancerBackendAddressPools"`
			} `json:"properties"`
		} `json:"ipConfigurations"`
	} `json:"properties"`
}

// putNIC creates or changes a network interface. Azure has finished it by the
// time it answers; the delay is in the answer.
func (s *Server) putNIC(c *call) (reply, error) {
	var body nicBody
	doc, err := decodeBody(c.body, &body)
	if err != nil {
		return reply{}, err
	}
	stamp(c.path, doc)
	if err := s.checkNIC(c.path, doc, body); err != nil {
		return reply{}, err
	}
	if err := s.authorizeJoin(c, body); err != nil {
		return reply{}, err
	}
	r, status := s.find(c.path.id()), http.StatusOK
	if r == nil {
		r, status = &resource{ID: c.path.id(), Typ: typeNIC, Group: c.path.group, NIC: &nicState{}}, http.StatusCreated
	} else if r.NIC.Deleting {
		return reply{}, newError(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress. Resource: %s", r.ID)
	} else if err := checkMatch(c, r); err != nil {
		return reply{}, err
	}
	state, err := s.assign(r.NIC, body)
	if err != nil {
		return reply{}, err
	}
	r.NIC = state
	s.completeNIC(r, doc, body)
	s.put(r, doc)
	if status == http.StatusCreated {
		s.event("nic.created", r.ID, state.primary())
	}
	return reply{status: status, body: doc}, nil
}

// checkNIC looks for the things that the interface refers to.
func (s *Server) checkNIC(p path, doc document, body nicBody) error {
	if body.Location == "" {
		return newError(http.StatusBadRequest, "LocationRequired", "The location property is required for this definition.")
	}
	if len(body.Properties.IPConfigurations) == 0 {
		return newError(http.StatusBadRequest, "NetworkInterfaceMustHaveIpConfiguration", "Network interface %s must have one or more ipConfigurations.", p.id())
	}
	if g := body.Properties.NetworkSecurityGroup.ID; g != "" && s.find(g) == nil {
		return errInvalidReference(g, p.id())
	}
	for _, ip := range body.Properties.IPConfigurations {
		if s.find(ip.Properties.Subnet.ID) == nil {
			return errInvalidReference(ip.Properties.Subnet.ID, p.id())
		}
		for _, pool := range ip.Properties.Pools {
			if !s.hasBackendPool(pool.ID) {
				return errInvalidReference(pool.ID, p.id())
			}
		}
	}
	return s.checkTags(doc)
}

// authorizeJoin checks the permissions on what the interface joins.
func (s *Server) authorizeJoin(c *call, body nicBody) error {
	if err := s.authorizeLinked(c, "Microsoft.Network/networkSecurityGroups/join/action", body.Properties.NetworkSecurityGroup.ID); err != nil {
		return err
	}
	for _, ip := range body.Properties.IPConfigurations {
		if err := s.authorizeLinked(c, "Microsoft.Network/virtualNetworks/subnets/join/action", ip.Properties.Subnet.ID); err != nil {
			return err
		}
		for _, pool := range ip.Properties.Pools {
			if err := s.authorizeLinked(c, "Microsoft.Network/loadBalancers/backendAddressPools/join/action", pool.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasBackendPool says whether a load balancer has the pool.
func (s *Server) hasBackendPool(id string) bool {
	lb, name, ok := cutLast(id, "/backendAddressPools/")
	r := s.find(lb)
	if !ok || r == nil {
		return false
	}
	pools, _ := at(r.Doc, "properties", "backendAddressPools").([]any)
	for _, p := range pools {
		if d, _ := p.(document); strings.EqualFold(text(d, "name"), name) {
			return true
		}
	}
	return false
}

// assign gives every IP configuration an address, keeping those it has. On
// failure nothing has changed.
func (s *Server) assign(old *nicState, body nicBody) (*nicState, error) {
	n := *old
	n.Addresses, n.Subnets, n.Primary = map[string]string{}, map[string]string{}, ""
	taken := map[string]bool{}
	for i, ip := range body.Properties.IPConfigurations {
		name, subnet := ip.Name, key(ip.Properties.Subnet.ID)
		if i == 0 || ip.Properties.Primary {
			n.Primary = name
		}
		n.Subnets[name] = subnet
		if had := old.Addresses[name]; had != "" && old.Subnets[name] == subnet {
			n.Addresses[name] = had
			continue
		}
		free, err := s.freeAddress(s.find(subnet), taken)
		if err != nil {
			return nil, err
		}
		n.Addresses[name] = free
		taken[free] = true
	}
	for name, address := range old.Addresses {
		if n.Addresses[name] != address {
			s.release(old.Subnets[name], address)
		}
	}
	for name, address := range n.Addresses {
		s.addresses(n.Subnets[name])[address] = true
	}
	return &n, nil
}

// completeNIC adds what Azure adds to the document.
func (s *Server) completeNIC(r *resource, doc document, body nicBody) {
	props := section(doc, "properties")
	props["provisioningState"] = "Succeeded"
	if r.NIC.VM != "" {
		props["virtualMachine"] = document{"id": r.NIC.VM}
	}
	setMissing(props, "resourceGuid", s.guid())
	h := s.hash("mac", r.ID)
	setMissing(props, "macAddress", fmt.Sprintf("00-0D-3A-%02X-%02X-%02X", byte(h), byte(h>>8), byte(h>>16)))
	configs, _ := props["ipConfigurations"].([]any)
	for i, raw := range configs {
		conf, _ := raw.(document)
		name := body.Properties.IPConfigurations[i].Name
		conf["id"] = r.ID + "/ipConfigurations/" + name
		p := section(conf, "properties")
		p["privateIPAddress"] = r.NIC.Addresses[name]
		p["primary"] = name == r.NIC.Primary
		p["provisioningState"] = "Succeeded"
		setMissing(p, "privateIPAllocationMethod", "Dynamic")
		setMissing(p, "privateIPAddressVersion", "IPv4")
	}
}

func setMissing(d document, k string, v any) {
	if _, ok := d[k]; !ok {
		d[k] = v
	}
}

// deleteNIC starts the end of an interface; one that is attached or reserved stays.
func (s *Server) deleteNIC(c *call) (reply, error) {
	r := s.find(c.path.id())
	if r == nil {
		return reply{status: http.StatusNoContent}, nil
	}
	if r.NIC.VM != "" {
		return reply{}, newError(http.StatusBadRequest, "NicInUse", "Network Interface %s is used by existing resource %s. In order to delete the network interface, it must be dissociated from the resource. To learn more, see aka.ms/deletenic.", r.ID, r.NIC.VM)
	}
	if by := s.reservedFor(r); by != "" {
		return reply{}, errReserved(r, by)
	}
	op := s.start("Microsoft.Network/networkInterfaces/delete", r.ID)
	r.NIC.Deleting = true
	s.put(r, withProperties(r.Doc, document{"provisioningState": "Deleting"}))
	s.schedule(s.sample(s.cfg.Latency.NIC), faultTarget{Operation: op.Action, Resource: r.ID},
		task{Kind: taskNICDeleted, Key: key(r.ID), Op: op.ID})
	return s.accepted(c, http.StatusAccepted, op, nil), nil
}

// nicDeleted removes an interface and frees its addresses.
func (s *Server) nicDeleted(r *resource) {
	for name, address := range r.NIC.Addresses {
		s.release(r.NIC.Subnets[name], address)
	}
	s.drop(r)
	s.event("nic.deleted", r.ID, "")
}

// addresses is the set of taken addresses of a subnet.
func (s *Server) addresses(subnet string) map[string]bool {
	set := s.ips[subnet]
	if set == nil {
		set = map[string]bool{}
		s.ips[subnet] = set
	}
	return set
}

func (s *Server) release(subnet, address string) { delete(s.addresses(subnet), address) }

// azureReserved counts the addresses of a subnet that Azure keeps: the network,
// the gateway, two for DNS and the broadcast address.
const azureReserved = 5

// capacityOf is the number of addresses that a subnet can give away.
func capacityOf(prefix netip.Prefix) int {
	return max(0, 1<<(32-prefix.Bits())-azureReserved)
}

// subnetPrefix reads the prefix of a subnet's document.
func subnetPrefix(r *resource) netip.Prefix {
	p, _ := netip.ParsePrefix(text(r.Doc, "properties", "addressPrefix"))
	return p
}

// freeAddress finds the first free address of a subnet besides the ones taken by the caller.
func (s *Server) freeAddress(subnet *resource, taken map[string]bool) (string, error) {
	prefix, used := subnetPrefix(subnet), s.addresses(key(subnet.ID))
	size := capacityOf(prefix)
	if len(used)+len(taken) < size {
		first := binary.BigEndian.Uint32(prefix.Masked().Addr().AsSlice()) + 4
		for range size {
			// The search starts where the last one ended, so that addresses are not reused at once.
			s.lastIP = (s.lastIP + 1) % uint32(size)
			var raw [4]byte
			binary.BigEndian.PutUint32(raw[:], first+s.lastIP)
			if a := netip.AddrFrom4(raw).String(); !used[a] && !taken[a] {
				return a, nil
			}
		}
	}
	return "", newError(http.StatusBadRequest, "SubnetIsFull", "Subnet %s with address prefix %s does not have enough capacity for %d IP addresses.", lastSegment(subnet.ID), prefix, 1)
}
