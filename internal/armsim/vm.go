package armsim

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The two priorities that matter here; Azure's older word Low means Spot.
const (
	priorityRegular = "Regular"
	prioritySpot    = "Spot"
)

// phase is where a machine is in its life.
type phase string

const (
	phaseCreating    phase = "Creating"
	phaseSucceeded   phase = "Succeeded"
	phaseFailed      phase = "Failed"
	phaseDeleting    phase = "Deleting"
	phaseDeallocated phase = "Deallocated" // evicted with the policy Deallocate
)

// vmState is what the simulator knows about a machine besides its document.
type vmState struct {
	ID         string      `json:"id"` // vmId: a namesake made later has another
	Spec       vmSpec      `json:"spec"`
	Phase      phase       `json:"phase"`
	CustomData string      `json:"customData,omitempty"` // base64, as sent; never shown again
	Operation  string      `json:"operation,omitempty"`  // of its creation
	Failure    *apiError   `json:"failure,omitempty"`    // what its creation will end with or has ended with
	Booted     bool        `json:"booted,omitempty"`
	BootLost   bool        `json:"bootLost,omitempty"`  // a fault took its boot
	Counted    bool        `json:"counted,omitempty"`   // it is in the quota and capacity books
	EvictAt    time.Time   `json:"evictAt,omitzero"`    // end of the eviction notice
	EvictedBy  string      `json:"evictedBy,omitempty"` // the fault that evicts it
	CreatedAt  time.Time   `json:"createdAt"`
	BootedAt   time.Time   `json:"bootedAt,omitzero"`
	Address    string      `json:"address"`
	AKS        *AKSMachine `json:"aks,omitempty"`
	AKSID      string      `json:"aksId,omitempty"` // the agent pool machine in front of this VM
}

// Running says that the kubelet of the machine runs.
func (v *vmState) Running() bool {
	return v.Booted && (v.Phase == phaseSucceeded || v.Phase == phaseDeleting)
}

// vmSpec is what decides about a machine: everything of its body that is checked.
type vmSpec struct {
	Size         string   `json:"size"`
	Zone         string   `json:"zone"` // "0" without
	Priority     string   `json:"priority"`
	Eviction     string   `json:"eviction,omitempty"`
	ComputerName string   `json:"computerName"`
	Image        string   `json:"image"`
	OSDisk       string   `json:"osDisk"`
	OSDiskGB     int      `json:"osDiskGB"`
	KeepDisk     bool     `json:"keepDisk,omitempty"` // the OS disk outlives the machine
	Ephemeral    bool     `json:"ephemeral,omitempty"`
	Placement    string   `json:"placement,omitempty"` // of the ephemeral disk
	Controller   string   `json:"controller,omitempty"`
	UltraSSD     bool     `json:"ultraSSD,omitempty"`
	HostCrypt    bool     `json:"hostCrypt,omitempty"`
	Trusted      bool     `json:"trusted,omitempty"`
	Reservation  string   `json:"reservation,omitempty"`
	NICs         []nicRef `json:"nics"`
}

// nicRef is a machine's reference to a network interface.
type nicRef struct {
	ID   string `json:"id"`
	Keep bool   `json:"keep,omitempty"` // it outlives the machine
}

