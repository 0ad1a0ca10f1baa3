package containerservice

import (
	"net/http"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// powerTakes is how long AKS takes to stop or to start a cluster, before the time
// scale.
const powerTakes = 2 * time.Minute

// taskPower ends a stop or a start.
const taskPower arm.TaskKind = "power"

// The states of a cluster on its way from one power state to the other.
const (
	stateStopping = "Stopping"
	stateStarting = "Starting"
)

// stop stops the control plane. Machines of nap's own are none of an agent pool: they
// stay as they are.
func (p *Provider) stop(c *arm.Call) (arm.Reply, error) { return p.power(c, stateStopping) }

// start starts it again.
func (p *Provider) start(c *arm.Call) (arm.Reply, error) { return p.power(c, stateStarting) }

func (p *Provider) power(c *arm.Call, state string) (arm.Reply, error) {
	r := p.sub.Resources.Find(c.Path.Parent())
	if r == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	if now := arm.Text(r.Doc, "properties", "provisioningState"); now == stateStopping || now == stateStarting {
		return arm.Reply{}, errBusy(now)
	}
	p.sub.Resources.Put(r, arm.WithProperties(r.Doc, arm.Document{"provisioningState": state}))
	op := p.sub.Operations.Start(c.Route.Action(), r.ID)
	p.sub.Tasks.After(powerTakes, arm.Task{Kind: taskPower, Key: arm.Key(r.ID), Op: op.ID})
	return p.sub.Operations.Accepted(c, http.StatusAccepted, op.ID, nil), nil
}

// powered is the end of a stop or a start.
func (p *Provider) powered(t arm.Task) {
	p.sub.Operations.Finish(t.Op, nil)
	r := p.sub.Resources.Find(p.cluster.ID)
	if r == nil {
		return
	}
	code := "Running"
	if arm.Text(r.Doc, "properties", "provisioningState") == stateStopping {
		code = "Stopped"
	}
	p.sub.Resources.Put(r, arm.WithProperties(r.Doc, arm.Document{"provisioningState": "Succeeded", "powerState": arm.Document{"code": code}}))
}
