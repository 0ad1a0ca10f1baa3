package provisioning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// misfit asks the planner why a pod does not fit on a node that is there. The planner
// explains itself by what can be bought, so the node is stated as the one machine that
// is on sale: with its labels and taints, and as large as what is free on it.
type misfit struct {
	problem *model.Problem
	solve   func(*model.Problem) *model.Plan
}

// explain says in words why a pod does not fit on the node of a claim. It is empty where
// the planner would put it there, or where either is not part of the problem. It is exact
// where it says what the node has and the pod needs.
func (m misfit) explain(claim string, pod model.PodRef) (text string, exact bool) {
	p := m.problem
	n := slices.IndexFunc(p.Nodes, func(n model.Node) bool { return n.Claim == claim })
	class := slices.IndexFunc(p.Classes, func(c model.PodClass) bool { return slices.Contains(c.Pods, pod) })
	if n < 0 || class < 0 {
		return "", false
	}
	alone := p.Classes[class]
	alone.Pods = []model.PodRef{pod}
	plan := m.solve(&model.Problem{
		Axes: p.Axes, Shapes: p.Shapes, Classes: []model.PodClass{alone}, Policy: model.Policy{IgnorePreferences: true},
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{asType(&p.Nodes[n])}}},
		Pools:    []model.Pool{asPool(&p.Nodes[n])},
	})
	if len(plan.Unschedulable) == 0 {
		return "", false
	}
	u := &plan.Unschedulable[0]
	if u.Nearest == nil || u.Nearest.Have == "" && u.Nearest.Want == "" {
		meaning := strings.TrimSuffix(explain.Meaning(u.Reason), ".")
		return fmt.Sprintf("%s (%s)", u.Reason, model.Clause(meaning)), false
	}
	return fmt.Sprintf("%s (it has %s, the pod needs %s)", u.Nearest.Reason, u.Nearest.Have, u.Nearest.Want), true
}

// asType is a machine like the node, without what runs there. It has the node's labels: which of
// them a machine brings by itself is not known here, and asPool asks for all of them.
func asType(n *model.Node) model.InstanceType {
	return model.InstanceType{
		Name: n.Labels[model.LabelInstanceType], Labels: n.Labels, Capacity: n.Allocatable.Sub(n.Used), VolumeSlots: n.VolumeSlots,
		Offerings: []model.Offering{{
			Zone: n.Labels[model.LabelZone], CapacityType: model.CapacityType(n.Labels[model.LabelCapacityType]), Available: true,
		}},
	}
}

// asPool is a NodePool that makes nodes with the node's labels and taints. What pods
// there take of host ports stands as a DaemonSet.
func asPool(n *model.Node) model.Pool {
	pool := model.Pool{
		Name: n.Pool, Labels: n.Labels, Taints: n.Taints, NodeLimit: -1,
		Daemons: []model.Daemon{{Name: "the pods of " + n.Name, HostPorts: n.HostPorts, Tolerations: []model.Toleration{{Exists: true}}}},
	}
	for key, value := range n.Labels {
		pool.Requirements = append(pool.Requirements, model.Requirement{Key: key, Operator: model.In, Values: []string{value}})
	}
	slices.SortFunc(pool.Requirements, func(a, b model.Requirement) int { return strings.Compare(a.Key, b.Key) })
	return pool
}