// vmBody is the typed view of a VM's body.
type vmBody struct {
	Location   string   `json:"location"`
	Zones      []string `json:"zones"`
	Properties struct {
		HardwareProfile struct {
			VMSize string `json:"vmSize"`
		} `json:"hardwareProfile"`
		Priority       string `json:"priority"`
		EvictionPolicy string `json:"evictionPolicy"`
		StorageProfile struct {
			DiskControllerType string `json:"diskControllerType"`
			ImageReference     struct {
				ID                      string `json:"id"`
				CommunityGalleryImageID string `json:"communityGalleryImageId"`
			} `json:"imageReference"`
			OSDisk struct {
				Name             string `json:"name"`
				DiskSizeGB       int    `json:"diskSizeGB"`
				DeleteOption     string `json:"deleteOption"`
				DiffDiskSettings *struct {
					Placement string `json:"placement"`
				} `json:"diffDiskSettings"`
			} `json:"osDisk"`
		} `json:"storageProfile"`
		OSProfile struct {
			ComputerName string `json:"computerName"`
			CustomData   string `json:"customData"`
		} `json:"osProfile"`
		NetworkProfile struct {
			NetworkInterfaces []struct {
				ID         string `json:"id"`
				Properties struct {
					DeleteOption string `json:"deleteOption"`
				} `json:"properties"`
			} `json:"networkInterfaces"`
		} `json:"networkProfile"`
		SecurityProfile struct {
			EncryptionAtHost bool   `json:"encryptionAtHost"`
			SecurityType     string `json:"securityType"`
		} `json:"securityProfile"`
		AdditionalCapabilities struct {
			UltraSSDEnabled bool `json:"ultraSSDEnabled"`
		} `json:"additionalCapabilities"`
		CapacityReservation struct {
			CapacityReservationGroup struct {
				ID string `json:"id"`
			} `json:"capacityReservationGroup"`
		} `json:"capacityReservation"`
	} `json:"properties"`
}

// spec takes from the body what decides about the machine.
func (b vmBody) spec(name string) vmSpec {
	p := b.Properties
	m := vmSpec{
		Size: p.HardwareProfile.VMSize, Zone: "0", Priority: priorityRegular, Eviction: p.EvictionPolicy,
		ComputerName: p.OSProfile.ComputerName, Image: p.StorageProfile.ImageReference.CommunityGalleryImageID,
		OSDisk: p.StorageProfile.OSDisk.Name, OSDiskGB: p.StorageProfile.OSDisk.DiskSizeGB,
		KeepDisk:   !strings.EqualFold(p.StorageProfile.OSDisk.DeleteOption, "Delete"),
		Controller: p.StorageProfile.DiskControllerType, UltraSSD: p.AdditionalCapabilities.UltraSSDEnabled,
		HostCrypt: p.SecurityProfile.EncryptionAtHost, Trusted: strings.EqualFold(p.SecurityProfile.SecurityType, "TrustedLaunch"),
		Reservation: p.CapacityReservation.CapacityReservationGroup.ID,
	}
	if len(b.Zones) > 0 {
		m.Zone = b.Zones[0]
	}
	if strings.EqualFold(p.Priority, prioritySpot) || strings.EqualFold(p.Priority, "Low") {
		m.Priority = prioritySpot
	}
	if d := p.StorageProfile.OSDisk.DiffDiskSettings; d != nil {
		m.Ephemeral, m.Placement, m.KeepDisk = true, d.Placement, false
	}
	setDefault(&m.Image, p.StorageProfile.ImageReference.ID)
	setDefault(&m.OSDisk, name+"_OsDisk_1")
	setDefault(&m.OSDiskGB, 30)
	setDefault(&m.ComputerName, name)
	for _, n := range p.NetworkProfile.NetworkInterfaces {
		m.NICs = append(m.NICs, nicRef{ID: n.ID, Keep: !strings.EqualFold(n.Properties.DeleteOption, "Delete")})
	}
	return m
}

// target is the machine as faults select it.
func (s *Server) target(id, operation string, m vmSpec) faultTarget {
	size, _ := s.cat.Size(m.Size)
	return faultTarget{Operation: operation, Resource: id, Size: m.Size, Zone: m.Zone, Priority: m.Priority, Family: size.QuotaFamily()}
}

const actionVMWrite, actionVMDelete = "Microsoft.Compute/virtualMachines/write", "Microsoft.Compute/virtualMachines/delete"

