package containerservice

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/compute"
)

// machines are the agent pool machines that the AKS machine API makes.
type machines struct {
	sub        *arm.Subscription
	cluster    Cluster
	deletion   arm.Distribution // of a VM, before the time scale
	vms        VirtualMachines
	interfaces Interfaces
}

// stateCreating is that of what is being made.
const stateCreating = "Creating"

// taskDeleted: the operation of a call that deletes several machines ends.
const taskDeleted arm.TaskKind = "machines.deleted"

// taskLate: the provisioning of a machine has taken too long.
const taskLate arm.TaskKind = "machine.late"

// actionWrite is the creation of a machine, as operations know it.
const actionWrite = "Microsoft.ContainerService/managedClusters/agentPools/machines/write"

// provisioningExtension is what AKS calls the extension that waits for the provisioning of
// its machines.
const provisioningExtension = "vmssCSE"

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
				Nvidia struct {
					ManagementMode string `json:"managementMode"`
				} `json:"nvidia"`
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

// put creates the machine of the path, or with BatchPutMachine several; one that
// exists it replaces, of which only the tags may differ.
func (s *machines) put(c *arm.Call) (arm.Reply, error) {
	var body machineBody
	doc, err := arm.DecodeBody(c.Body, &body)
	if err != nil {
		return arm.Reply{}, err
	}
	pool := s.sub.Resources.Find(c.Path.Parent())
	if pool == nil {
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "NotFound", "Could not find agent pool %s.", c.Path.Parent())
	}
	if arm.Text(pool.Doc, "properties", "mode") != modeMachines {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "BadRequest",
			"Agent pool '%s' is not in 'Machines' mode.", arm.LastSegment(pool.ID))
	}
	if state := arm.Text(pool.Doc, "properties", "provisioningState"); state != "Succeeded" {
		return arm.Reply{}, errBusy(state)
	}
	if old := s.sub.Resources.Find(c.Path.ID()); old != nil && c.Request.Header.Get("BatchPutMachine") == "" {
		if c.Request.Header.Get("If-None-Match") == "*" {
			return arm.Reply{}, arm.NewError(http.StatusPreconditionFailed, "PreconditionFailed", "Machine %s exists already.", c.Path.Name())
		}
		return s.update(c, old, doc, body)
	}
	entries, err := batchOf(c, body)
	if err != nil {
		return arm.Reply{}, err
	}
	// What an earlier call has made stays as it is.
	entries = slices.DeleteFunc(entries, func(e batchEntry) bool { return s.sub.Resources.Find(pool.ID+"/machines/"+e.MachineName) != nil })
	if err := s.checkAll(pool, entries, body); err != nil {
		return arm.Reply{}, err
	}
	if err := s.createAll(c, pool, entries, doc, body); err != nil {
		return arm.Reply{}, err
	}
	asked := s.sub.Resources.Find(c.Path.ID())
	if len(entries) == 0 {
		return arm.Reply{Status: http.StatusOK, Body: asked.Doc}, nil
	}
	return s.sub.Operations.Accepted(c, http.StatusCreated, s.vmOf(asked).AKSOperation, asked.Doc), nil
}

// check refuses what AKS refuses at once of one machine; nil when it takes it.
func (s *machines) check(e batchEntry, body machineBody) *arm.Error {
	m := body.spec(e)
	_, known := s.sub.SKUTable.Size(m.Size)
	switch {
	case !machinePattern.MatchString(e.MachineName):
		return arm.NewError(http.StatusBadRequest, "InvalidParameter",
			"The machine name '%s' must start with a letter and have at most 34 lower-case letters, digits and dashes.", e.MachineName)
	case !known || s.sub.SKUTable.Zones(m.Size, s.sub.Region) == nil:
		return arm.NewError(http.StatusBadRequest, "VMSizeNotSupported",
			"The VM size '%s' is not supported in location '%s'.", m.Size, s.sub.Region)
	case s.vms.Restricted(m.Size, m.Zone):
		return arm.NewError(http.StatusBadRequest, "BadRequest",
			"The VM size of %s is not supported for subscription %s in location %s.", m.Size, s.sub.ID, s.sub.Region)
	}
	if sub := body.Properties.Network.VnetSubnetID; sub != "" && s.sub.Resources.Find(sub) == nil {
		return arm.NewError(http.StatusNotFound, "SubnetNotFound", "The subnet %s was not found.", sub)
	}
	if body.managedGPU() && !s.sub.Registered(featureManagedGPU) {
		return arm.NewError(http.StatusBadRequest, "PreviewFeatureNotRegistered", "Preview feature %s not registered.", featureManagedGPU)
	}
	if v := body.Properties.NodeImageVersion; v != "" && !s.vms.HasNodeImage(v) {
		return arm.NewError(http.StatusBadRequest, "InvalidParameter", "The node image version '%s' does not exist.", v)
	}
	return nil
}

