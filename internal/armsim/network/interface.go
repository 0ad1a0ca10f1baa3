package network

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// reservation is how long a network interface stays reserved for a machine
// whose creation failed, before TimeScale.
const reservation = 180 * time.Second

// state is what only the simulator knows of a network interface.
type state struct {
	VM        string            `json:"vm,omitempty"`       // ID of the machine that it is attached to
	Reserved  string            `json:"reserved,omitempty"` // ID of a machine that it is kept for until Until
	Until     time.Time         `json:"until,omitzero"`     // zero when it was never reserved
	Deleting  bool              `json:"deleting,omitempty"` // its delete operation is under way
	Addresses map[string]string `json:"addresses"`          // by name of the IP configuration
	Subnets   map[string]string `json:"subnets"`            // likewise, keys of subnets
	Primary   string            `json:"primary"`            // name of the primary IP configuration
}

// primary is the address of the primary IP configuration.
func (n *state) primary() string { return n.Addresses[n.Primary] }

// nic is a network interface: its resource and its state.
type nic struct {
	*arm.Resource `json:"-"`
	state
}

// interfaces are the network interfaces of the subscription.
type interfaces struct {
	sub       *arm.Subscription
	latency   arm.Distribution // of a deletion, before the time scale
	addresses *addresses
	byKey     map[string]*nic // by key of the resource
}

// find looks an interface up by its ID; nil when there is none.
func (s *interfaces) find(id string) *nic { return s.byKey[arm.Key(id)] }

// reservedFor is the ID of the machine that the interface is kept for, if any.
func (s *interfaces) reservedFor(n *nic) string {
	if n.Reserved != "" && s.sub.Clock.Now().Before(n.Until) {
		return n.Reserved
	}
	return ""
}

func errReserved(n *nic, vm string) *arm.Error {
	return arm.NewError(http.StatusBadRequest, "NicReservedForAnotherVm",
		"Nic(s) in request is reserved for another Virtual Machine for 180 seconds. Please provide another nic(s) or retry "+
			"after 180 seconds. Reserved VM: %s. Nic: %s", vm, n.ID)
}