// putVM creates a machine, or changes what may be changed of one that exists.
func (s *Server) putVM(c *call) (reply, error) {
	var body vmBody
	doc, err := decodeBody(c.body, &body)
	if err != nil {
		return reply{}, err
	}
	stamp(c.path, doc)
	if old := s.find(c.path.id()); old != nil {
		return s.updateVM(c, old, doc, body)
	}
	if err := s.checkTags(doc); err != nil {
		return reply{}, err
	}
	m := body.spec(c.path.name())
	nics, err := s.checkVM(c.path, body, m)
	if err != nil {
		return reply{}, err
	}
	if err := s.authorizeUse(c, nics, doc); err != nil {
		return reply{}, err
	}
	customData := body.Properties.OSProfile.CustomData
	failure, now := s.allocate(c.path.id(), m)
	if failure != nil && now {
		if failure.Code != "OperationNotAllowed" { // quota is looked at before the network is touched
			s.reserveNICs(nics, c.path.id())
		}
		return reply{}, failure
	}
	r := s.createVM(c.path, doc, m, failure)
	r.VM.CustomData = customData
	for _, n := range nics {
		n.NIC.VM = r.ID
		s.put(n, withProperties(n.Doc, document{"virtualMachine": document{"id": r.ID}}))
		setDefault(&r.VM.Address, n.NIC.primary())
	}
	return s.accepted(c, http.StatusCreated, s.st.Operations[r.VM.Operation], r.Doc), nil
}

// authorizeUse checks the permissions on what the machine uses.
func (s *Server) authorizeUse(c *call, nics []*resource, doc document) error {
	for _, n := range nics {
		if err := s.authorizeLinked(c, "Microsoft.Network/networkInterfaces/join/action", n.ID); err != nil {
			return err
		}
	}
	identities, _ := at(doc, "identity", "userAssignedIdentities").(document)
	for id := range identities {
		if err := s.authorizeLinked(c, "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", id); err != nil {
			return err
		}
	}
	return nil
}

// createVM stores a machine that was accepted and plans what becomes of it.
func (s *Server) createVM(p path, doc document, m vmSpec, failure *apiError) *resource {
	r := &resource{ID: p.id(), Typ: typeVM, Group: p.group}
	op := s.start(actionVMWrite, r.ID)
	r.VM = &vmState{ID: s.guid(), Spec: m, Phase: phaseCreating, Operation: op.ID, Failure: failure, CreatedAt: s.now()}
	props := section(doc, "properties")
	props["vmId"] = r.VM.ID
	props["provisioningState"] = string(phaseCreating)
	props["timeCreated"] = timestamp(s.now())
	if os, ok := props["osProfile"].(document); ok {
		delete(os, "customData")
		delete(os, "adminPassword")
	}
	disk := section(section(doc, "properties"), "storageProfile")
	osDisk := section(disk, "osDisk")
	osDisk["name"], osDisk["osType"] = m.OSDisk, "Linux"
	diskID := s.diskID(p.group, m.OSDisk)
	section(osDisk, "managedDisk")["id"] = diskID
	s.count(r, 1)
	s.put(r, doc)
	s.record(AuditEntry{Kind: AuditLifecycle, Action: "vm.accepted", Resource: r.ID, Detail: m.Size + " zone " + m.Zone + " " + m.Priority, Tags: tagsOf(doc)})
	s.stats["vm.accepted"]++
	t := task{Kind: taskVMCreated, Key: key(r.ID), Op: op.ID, Life: r.VM.ID}
	delay := s.sample(s.cfg.Latency.VMCreate)
	if failure != nil {
		t.Kind, delay = taskVMFailed, s.sample(s.cfg.Latency.VMFail)
	} else {
		s.createDisk(diskID, r)
	}
	s.schedule(delay, s.target(r.ID, actionVMWrite, m), t)
	return r
}

// vmImmutable are the properties that a PUT on an existing machine must repeat.
var vmImmutable = [][]string{
	{"priority"}, {"osProfile", "computerName"}, {"osProfile", "adminUsername"},
	{"storageProfile", "imageReference", "id"}, {"storageProfile", "imageReference", "communityGalleryImageId"},
	{"storageProfile", "osDisk", "name"}, {"hardwareProfile", "vmSize"}, {"securityProfile", "securityType"},
}