// featureManagedGPU must be registered for machines that bring a device plugin:
// https://learn.microsoft.com/azure/aks/aks-managed-gpu-nodes
const featureManagedGPU = "Microsoft.ContainerService/ManagedGPUExperiencePreview"

// managedGPU says that AKS installs a device plugin beside the driver.
func (b *machineBody) managedGPU() bool {
	return strings.EqualFold(b.Properties.Hardware.GPUProfile.Nvidia.ManagementMode, "Managed")
}

// spec is the VM behind the machine.
func (b machineBody) spec(e batchEntry) compute.Spec {
	p := b.Properties
	m := compute.Spec{
		Size: p.Hardware.VMSize, Zone: "0", Priority: arm.Regular, Eviction: "Delete", Image: p.NodeImageVersion,
		OSDiskGB: p.OperatingSystem.OSDiskSizeGB, UltraSSD: p.Hardware.UltraSSDEnabled, HostCrypt: p.Security.EnableEncryptionAtHost,
		Trusted: p.Security.EnableVTPM || p.Security.EnableSecureBoot, Ephemeral: strings.EqualFold(p.OperatingSystem.OSDiskType, "Ephemeral"),
	}
	if len(e.Zones) > 0 {
		m.Zone = e.Zones[0]
	}
	if strings.EqualFold(p.Priority, arm.Spot) {
		m.Priority = arm.Spot
	}
	m.OSDiskGB = cmp.Or(m.OSDiskGB, 128)
	return m
}

// create makes the machine, and the VM and network interface behind it. A machine
// that finds no quota or capacity is created all the same and fails with its
// operation, as AKS does.
func (s *machines) create(c *arm.Call, pool *arm.Resource, e batchEntry, doc arm.Document, body machineBody) error {
	p, _ := arm.ParsePath(c.Path.Parent() + "/machines/" + e.MachineName) // well-formed: its name was checked
	name := fmt.Sprintf("aks-%s-%s-%08d-vm", arm.LastSegment(pool.ID), e.MachineName, s.sub.Random.Hash("machine", e.MachineName)%100_000_000)
	m := body.spec(e)
	m.ComputerName, m.OSDisk = name, name+"_OsDisk"
	nic, err := s.interfaces.Create(name+"-nic", body.Properties.Network.VnetSubnetID)
	if err != nil {
		return err
	}
	m.NICs = []compute.InterfaceRef{{ID: nic}}
	// well-formed by construction
	vmPath, _ := arm.ParsePath(s.sub.ResourceID(s.cluster.NodeResourceGroup, "Microsoft.Compute/virtualMachines", name))
	failure, _ := s.vms.Allocate(vmPath.ID(), m)
	if failure != nil {
		failure = machineFailure(failure)
	}
	vm := s.vms.Create(vmPath, s.vmDocument(vmPath, m, e), m, failure)
	k := body.Properties.Kubernetes
	vm.Address = s.interfaces.Attach(nic, vm.ID)
	vm.AKSID, vm.AKSOperation = p.ID(), s.sub.Operations.Start(actionWrite, p.ID()).ID
	vm.AKS = &compute.AKSMachine{
		Cluster: s.cluster.ID, Pool: arm.LastSegment(pool.ID), Name: e.MachineName, Mode: body.Properties.Mode, Labels: k.NodeLabels,
		Taints: append(append([]string{}, k.NodeInitializationTaints...), k.NodeTaints...), MaxPods: k.MaxPods, Kubernetes: k.OrchestratorVersion,
		NoGPUDriver: strings.EqualFold(body.Properties.Hardware.GPUProfile.Driver, "None"),
		ManagedGPU:  body.managedGPU(),
	}
	d := arm.Stamp(p, arm.Clone(doc))
	d["zones"] = arm.Texts(e.Zones)
	props := arm.Section(d, "properties")
	props["tags"] = tagDocument(e.Tags)
	props["provisioningState"] = vm.State()
	props["resourceId"] = vm.ID
	props["status"] = arm.Document{
		"creationTimestamp": s.sub.Clock.Now().UTC().Format(time.RFC3339), "driftAction": "Synced", "vmState": "Running",
	}
	arm.Section(props, "network")["ipAddresses"] = []any{arm.Document{"family": "IPv4", "ip": vm.Address}}
	r := &arm.Resource{ID: p.ID(), Type: TypeMachine, Group: p.Group}
	s.sub.Resources.Put(r, d)
	s.sub.Audit.Event("machine.accepted", r.ID, vm.ID)
	return nil
}

