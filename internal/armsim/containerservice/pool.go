package containerservice

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// modeMachines is the mode of the agent pools whose machines the AKS machine API makes.
const modeMachines = "Machines"

// poolTakes is how long AKS takes to make an agent pool without machines, before the
// time scale.
const poolTakes = 20 * time.Second

// taskPool ends the making of an agent pool.
const taskPool arm.TaskKind = "pool"

var poolPattern = regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`)

// poolModes are the modes that a client may ask for
// (Microsoft.ContainerService 2026-04-02-preview, AgentPoolMode).
func poolModes() []string {
	return []string{"System", "User", "Gateway", modeMachines, "ManagedSystem"}
}

// pools are the agent pools of the cluster.
type pools struct {
	sub     *arm.Subscription
	cluster Cluster
}

// scaleSet are the properties of a pool that AKS keeps as a scale set.
func (s *pools) scaleSet(mode string) arm.Document {
	d := s.common(mode)
	d["count"], d["vmSize"], d["osDiskSizeGB"] = 0, fixedPoolSize, 128
	d["type"], d["enableAutoScaling"], d["maxPods"] = "VirtualMachineScaleSets", false, 250
	return d
}

// forMachines are the properties of a pool of mode Machines: everything else is its
// machines' own.
func (s *pools) forMachines() arm.Document {
	d := s.common(modeMachines)
	d["type"] = "VirtualMachines"
	return d
}

func (s *pools) common(mode string) arm.Document {
	return arm.Document{
		"provisioningState": "Succeeded", "powerState": arm.Document{"code": "Running"}, "osType": "Linux", "osSKU": "Ubuntu", "mode": mode,
		"orchestratorVersion": s.cluster.KubernetesVersion, "currentOrchestratorVersion": s.cluster.KubernetesVersion,
	}
}

// seed makes the pools that the cluster has from the start, unless a restored state
// has them.
func (s *pools) seed() {
	add := func(name string, properties arm.Document) {
		s.sub.Resources.Seed(s.cluster.ID+"/agentPools/"+name, typePool, s.cluster.ResourceGroup,
			arm.Document{"type": "Microsoft.ContainerService/managedClusters/agentPools", "properties": properties})
	}
	for _, name := range s.cluster.AgentPools {
		add(name, s.scaleSet("System"))
	}
	for _, name := range s.cluster.MachinesPools {
		add(name, s.forMachines())
	}
	s.tell(s.cluster.ID)
}

// take makes or changes the pools that a managed cluster was put with.
func (s *pools) take(cluster arm.Path, profiles []any) {
	for _, one := range profiles {
		profile, _ := one.(arm.Document)
		name := arm.Text(profile, "name")
		// A name that is put together with that of a cluster is well-formed.
		p, _ := arm.ParsePath(cluster.ID() + "/agentPools/" + name)
		r, properties := s.sub.Resources.Find(p.ID()), s.scaleSet(arm.Text(profile, "mode"))
		if arm.Text(profile, "mode") == modeMachines {
			properties = s.forMachines()
		}
		if r == nil {
			r = &arm.Resource{ID: p.ID(), Type: typePool, Group: p.Group, Fixed: true}
		} else {
			properties = arm.Section(arm.Clone(r.Doc), "properties")
		}
		arm.Merge(properties, profile)
		delete(properties, "name")
		s.sub.Resources.Put(r, arm.Stamp(p, arm.Document{"properties": properties}))
	}
	s.tell(cluster.ID())
}

// tell makes a managed cluster list its pools as they are, unless the configuration
// says what it lists.
func (s *pools) tell(id string) {
	cluster := s.sub.Resources.Find(id)
	if cluster == nil || s.cluster.Properties["agentPoolProfiles"] != nil {
		return
	}
	profiles := []any{}
	for _, r := range s.sub.Resources.Sorted(typePool) {
		if !arm.Within(r.ID, id) {
			continue
		}
		profile := arm.Section(arm.Clone(r.Doc), "properties")
		profile["name"] = arm.LastSegment(r.ID)
		profiles = append(profiles, profile)
	}
	s.sub.Resources.Put(cluster, arm.WithProperties(cluster.Doc, arm.Document{"agentPoolProfiles": profiles}))
}

// put makes a pool, or changes one that exists.
func (s *pools) put(c *arm.Call) (arm.Reply, error) {
	var body struct {
		Properties struct {
			Mode   string `json:"mode"`
			VMSize string `json:"vmSize"`
		} `json:"properties"`
	}
	doc, err := arm.DecodeBody(c.Body, &body)
	if err != nil {
		return arm.Reply{}, err
	}
	cluster := s.sub.Resources.Find(c.Path.Parent())
	if cluster == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	mode := body.Properties.Mode
	if mode == "" {
		mode = "User"
	}
	switch state := arm.Text(cluster.Doc, "properties", "provisioningState"); {
	case !poolPattern.MatchString(c.Path.Name()):
		return arm.Reply{}, arm.ErrInvalidParameter("agentPoolName",
			"The agent pool name '%s' is invalid: it must match %s.", c.Path.Name(), poolPattern)
	case !slices.Contains(poolModes(), mode):
		return arm.Reply{}, arm.ErrInvalidParameter("properties.mode",
			"The value '%s' of properties.mode is invalid: allowed are %s.", mode, strings.Join(poolModes(), ", "))
	case state != "Succeeded":
		return arm.Reply{}, errBusy(state)
	}
	if old := s.sub.Resources.Find(c.Path.ID()); old != nil {
		return s.change(c, old, doc, mode)
	}
	properties := s.forMachines()
	if mode != modeMachines {
		if body.Properties.VMSize == "" {
			return arm.Reply{}, arm.ErrInvalidParameter("properties.vmSize", "Required parameter properties.vmSize is missing (null).")
		}
		properties = s.scaleSet(mode)
	}
	arm.Merge(properties, arm.Section(doc, "properties"))
	properties["provisioningState"] = stateCreating
	r := &arm.Resource{ID: c.Path.ID(), Type: typePool, Group: c.Path.Group}
	s.sub.Resources.Put(r, arm.Stamp(c.Path, arm.Document{"properties": properties}))
	s.tell(c.Path.Parent())
	op := s.sub.Operations.Start(c.Route.Action(), r.ID)
	s.sub.Tasks.After(poolTakes, arm.Task{Kind: taskPool, Key: arm.Key(r.ID), Op: op.ID})
	return s.sub.Operations.Accepted(c, http.StatusCreated, op.ID, r.Doc), nil
}

// change changes a pool that exists. Its mode goes from System to User and back, and
// to no other: the machines of other modes are made in other ways.
func (s *pools) change(c *arm.Call, old *arm.Resource, doc arm.Document, mode string) (arm.Reply, error) {
	if c.Request.Header.Get("If-None-Match") == "*" {
		return arm.Reply{}, arm.NewError(http.StatusPreconditionFailed, "PreconditionFailed", "Agent pool %s exists already.", c.Path.Name())
	}
	if err := c.CheckMatch(old); err != nil {
		return arm.Reply{}, err
	}
	was := arm.Text(old.Doc, "properties", "mode")
	if state := arm.Text(old.Doc, "properties", "provisioningState"); state != "Succeeded" {
		return arm.Reply{}, errBusy(state)
	}
	if was != mode && (was == modeMachines || mode == modeMachines) {
		e := arm.NewError(http.StatusBadRequest, "PropertyChangeNotAllowed", "Changing property 'properties.mode' is not allowed.")
		e.Target = "properties.mode"
		return arm.Reply{}, e
	}
	d := arm.Clone(old.Doc)
	arm.Merge(arm.Section(d, "properties"), arm.Section(doc, "properties"))
	s.sub.Resources.Put(old, d)
	s.tell(c.Path.Parent())
	return arm.Reply{Status: http.StatusOK, Body: d}, nil
}

// made ends the making of a pool.
func (s *pools) made(t arm.Task) {
	s.sub.Operations.Finish(t.Op, nil)
	if r := s.sub.Resources.Find(t.Key); r != nil {
		s.sub.Resources.Put(r, arm.WithProperties(r.Doc, arm.Document{"provisioningState": "Succeeded"}))
		s.tell(clusterOf(r))
	}
}

// clusterOf is the ID of the cluster of an agent pool.
func clusterOf(pool *arm.Resource) string {
	id, _, _ := arm.CutLast(pool.ID, "/agentPools/")
	return id
}

// errBusy is the answer while the cluster or the pool is being changed.
func errBusy(state string) *arm.Error {
	return arm.NewError(http.StatusConflict, "OperationNotAllowed",
		"Operation is not allowed: Another operation (%s) is in progress, please wait for it to finish before starting a new operation.", state)
}