// updateVM is a PUT on a machine that exists.
func (s *Server) updateVM(c *call, old *resource, doc document, body vmBody) (reply, error) {
	if old.VM.Phase == phaseDeleting {
		return reply{}, newError(http.StatusConflict, "OperationNotAllowed", "Operation 'PUT' is not allowed on VM '%s' since the VM is marked for deletion. You can only retry the Delete operation (or wait for an ongoing one to complete).", c.path.name())
	}
	oldProps, _ := old.Doc["properties"].(document)
	newProps, _ := doc["properties"].(document)
	for _, keys := range vmImmutable {
		if was, is := text(oldProps, keys...), text(newProps, keys...); is != "" && !strings.EqualFold(was, is) {
			return reply{}, errImmutable(strings.Join(keys, "."))
		}
	}
	if data := body.Properties.OSProfile.CustomData; data != "" && data != old.VM.CustomData {
		return reply{}, errImmutable("osProfile.customData")
	}
	if m := body.spec(c.path.name()); m.Zone != old.VM.Spec.Zone {
		return reply{}, errImmutable("zones")
	}
	return s.changeVM(c, old, document{"tags": doc["tags"], "identity": doc["identity"]})
}

// patchVM changes tags and identities, which is all that may change of a running machine here.
func (s *Server) patchVM(c *call) (reply, error) {
	patch, err := decodeBody(c.body, nil)
	if err != nil {
		return reply{}, err
	}
	old := s.find(c.path.id())
	if old == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	if props, _ := patch["properties"].(document); props != nil {
		for _, keys := range vmImmutable {
			if is := text(props, keys...); is != "" && !strings.EqualFold(is, text(old.Doc["properties"].(document), keys...)) {
				return reply{}, errImmutable(strings.Join(keys, "."))
			}
		}
	}
	return s.changeVM(c, old, patch)
}

// changeVM merges identities and replaces tags. A null leaves things as they are.
func (s *Server) changeVM(c *call, old *resource, patch document) (reply, error) {
	if err := s.checkTags(patch); err != nil {
		return reply{}, err
	}
	if err := checkMatch(c, old); err != nil {
		return reply{}, err
	}
	doc := clone(old.Doc)
	if tags, ok := patch["tags"].(document); ok {
		doc["tags"] = cloneValue(tags)
	}
	if err := s.authorizeUse(c, nil, patch); err != nil {
		return reply{}, err
	}
	if identity, ok := patch["identity"].(document); ok {
		merge(section(doc, "identity"), identity)
	}
	s.put(old, doc)
	return reply{status: http.StatusOK, body: doc}, nil
}

// checkMatch honours If-Match.
func checkMatch(c *call, r *resource) error {
	want, has := c.r.Header.Get("If-Match"), text(r.Doc, "etag")
	if want == "" || want == "*" || want == has {
		return nil
	}
	return newError(http.StatusPreconditionFailed, "PreconditionFailed", "The precondition given in one of the request headers evaluated to false: If-Match is %s, the resource has %s.", want, has)
}

// getVM shows a machine.
func (s *Server) getVM(c *call) (reply, error) {
	r := s.find(c.path.id())
	if r == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	doc := r.Doc
	if c.r.URL.Query().Get("$expand") == "instanceView" {
		doc = withProperties(doc, document{"instanceView": s.instanceView(r)})
	}
	return reply{status: http.StatusOK, body: doc}, nil
}

// getInstanceView shows what the platform sees of the machine.
func (s *Server) getInstanceView(c *call) (reply, error) {
	r := s.find(c.path.parent())
	if r == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	return reply{status: http.StatusOK, body: s.instanceView(r)}, nil
}

