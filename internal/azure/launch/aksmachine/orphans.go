package aksmachine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// Orphan is a machine of the agent pool that lacks the tags by which nap finds its
// own, and bears what nap alone puts on machines: the taint of a node that no
// NodeClaim has taken over yet, and the name of a node class.
type Orphan struct {
	Name    string
	Created time.Time
	// Claim is what its tags still say; empty when they say nothing.
	Claim string
}

// labelNodeClass and labelPool are on every node of nap's, and of a NodePool's.
const (
	labelNodeClass = "karpenter.azure.com/aksnodeclass"
	labelPool      = "karpenter.sh/nodepool"
)

// Orphans lists the machines of the pool that have lost tags of nap's.
func (a *Launcher) Orphans(ctx context.Context) ([]Orphan, error) {
	all, err := list[machine](ctx, a.clients.Machines)
	if err != nil {
		return nil, fmt.Errorf("list the machines of agent pool %s: %w", a.config.MachinesPool, err)
	}
	var out []Orphan
	for i := range all {
		p := &all[i].Properties
		if !a.orphaned(&all[i]) {
			continue
		}
		o := Orphan{Name: all[i].Name, Claim: p.Tags[launch.TagClaim]}
		if p.Status != nil {
			o.Created = p.Status.CreationTimestamp
		}
		out = append(out, o)
	}
	return out, nil
}

// orphaned says whether a machine lacks tags of nap's, bears no other cluster's, and looks
// like one of nap's.
func (a *Launcher) orphaned(m *machine) bool {
	p := &m.Properties
	cluster, claim := p.Tags[launch.TagCluster], p.Tags[launch.TagClaim]
	if cluster != "" && claim != "" || cluster != "" && cluster != a.config.ClusterName {
		return false
	}
	return slices.Contains(p.Kubernetes.NodeInitializationTaints, launch.Unregistered().String()) &&
		p.Kubernetes.NodeLabels[labelNodeClass] != ""
}

// Adopt gives an orphan the tags of a claim's machine again, beside those that it
// has.
func (a *Launcher) Adopt(ctx context.Context, o Orphan, claim string) error {
	err := a.clients.Machines.changeTags(ctx, o.Name, func(m machine) map[string]string {
		if !a.orphaned(&m) {
			return nil // another client was faster
		}
		tags := maps.Clone(m.Properties.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		tags[launch.TagCluster], tags[launch.TagClaim] = a.config.ClusterName, claim
		if pool := m.Properties.Kubernetes.NodeLabels[labelPool]; pool != "" {
			tags[launch.TagPool] = pool
		}
		return tags
	})
	if err != nil {
		return fmt.Errorf("give AKS machine %s its tags back: %w", o.Name, err)
	}
	return nil
}
