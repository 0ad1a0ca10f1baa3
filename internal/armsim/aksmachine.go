package armsim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

func encode(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

// machineBody is the typed view of an agent pool machine's body.
type machineBody struct {
	Zones      []string `json:"zones"`
	Properties struct {
		NodeImageVersion string            `json:"nodeImageVersion"`
		Mode             string            `json:"mode"`
		Priority         string            `json:"priority"`
		Tags             map[string]string `json:"tags"`
		Network          struct {
			VnetSubnetID string `json:"vnetSubnetID"`
		} `json:"network"`
		Hardware struct {
			VMSize          string `json:"vmSize"`
			UltraSSDEnabled bool   `json:"ultraSsdEnabled"`
			GPUProfile      struct {
				Driver string `json:"driver"`
			} `json:"gpuProfile"`
		} `json:"hardware"`
		OperatingSystem struct {
			OSSKU        string `json:"osSKU"`
			OSDiskSizeGB int    `json:"osDiskSizeGB"`
			OSDiskType   string `json:"osDiskType"`
		} `json:"operatingSystem"`
		Kubernetes struct {
			NodeLabels               map[string]string `json:"nodeLabels"`
			OrchestratorVersion      string            `json:"orchestratorVersion"`
			NodeTaints               []string          `json:"nodeTaints"`
			NodeInitializationTaints []string          `json:"nodeInitializationTaints"`
			MaxPods                  int               `json:"maxPods"`
		} `json:"kubernetes"`
		Security struct {
			EnableEncryptionAtHost bool `json:"enableEncryptionAtHost"`
			EnableVTPM             bool `json:"enableVTPM"`
			EnableSecureBoot       bool `json:"enableSecureBoot"`
		} `json:"security"`
	} `json:"properties"`
}

var machinePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,33}$`)

// putMachine creates the machine of the path, or with BatchPutMachine several;
// on one that exists it changes the tags.
func (s *Server) putMachine(c *call) (reply, error) {
	var body machineBody
	doc, err := decodeBody(c.body, &body)
	if err != nil {
		return reply{}, err
	}
	pool := s.find(c.path.parent())
	if pool == nil {
		return reply{}, newError(http.StatusNotFound, "NotFound", "Could not find agent pool %s.", c.path.parent())
	}
	if old := s.find(c.path.id()); old != nil && c.r.Header.Get("BatchPutMachine") == "" {
		if c.r.Header.Get("If-None-Match") == "*" {
			return reply{}, newError(http.StatusPreconditionFailed, "PreconditionFailed", "Machine %s exists already.", c.path.name())
		}
		return s.updateMachine(c, old, doc, body)
	}
	if c.r.Method == http.MethodPatch {
		return reply{}, errResourceNotFound(c.path)
	}
	entries, err := batchOf(c, body)
	if err != nil {
		return reply{}, err
	}
	// What an earlier call has made stays as it is.
	entries = slices.DeleteFunc(entries, func(e batchEntry) bool { return s.find(pool.ID+"/machines/"+e.MachineName) != nil })
	if err := s.checkMachines(pool, entries, body); err != nil {
		return reply{}, err
	}
	if err := s.createMachines(c, pool, entries, doc, body); err != nil {
		return reply{}, err
	}
	asked := s.find(c.path.id())
	if len(entries) == 0 {
		return reply{status: http.StatusOK, body: asked.Doc}, nil
	}
	vm := s.find(text(asked.Doc, "properties", "resourceId"))
	return s.accepted(c, http.StatusCreated, s.st.Operations[vm.VM.Operation], asked.Doc), nil
}

func (s *Server) checkMachine(e batchEntry, body machineBody) *apiError {
	m := body.spec(e)
	_, known := s.cat.Size(m.Size)
	switch {
	case !machinePattern.MatchString(e.MachineName):
		return newError(http.StatusBadRequest, "InvalidParameter", "The machine name '%s' must start with a letter and have at most 34 lower-case letters, digits and dashes.", e.MachineName)
	case !known || s.cat.Zones(m.Size, s.cfg.Region) == nil:
		return newError(http.StatusBadRequest, "VMSizeNotSupported", "The VM size '%s' is not supported in location '%s'.", m.Size, s.cfg.Region)
	case s.restricted(m.Size, m.Zone):
		return newError(http.StatusBadRequest, "BadRequest", "The VM size of %s is not supported for subscription %s in location %s.", m.Size, s.cfg.SubscriptionID, s.cfg.Region)
	}
	if sub := body.Properties.Network.VnetSubnetID; sub != "" && s.find(sub) == nil {
		return newError(http.StatusNotFound, "SubnetNotFound", "The subnet %s was not found.", sub)
	}
	if v := body.Properties.NodeImageVersion; v != "" && !s.hasImage(parseNodeImage(v)) {
		return newError(http.StatusBadRequest, "InvalidParameter", "The node image version '%s' does not exist.", v)
	}
	return nil
}

// parseNodeImage reads AKSUbuntu-2204gen2containerd-202606.09.0.
func parseNodeImage(v string) image {
	part := strings.SplitN(v, "-", 3)
	if len(part) != 3 {
		return image{}
	}
	return image{gallery: part[0], definition: part[1], version: part[2]}
}

// spec is the VM behind the machine.
func (b machineBody) spec(e batchEntry) vmSpec {
	p := b.Properties
	m := vmSpec{
		Size: p.Hardware.VMSize, Zone: "0", Priority: priorityRegular, Eviction: "Delete", Image: p.NodeImageVersion,
		OSDiskGB: p.OperatingSystem.OSDiskSizeGB, UltraSSD: p.Hardware.UltraSSDEnabled, HostCrypt: p.Security.EnableEncryptionAtHost,
		Trusted: p.Security.EnableVTPM || p.Security.EnableSecureBoot, Ephemeral: strings.EqualFold(p.OperatingSystem.OSDiskType, "Ephemeral"),
	}
	if len(e.Zones) > 0 {
		m.Zone = e.Zones[0]
	}
	if strings.EqualFold(p.Priority, prioritySpot) {
		m.Priority = prioritySpot
	}
	setDefault(&m.OSDiskGB, 128)
	return m
}

// createMachine makes the machine, and the VM and network interface behind it.
// A machine that finds no quota or capacity is created all the same and fails
// with its operation, as AKS does.
func (s *Server) createMachine(c *call, pool *resource, e batchEntry, doc document, body machineBody) error {
	p, _ := parsePath(c.path.parent() + "/machines/" + e.MachineName) // well-formed: its name was checked
	name := fmt.Sprintf("aks-%s-%s-%08d-vm", lastSegment(pool.ID), e.MachineName, s.hash("machine", e.MachineName)%100_000_000)
	m := body.spec(e)
	m.ComputerName, m.OSDisk = name, name+"_OsDisk"
	nic, err := s.machineNIC(name+"-nic", body.Properties.Network.VnetSubnetID)
	if err != nil {
		return err
	}
	m.NICs = []nicRef{{ID: nic.ID}}
	vmPath, _ := parsePath(s.nodeID("Microsoft.Compute/virtualMachines", name)) // well-formed by construction
	failure, _ := s.allocate(vmPath.id(), m)
	if failure != nil {
		failure = machineFailure(failure)
	}
	vm := s.createVM(vmPath, s.machineVM(vmPath, m, e), m, failure)
	nic.NIC.VM = vm.ID
	s.put(nic, withProperties(nic.Doc, document{"virtualMachine": document{"id": vm.ID}}))
	k := body.Properties.Kubernetes
	vm.VM.Address = nic.NIC.primary()
	vm.VM.AKSID = p.id()
	vm.VM.AKS = &AKSMachine{
		Cluster: s.ClusterID(), Pool: lastSegment(pool.ID), Name: e.MachineName, Mode: body.Properties.Mode, Labels: k.NodeLabels,
		Taints: append(append([]string{}, k.NodeInitializationTaints...), k.NodeTaints...), MaxPods: k.MaxPods, Kubernetes: k.OrchestratorVersion,
		NoGPUDriver: strings.EqualFold(body.Properties.Hardware.GPUProfile.Driver, "None"),
	}
	d := stamp(p, clone(doc))
	d["zones"] = texts(e.Zones)
	props := section(d, "properties")
	props["tags"] = tagDocument(e.Tags)
	props["provisioningState"] = string(phaseCreating)
	props["resourceId"] = vm.ID
	props["status"] = document{"creationTimestamp": s.now().UTC().Format(time.RFC3339), "driftAction": "Synced", "vmState": "Running"}
	section(props, "network")["ipAddresses"] = []any{document{"family": "IPv4", "ip": vm.VM.Address}}
	r := &resource{ID: p.id(), Typ: typeMachine, Group: p.group}
	s.putMachineDocument(r, d)
	s.event("machine.accepted", r.ID, vm.ID)
	return nil
}

// putMachineDocument stores a machine, whose ETag is also a property.
func (s *Server) putMachineDocument(r *resource, d document) {
	s.put(r, d)
	section(d, "properties")["eTag"] = d["etag"]
}

func tagDocument(tags map[string]string) document {
	d := document{}
	for k, v := range tags {
		d[k] = v
	}
	return d
}

// machineNIC makes the network interface of a machine.
func (s *Server) machineNIC(name, subnet string) (*resource, error) {
	setDefault(&subnet, s.SubnetID())
	p, _ := parsePath(s.nodeID("Microsoft.Network/networkInterfaces", name)) // well-formed by construction
	config := document{"name": "ipconfig1", "properties": document{"primary": true, "subnet": document{"id": subnet}}}
	doc := stamp(p, document{"location": s.cfg.Region, "properties": document{"ipConfigurations": []any{config}}})
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var body nicBody
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	state, err := s.assign(&nicState{}, body)
	if err != nil {
		return nil, err
	}
	r := &resource{ID: p.id(), Typ: typeNIC, Group: p.group, NIC: state}
	s.completeNIC(r, doc, body)
	s.put(r, doc)
	s.event("nic.created", r.ID, state.primary())
	return r, nil
}

// machineVM is the VM's document as AKS would have written it.
func (s *Server) machineVM(p path, m vmSpec, e batchEntry) document {
	props := document{
		"hardwareProfile": document{"vmSize": m.Size}, "priority": m.Priority,
		"osProfile":       document{"computerName": m.ComputerName, "adminUsername": "azureuser"},
		"storageProfile":  document{"osDisk": document{"name": m.OSDisk, "diskSizeGB": m.OSDiskGB, "createOption": "FromImage", "deleteOption": "Delete"}},
		"networkProfile":  document{"networkInterfaces": []any{document{"id": m.NICs[0].ID, "properties": document{"primary": true, "deleteOption": "Delete"}}}},
		"securityProfile": document{"encryptionAtHost": m.HostCrypt},
	}
	d := stamp(p, document{"location": s.cfg.Region, "tags": tagDocument(e.Tags), "properties": props})
	if m.Zone != "0" {
		d["zones"] = []any{m.Zone}
	}
	return d
}

// machineFailure is how AKS reports a failure of compute: quota under a code of
// its own, everything with the cause as detail.
func machineFailure(cause *apiError) *apiError {
	e := *cause
	e.Details = []apiError{*cause}
	if cause.Code == "OperationNotAllowed" {
		e.Code = "QuotaExceeded"
		e.Message = fmt.Sprintf("Code=%q Message=%q", cause.Code, cause.Message)
	}
	return &e
}

// machineSettled carries the end of a VM's creation over to its machine.
func (s *Server) machineSettled(vm *resource) {
	r := s.find(vm.VM.AKSID)
	if vm.VM.AKSID == "" || r == nil {
		return
	}
	d := withProperties(r.Doc, document{"provisioningState": string(vm.VM.Phase)})
	if vm.VM.Phase == phaseFailed {
		status := section(section(d, "properties"), "status")
		status["provisioningError"] = vm.VM.Failure.body()
		status["vmState"] = "Deleted"
	}
	s.putMachineDocument(r, d)
}

// DriftMachines makes every machine of the agent pools one that AKS would have
// made anew, as a change of the cluster does that running machines cannot take.
func (s *Server) DriftMachines() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.sorted(typeMachine) {
		d := clone(r.Doc)
		section(section(d, "properties"), "status")["driftAction"] = "Recreate"
		s.putMachineDocument(r, d)
	}
}

// updateMachine changes the tags of a machine, under its ETag.
func (s *Server) updateMachine(c *call, old *resource, doc document, body machineBody) (reply, error) {
	if err := checkMatch(c, old); err != nil {
		return reply{}, err
	}
	if size, has := body.Properties.Hardware.VMSize, text(old.Doc, "properties", "hardware", "vmSize"); size != "" && !strings.EqualFold(size, has) {
		return reply{}, errImmutable("properties.hardware.vmSize")
	}
	d := clone(old.Doc)
	if at(doc, "properties", "tags") != nil {
		section(d, "properties")["tags"] = tagDocument(body.Properties.Tags)
	}
	s.putMachineDocument(old, d)
	if vm := s.find(text(d, "properties", "resourceId")); vm != nil { // AKS carries tags on
		behind := clone(vm.Doc)
		behind["tags"] = cloneValue(at(d, "properties", "tags"))
		s.put(vm, behind)
	}
	return reply{status: http.StatusOK, body: d}, nil
}

// deleteMachines deletes machines of a pool by name.
func (s *Server) deleteMachines(c *call) (reply, error) {
	var body struct {
		MachineNames []string `json:"machineNames"`
	}
	if _, err := decodeBody(c.body, &body); err != nil {
		return reply{}, err
	}
	pool := c.path.parent()
	if s.find(pool) == nil {
		return reply{}, newError(http.StatusNotFound, "NotFound", "Could not find agent pool %s.", pool)
	}
	var vms []*resource
	for _, name := range body.MachineNames {
		r := s.find(pool + "/machines/" + name)
		if r == nil {
			continue
		}
		if vm := s.find(text(r.Doc, "properties", "resourceId")); vm != nil {
			s.putMachineDocument(r, withProperties(r.Doc, document{"provisioningState": string(phaseDeleting)}))
			vms = append(vms, vm)
		}
	}
	if len(vms) == 0 {
		return reply{}, newError(http.StatusBadRequest, "InvalidParameter", "Cannot find any valid machines to delete in agent pool %s: %s.", lastSegment(pool), strings.Join(body.MachineNames, ", "))
	}
	var last *operation
	for _, vm := range vms {
		last = s.beginDelete(vm, true)
	}
	if len(vms) == 1 {
		return s.accepted(c, http.StatusAccepted, last, nil), nil
	}
	// The operation of the whole call ends when the last machine has gone. Each
	// deletion has its own length, so the call takes the longest possible.
	op := s.start(c.route.action, pool)
	s.after(max(s.cfg.Latency.VMDelete.Max, s.cfg.Latency.VMDelete.Median), task{Kind: taskOperation, Key: key(pool), Op: op.ID})
	return s.accepted(c, http.StatusAccepted, op, nil), nil
}