func (s *Server) instanceView(r *resource) document {
	status := func(code, level, display string) document {
		return document{"code": code, "level": level, "displayStatus": display}
	}
	state := status("ProvisioningState/"+strings.ToLower(string(r.VM.Phase)), "Info", "Provisioning "+strings.ToLower(string(r.VM.Phase)))
	if f := r.VM.Failure; f != nil && r.VM.Phase == phaseFailed {
		state = status("ProvisioningState/failed/"+f.Code, "Error", "Provisioning failed")
		state["message"] = f.Message
	}
	view := document{"computerName": r.VM.Spec.ComputerName, "osName": "linux"}
	power := status("PowerState/running", "Info", "VM running")
	agent := status("ProvisioningState/Unavailable", "Warning", "Not Ready")
	switch {
	case r.VM.Phase == phaseFailed || r.VM.Phase == phaseDeallocated:
		power = status("PowerState/deallocated", "Info", "VM deallocated")
	case r.VM.Phase == phaseCreating:
		power = status("PowerState/starting", "Info", "VM starting")
	case r.VM.Booted:
		agent = status("ProvisioningState/succeeded", "Info", "Ready")
	}
	view["statuses"] = []any{state, power}
	view["vmAgent"] = document{"vmAgentVersion": "2.13.1.1", "statuses": []any{agent}}
	return view
}

// deleteVM starts the end of a machine.
func (s *Server) deleteVM(c *call) (reply, error) {
	r := s.find(c.path.id())
	if r == nil {
		return reply{status: http.StatusNoContent}, nil
	}
	return s.accepted(c, http.StatusAccepted, s.beginDelete(r, c.r.URL.Query().Get("forceDeletion") == "true"), nil), nil
}

// beginDelete marks a machine for deletion. Forced, it loses its power at
// once; otherwise it runs to the end of the operation.
func (s *Server) beginDelete(r *resource, force bool) *operation {
	v := r.VM
	s.finish(v.Operation, newError(http.StatusConflict, "OperationPreempted", "The operation has been preempted by a more recent operation."))
	if v.Phase != phaseDeleting {
		v.Phase = phaseDeleting
		s.put(r, withProperties(r.Doc, document{"provisioningState": string(phaseDeleting)}))
		s.event("vm.deleting", r.ID, "")
	}
	if force {
		s.powerOff(r)
	}
	op := s.start(actionVMDelete, r.ID)
	s.schedule(s.sample(s.cfg.Latency.VMDelete), s.target(r.ID, actionVMDelete, v.Spec),
		task{Kind: taskVMDeleted, Key: key(r.ID), Op: op.ID, Life: v.ID})
	return op
}

// simulateEviction evicts one spot machine, as the API of that name does.
func (s *Server) simulateEviction(c *call) (reply, error) {
	r := s.find(c.path.parent())
	if r == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	if r.VM.Spec.Priority != prioritySpot {
		return reply{}, newError(http.StatusConflict, "OperationNotAllowed", "Operation 'simulateEviction' is not allowed on VM '%s' since it is not a spot VM.", lastSegment(r.ID))
	}
	s.vmWarn(r)
	return reply{status: http.StatusNoContent}, nil
}