func tagDocument(tags map[string]string) arm.Document {
	d := arm.Document{}
	for k, v := range tags {
		d[k] = v
	}
	return d
}

// vmDocument is the VM's arm.Document as AKS would have written it.
func (s *machines) vmDocument(p arm.Path, m compute.Spec, e batchEntry) arm.Document {
	props := arm.Document{
		"hardwareProfile": arm.Document{"vmSize": m.Size}, "priority": m.Priority,
		"osProfile": arm.Document{"computerName": m.ComputerName, "adminUsername": "azureuser"},
		"storageProfile": arm.Document{"osDisk": arm.Document{
			"name": m.OSDisk, "diskSizeGB": m.OSDiskGB, "createOption": "FromImage", "deleteOption": "Delete",
		}},
		"networkProfile": arm.Document{"networkInterfaces": []any{arm.Document{
			"id": m.NICs[0].ID, "properties": arm.Document{"primary": true, "deleteOption": "Delete"},
		}}},
		"securityProfile": arm.Document{"encryptionAtHost": m.HostCrypt},
	}
	d := arm.Stamp(p, arm.Document{"location": s.sub.Region, "tags": tagDocument(e.Tags), "properties": props})
	if m.Zone != "0" {
		d["zones"] = []any{m.Zone}
	}
	return d
}

// machineFailure is how AKS reports a failure of compute: quota under a code of
// its own, everything with the cause as detail.
func machineFailure(cause *arm.Error) *arm.Error {
	e := *cause
	e.Details = []arm.Error{*cause}
	if cause.Code == "OperationNotAllowed" {
		e.Code = "QuotaExceeded"
		e.Message = fmt.Sprintf("Code=%q Message=%q", cause.Code, cause.Message)
	}
	return &e
}

// settled carries the end of a VM's creation over to its machine: one that was not
// created has failed, and any other is provisioned next.
func (s *machines) settled(vm *compute.VM) {
	if vm.AKSID == "" {
		return
	}
	if vm.Failed() {
		s.end(vm, vm.Failure, "Deleted")
		return
	}
	s.sub.Tasks.After(compute.ExtensionTimeout, arm.Task{Kind: taskLate, Key: arm.Key(vm.ID), Life: vm.VMID})
}

// provisioned carries the end of a VM's provisioning over to its machine.
func (s *machines) provisioned(vm *compute.VM) {
	if vm.AKSID != "" {
		s.end(vm, vm.Provisioned.Failure(provisioningExtension), "Running")
	}
}

// late fails the machine whose provisioning does not end.
func (s *machines) late(t arm.Task) {
	if vm := s.vms.Find(t.Key); vm != nil && vm.VMID == t.Life && vm.Provisioned == nil {
		s.end(vm, compute.ScriptTimeout(provisioningExtension), "Running")
	}
}

// end ends the creation of a machine, with success when failure is nil.
func (s *machines) end(vm *compute.VM, failure *arm.Error, state string) {
	s.sub.Operations.Finish(vm.AKSOperation, failure)
	r := s.sub.Resources.Find(vm.AKSID)
	if r == nil || arm.Text(r.Doc, "properties", "provisioningState") != stateCreating {
		return
	}
	if failure == nil {
		s.sub.Resources.Put(r, arm.WithProperties(r.Doc, arm.Document{"provisioningState": "Succeeded"}))
		return
	}
	d := arm.WithProperties(r.Doc, arm.Document{"provisioningState": "Failed"})
	status := arm.Section(arm.Section(d, "properties"), "status")
	status["provisioningError"] = failure.Document()
	status["vmState"] = state
	s.sub.Resources.Put(r, d)
}

// vmDeleted removes the machine of a VM that is gone.
func (s *machines) vmDeleted(vm *compute.VM) {
	if vm.AKSOperation != "" {
		s.sub.Operations.Finish(vm.AKSOperation,
			arm.NewError(http.StatusConflict, "OperationPreempted", "The operation has been preempted by a more recent operation."))
	}
	if m := s.sub.Resources.Find(vm.AKSID); m != nil {
		s.sub.Resources.Drop(m)
		s.sub.Audit.Event("machine.deleted", m.ID, "")
	}
}