// body is the typed view of an interface's body.
type body struct {
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

// put creates or changes a network interface. Azure has finished it by the time it
// answers; the delay is in the answer.
func (s *interfaces) put(c *arm.Call) (arm.Reply, error) {
	var b body
	doc, err := arm.DecodeBody(c.Body, &b)
	if err != nil {
		return arm.Reply{}, err
	}
	arm.Stamp(c.Path, doc)
	if err := s.check(c.Path, doc, b); err != nil {
		return arm.Reply{}, err
	}
	if err := authorizeJoin(c, b); err != nil {
		return arm.Reply{}, err
	}
	n := s.find(c.Path.ID())
	if n == nil {
		if n, err = s.create(c.Path, doc, b); err != nil {
			return arm.Reply{}, err
		}
		return s.finished(c, http.StatusCreated, n), nil
	}
	if n.Deleting {
		return arm.Reply{}, arm.NewError(http.StatusConflict, "AnotherOperationInProgress",
			"Another operation on this or dependent resource is in progress. Resource: %s", n.ID)
	}
	if err := c.CheckMatch(n.Resource); err != nil {
		return arm.Reply{}, err
	}
	if err := s.store(n, doc, b); err != nil {
		return arm.Reply{}, err
	}
	return s.finished(c, http.StatusOK, n), nil
}

// finished is the answer to a PUT: Azure names an operation in it, though that has
// ended by then.
func (s *interfaces) finished(c *arm.Call, status int, n *nic) arm.Reply {
	op := s.sub.Operations.Start(c.Route.Action(), n.ID)
	s.sub.Operations.Finish(op.ID, nil)
	return s.sub.Operations.Accepted(c, status, op.ID, n.Doc)
}

// create makes an interface whose references were checked.
func (s *interfaces) create(p arm.Path, doc arm.Document, b body) (*nic, error) {
	n := &nic{Resource: &arm.Resource{ID: p.ID(), Type: TypeInterface, Group: p.Group}}
	if err := s.store(n, doc, b); err != nil {
		return nil, err
	}
	s.byKey[arm.Key(n.ID)] = n
	s.sub.Audit.Event("nic.created", n.ID, n.primary())
	return n, nil
}

// store gives an interface its addresses and its document. On failure nothing has
// changed.
func (s *interfaces) store(n *nic, doc arm.Document, b body) error {
	next, err := s.assign(n.state, b)
	if err != nil {
		return err
	}
	n.state = next
	s.complete(n, doc, b)
	s.sub.Resources.Put(n.Resource, doc)
	return nil
}

// check looks for the things that the interface refers to.
func (s *interfaces) check(p arm.Path, doc arm.Document, b body) error {
	if b.Location == "" {
		return arm.NewError(http.StatusBadRequest, "LocationRequired", "The location property is required for this definition.")
	}
	if len(b.Properties.IPConfigurations) == 0 {
		return arm.NewError(http.StatusBadRequest, "NetworkInterfaceMustHaveIpConfiguration",
			"Network interface %s must have one or more ipConfigurations.", p.ID())
	}
	if g := b.Properties.NetworkSecurityGroup.ID; g != "" && s.sub.Resources.Find(g) == nil {
		return arm.ErrInvalidReference(g, p.ID())
	}
	for _, ip := range b.Properties.IPConfigurations {
		if s.sub.Resources.Find(ip.Properties.Subnet.ID) == nil {
			return arm.ErrInvalidReference(ip.Properties.Subnet.ID, p.ID())
		}
		for _, pool := range ip.Properties.Pools {
			if !s.hasBackendPool(pool.ID) {
				return arm.ErrInvalidReference(pool.ID, p.ID())
			}
		}
	}
	return arm.CheckTags(doc)
}

// authorizeJoin checks the permissions on what the interface joins.
func authorizeJoin(c *arm.Call, b body) error {
	if err := c.AuthorizeLinked("Microsoft.Network/networkSecurityGroups/join/action", b.Properties.NetworkSecurityGroup.ID); err != nil {
		return err
	}
	for _, ip := range b.Properties.IPConfigurations {
		if err := c.AuthorizeLinked("Microsoft.Network/virtualNetworks/subnets/join/action", ip.Properties.Subnet.ID); err != nil {
			return err
		}
		for _, pool := range ip.Properties.Pools {
			if err := c.AuthorizeLinked("Microsoft.Network/loadBalancers/backendAddressPools/join/action", pool.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasBackendPool says whether a load balancer has the pool.
func (s *interfaces) hasBackendPool(id string) bool {
	lb, name, ok := arm.CutLast(id, "/backendAddressPools/")
	r := s.sub.Resources.Find(lb)
	if !ok || r == nil {
		return false
	}
	pools, _ := arm.At(r.Doc, "properties", "backendAddressPools").([]any)
	for _, p := range pools {
		if d, _ := p.(arm.Document); strings.EqualFold(arm.Text(d, "name"), name) {
			return true
		}
	}
	return false
}

// assign gives every IP configuration an address, keeping those it has. On
// failure nothing has changed.
func (s *interfaces) assign(old state, b body) (state, error) {
	n := old
	n.Addresses, n.Subnets, n.Primary = map[string]string{}, map[string]string{}, ""
	taken := map[string]bool{}
	for i, ip := range b.Properties.IPConfigurations {
		name, subnet := ip.Name, arm.Key(ip.Properties.Subnet.ID)
		if i == 0 || ip.Properties.Primary {
			n.Primary = name
		}
		n.Subnets[name] = subnet
		if had := old.Addresses[name]; had != "" && old.Subnets[name] == subnet {
			n.Addresses[name] = had
			continue
		}
		free, err := s.addresses.free(s.sub.Resources.Find(subnet), taken)
		if err != nil {
			return state{}, err
		}
		n.Addresses[name] = free
		taken[free] = true
	}
	for name, address := range old.Addresses {
		if n.Addresses[name] != address {
			s.addresses.release(old.Subnets[name], address)
		}
	}
	for name, address := range n.Addresses {
		s.addresses.take(n.Subnets[name], address)
	}
	return n, nil
}

// complete adds what Azure adds to the document.
func (s *interfaces) complete(n *nic, doc arm.Document, b body) {
	props := arm.Section(doc, "properties")
	props["provisioningState"] = "Succeeded"
	if n.VM != "" {
		props["virtualMachine"] = arm.Document{"id": n.VM}
	}
	setMissing(props, "resourceGuid", s.sub.IDs.GUID())
	h := s.sub.Random.Hash("mac", n.ID)
	setMissing(props, "macAddress", fmt.Sprintf("00-0D-3A-%02X-%02X-%02X", byte(h), byte(h>>8), byte(h>>16)))
	configs, _ := props["ipConfigurations"].([]any)
	for i, raw := range configs {
		conf, _ := raw.(arm.Document)
		name := b.Properties.IPConfigurations[i].Name
		conf["id"] = n.ID + "/ipConfigurations/" + name
		p := arm.Section(conf, "properties")
		p["privateIPAddress"] = n.Addresses[name]
		p["primary"] = name == n.Primary
		p["provisioningState"] = "Succeeded"
		setMissing(p, "privateIPAllocationMethod", "Dynamic")
		setMissing(p, "privateIPAddressVersion", "IPv4")
	}
}

func setMissing(d arm.Document, k string, v any) {
	if _, ok := d[k]; !ok {
		d[k] = v
	}
}

// remove starts the end of an interface; one that is attached or reserved stays.
func (s *interfaces) remove(c *arm.Call) (arm.Reply, error) {
	n := s.find(c.Path.ID())
	if n == nil {
		return arm.Reply{Status: http.StatusNoContent}, nil
	}
	if n.VM != "" {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "NicInUse",
			"Network Interface %s is used by existing resource %s. In order to delete the network interface, it must be "+
				"dissociated from the resource. To learn more, see aka.ms/deletenic.", n.ID, n.VM)
	}
	if by := s.reservedFor(n); by != "" {
		return arm.Reply{}, errReserved(n, by)
	}
	op := s.sub.Operations.Start("Microsoft.Network/networkInterfaces/delete", n.ID)
	n.Deleting = true
	s.sub.Resources.Put(n.Resource, arm.WithProperties(n.Doc, arm.Document{"provisioningState": "Deleting"}))
	s.sub.Faults.Schedule(s.sub.Random.Sample(s.latency), arm.Target{Operation: op.Action, Resource: n.ID},
		arm.Task{Kind: taskDeleted, Key: arm.Key(n.ID), Op: op.ID})
	return s.sub.Operations.Accepted(c, http.StatusAccepted, op.ID, nil), nil
}

// taskDeleted: the delete operation of an interface ends.
const taskDeleted arm.TaskKind = "nic.deleted"

// ended ends a delete operation.
func (s *interfaces) ended(t arm.Task) {
	if n := s.find(t.Key); n != nil {
		s.deleted(n)
	}
	s.sub.Operations.Finish(t.Op, nil)
}

// deleted removes an interface and frees its addresses.
func (s *interfaces) deleted(n *nic) {
	for name, address := range n.Addresses {
		s.addresses.release(n.Subnets[name], address)
	}
	s.sub.Resources.Drop(n.Resource)
	delete(s.byKey, arm.Key(n.ID))
	s.sub.Audit.Event("nic.deleted", n.ID, "")
}

// attachable returns the ID of an interface with the case of its creation, or says
// why a machine cannot have it.
func (s *interfaces) attachable(id, vm string) (string, error) {
	n := s.find(id)
	if n == nil || n.Deleting {
		return "", arm.ErrInvalidReference(id, vm)
	}
	if n.VM != "" && arm.Key(n.VM) != arm.Key(vm) {
		return "", arm.ErrInvalidParameter("networkProfile", "Network interface %s is already in use by virtual machine %s.", n.ID, n.VM)
	}
	if by := s.reservedFor(n); by != "" && arm.Key(by) != arm.Key(vm) {
		return "", errReserved(n, by)
	}
	return n.ID, nil
}

// attach attaches an interface that is attachable and returns its primary address.
func (s *interfaces) attach(n *nic, vm string) string {
	n.VM = vm
	s.sub.Resources.Put(n.Resource, arm.WithProperties(n.Doc, arm.Document{"virtualMachine": arm.Document{"id": vm}}))
	return n.primary()
}

// detach takes the interface from a machine that goes.
func (s *interfaces) detach(n *nic, keep bool) {
	if !keep {
		s.deleted(n)
		return
	}
	n.VM = ""
	doc := arm.Clone(n.Doc)
	delete(arm.Section(doc, "properties"), "virtualMachine")
	s.sub.Resources.Put(n.Resource, doc)
}