var (
	zonePattern     = regexp.MustCompile(`^[1-9]$`)
	computerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$`)
)

// checkVM answers everything that Azure refuses at once about a new machine,
// and finds its network interfaces.
func (s *Server) checkVM(p path, b vmBody, m vmSpec) ([]*resource, error) {
	switch {
	case b.Location == "":
		return nil, newError(http.StatusBadRequest, "LocationRequired", "The location property is required for this definition.")
	case !strings.EqualFold(strings.ReplaceAll(b.Location, " ", ""), s.cfg.Region):
		return nil, newError(http.StatusBadRequest, "LocationNotAvailableForResourceType", "The provided location '%s' is not available for resource type '%s'. List of available regions for the resource type is '%s'.", b.Location, p.displayType(), s.cfg.Region)
	case len(b.Zones) > 1 || len(b.Zones) == 1 && !zonePattern.MatchString(b.Zones[0]):
		return nil, errInvalidParameter("zones", "The zone(s) '%s' for resource '%s' is not supported. A virtual machine takes one zone: 1, 2 or 3.", strings.Join(b.Zones, ","), p.name())
	case !computerPattern.MatchString(m.ComputerName):
		return nil, errInvalidParameter("computerName", "Linux host name cannot exceed 64 characters in length or contain the following characters: ` ~ ! @ # $ %% ^ & * ( ) = + _ [ ] { } \\ | ; : ' \" , < > / ?")
	case len(m.NICs) == 0:
		return nil, errInvalidParameter("networkProfile", "Virtual Machine must have at least one network interface.")
	}
	if _, err := base64.StdEncoding.DecodeString(b.Properties.OSProfile.CustomData); err != nil {
		return nil, errInvalidParameter("customData", "Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 characters.")
	}
	if len(b.Properties.OSProfile.CustomData) > 87380 {
		return nil, errInvalidParameter("customData", "Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 characters.")
	}
	if err := s.checkSize(m); err != nil {
		return nil, err
	}
	if err := s.checkImage(m); err != nil {
		return nil, err
	}
	var nics []*resource
	for _, ref := range m.NICs {
		n := s.find(ref.ID)
		if n == nil || n.NIC == nil || n.NIC.Deleting {
			return nil, errInvalidReference(ref.ID, p.id())
		}
		if n.NIC.VM != "" && key(n.NIC.VM) != key(p.id()) {
			return nil, errInvalidParameter("networkProfile", "Network interface %s is already in use by virtual machine %s.", n.ID, n.NIC.VM)
		}
		if by := s.reservedFor(n); by != "" && key(by) != key(p.id()) {
			return nil, errReserved(n, by)
		}
		nics = append(nics, n)
	}
	return nics, nil
}

// checkSize answers what a size cannot do.
func (s *Server) checkSize(m vmSpec) error {
	size, ok := s.cat.Size(m.Size)
	zones := s.cat.Zones(m.Size, s.cfg.Region)
	if !ok || zones == nil {
		return errInvalidParameter("vmSize", "The value %s provided for the VM size is not valid. The valid sizes in the current region are returned by the list of SKUs of location %s.", m.Size, s.cfg.Region)
	}
	if s.restricted(m.Size, m.Zone) || m.Zone != "0" && !slices.Contains(zones, m.Zone) {
		return errSkuNotAvailable(m.Size, s.cfg.Region)
	}
	switch {
	case m.Priority == prioritySpot && !size.SpotCapable():
		return errInvalidParameter("priority", "The VM size '%s' does not support Azure Spot. Choose a size whose LowPriorityCapable capability is True.", m.Size)
	case m.HostCrypt && !size.EncryptionAtHost():
		return errInvalidParameter("encryptionAtHost", "The VM size '%s' does not support encryption at host.", m.Size)
	case m.UltraSSD && (!size.UltraSSD() || m.Zone == "0"):
		return errInvalidParameter("ultraSSDEnabled", "The VM size '%s' does not support Ultra SSD in the requested zone.", m.Size)
	case m.Trusted && (!size.Gen2() || size.TrustedLaunchDisabled()):
		return newError(http.StatusBadRequest, "BadRequest", "The VM size '%s' is not supported for creation of VMs and Virtual Machine Scale Set with 'TrustedLaunch' security type.", m.Size)
	case m.Controller != "" && !slices.ContainsFunc(size.DiskControllers(), func(c string) bool { return strings.EqualFold(c, m.Controller) }):
		return errInvalidParameter("storageProfile.diskControllerType", "The VM size '%s' cannot boot with OS image or disk. Please check that disk controller types supported by the OS image or disk is one of the supported disk controller types for the VM size '%s'. Please query sku api at https://aka.ms/azure-compute-skus to determine supported disk controller types for the VM size.", m.Size, m.Size)
	case m.Ephemeral:
		return checkEphemeral(m, size)
	}
	return nil
}