// vmOf is the VM behind a machine; nil when there is none, as for fixed machines.
func (s *machines) vmOf(r *arm.Resource) *compute.VM {
	return s.vms.Find(arm.Text(r.Doc, "properties", "resourceId"))
}

// drift makes every machine of the agent pools one that AKS would replace, as a
// change of the cluster does that running machines cannot take.
func (s *machines) drift() {
	for _, r := range s.sub.Resources.Sorted(TypeMachine) {
		d := arm.Clone(r.Doc)
		arm.Section(arm.Section(d, "properties"), "status")["driftAction"] = "Recreate"
		s.sub.Resources.Put(r, d)
	}
}

// machineImmutable are the properties that a PUT on an existing machine must repeat.
var machineImmutable = [][]string{
	{"zones"}, {"properties", "priority"}, {"properties", "mode"}, {"properties", "nodeImageVersion"}, {"properties", "hardware", "vmSize"},
	{"properties", "operatingSystem", "osSKU"}, {"properties", "operatingSystem", "osDiskType"}, {"properties", "kubernetes", "maxPods"},
}

// update changes the tags of a machine, under its ETag. The body is the whole machine.
func (s *machines) update(c *arm.Call, old *arm.Resource, doc arm.Document, body machineBody) (arm.Reply, error) {
	if err := c.CheckMatch(old); err != nil {
		return arm.Reply{}, err
	}
	if body.Properties.Hardware.VMSize == "" {
		return arm.Reply{}, arm.ErrInvalidParameter("properties.hardware.vmSize",
			"Required parameter properties.hardware.vmSize of machine %s is missing (null).", c.Path.Name())
	}
	for _, path := range machineImmutable {
		was, is := fmt.Sprint(arm.At(old.Doc, path...)), fmt.Sprint(arm.At(doc, path...))
		if !strings.EqualFold(was, is) {
			return arm.Reply{}, arm.NewError(http.StatusBadRequest, "OperationNotAllowed",
				"Changing property '%s' of machine %s is not allowed.", strings.Join(path, "."), c.Path.Name())
		}
	}
	d := arm.Clone(old.Doc)
	arm.Section(d, "properties")["tags"] = tagDocument(body.Properties.Tags)
	s.sub.Resources.Put(old, d)
	if vm := s.vmOf(old); vm != nil { // AKS carries tags on
		own := arm.Clone(vm.Doc)
		own["tags"] = arm.CloneValue(arm.At(d, "properties", "tags"))
		s.sub.Resources.Put(vm.Resource, own)
	}
	return arm.Reply{Status: http.StatusOK, Body: d}, nil
}

// remove deletes machines of a pool by name.
func (s *machines) remove(c *arm.Call) (arm.Reply, error) {
	var body struct {
		MachineNames []string `json:"machineNames"`
	}
	if _, err := arm.DecodeBody(c.Body, &body); err != nil {
		return arm.Reply{}, err
	}
	pool := c.Path.Parent()
	if s.sub.Resources.Find(pool) == nil {
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "NotFound", "Could not find agent pool %s.", pool)
	}
	var vms []*compute.VM
	for _, name := range body.MachineNames {
		r := s.sub.Resources.Find(pool + "/machines/" + name)
		if r == nil {
			continue
		}
		if vm := s.vmOf(r); vm != nil {
			s.sub.Resources.Put(r, arm.WithProperties(r.Doc, arm.Document{"provisioningState": "Deleting"}))
			vms = append(vms, vm)
		}
	}
	if len(vms) == 0 {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "InvalidParameter",
			"Cannot find any valid machines to delete in agent pool %s: %s.", arm.LastSegment(pool), strings.Join(body.MachineNames, ", "))
	}
	var last string
	for _, vm := range vms {
		last = s.vms.BeginDelete(vm, true)
	}
	if len(vms) == 1 {
		return s.sub.Operations.Accepted(c, http.StatusAccepted, last, nil), nil
	}
	// The operation of the whole call ends when the last machine has gone. Each
	// deletion has its own length, so the call takes the longest possible.
	op := s.sub.Operations.Start(c.Route.Action(), pool)
	s.sub.Tasks.After(max(s.deletion.Max, s.deletion.Median), arm.Task{Kind: taskDeleted, Key: arm.Key(pool), Op: op.ID})
	return s.sub.Operations.Accepted(c, http.StatusAccepted, op.ID, nil), nil
}
