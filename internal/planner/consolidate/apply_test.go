package consolidate_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// apply returns the fleet after the moves were made and things are quiet again.
// Budgets allow as much as before.
func apply(f *model.DisruptionProblem, moves *model.Commands) *model.DisruptionProblem {
	out, p := *f, *f.Problem
	out.Problem = &p
	p.Nodes, out.Usages, p.Pools = slices.Clone(p.Nodes), slices.Clone(f.Usages), slices.Clone(p.Pools)
	shape := len(p.Shapes)
	p.Shapes = slices.Clone(p.Shapes)
	for i := range f.Movable {
		p.Shapes = append(p.Shapes, f.Movable[i].PodShape)
	}
	gone := map[int]bool{}
	take := func(n int, list []model.ClassPods) {
		node, t := &p.Nodes[n], &out.Usages[n]
		node.Bound, node.HostPorts, node.Attached, node.VolumeSlots = slices.Clone(node.Bound),
			slices.Clone(node.HostPorts), slices.Clone(node.Attached), maps.Clone(node.VolumeSlots)
		t.Pods = append(slices.Clone(t.Pods), list...)
		for _, cp := range list {
			m := &f.Movable[cp.Class]
			node.Bound = append(node.Bound, model.BoundPods{Shape: shape + cp.Class, Count: len(cp.Pods)})
			for range cp.Pods {
				node.Used = node.Used.Add(m.Requests)
				node.HostPorts = append(node.HostPorts, m.HostPorts...)
				for _, v := range m.Volumes {
					if v.ID == "" || !slices.Contains(node.Attached, v) {
						node.VolumeSlots[v.Driver]--
						node.Attached = append(node.Attached, v)
					}
				}
			}
		}
	}
	for i := range moves.Commands {
		mv := &moves.Commands[i]
		for _, n := range mv.Nodes {
			gone[n] = true
		}
		for _, pl := range mv.Placements {
			take(pl.Node, pl.Pods)
		}
		for _, n := range mv.New {
			take(bring(&out, &n), n.Pods)
		}
	}
	var nodes []model.Node
	var tenancies []model.NodeUsage
	for n := range p.Nodes {
		if !gone[n] {
			nodes, tenancies = append(nodes, p.Nodes[n]), append(tenancies, out.Usages[n])
		}
	}
	p.Nodes, out.Usages = nodes, tenancies
	return &out
}

// bring adds a machine that was bought and returns its number.
func bring(f *model.DisruptionProblem, n *model.NewNode) int {
	p := f.Problem
	pool := &p.Pools[n.Pool]
	it := &p.Catalogs[pool.Catalog].InstanceTypes[n.Best().InstanceType]
	o := &it.Offerings[n.Best().Offering]
	serial := len(p.Nodes)
	for slices.ContainsFunc(p.Nodes, func(n model.Node) bool { return n.Name == fmt.Sprintf("new-%05d", serial) }) {
		serial++
	}
	node := model.Node{
		Name: fmt.Sprintf("new-%05d", serial), Pool: pool.Name, State: model.NodeReady, Price: o.Price,
		Labels: map[string]string{
			model.LabelZone: o.Zone, model.LabelInstanceType: it.Name,
			model.LabelCapacityType: string(o.CapacityType), model.LabelNodePool: pool.Name,
		},
		Allocatable: it.Allocatable(), Used: make(model.Resources, 4), VolumeSlots: maps.Clone(it.VolumeSlots),
	}
	node.Labels[model.LabelHostname] = node.Name
	pool.Usage, pool.Nodes = pool.Usage.Add(it.Capacity), pool.Nodes+1
	pool.Cost += node.Price
	policy := slices.IndexFunc(f.Policies, func(d model.DisruptionPolicy) bool { return d.Pool == pool.Name })
	p.Nodes = append(p.Nodes, node)
	f.Usages = append(f.Usages, model.NodeUsage{
		Policy: policy, Initialized: true, Ready: true, InitializedAt: f.Now.Add(-24 * time.Hour), LastPodEvent: f.Now.Add(-24 * time.Hour),
		Held: it.Capacity,
	})
	return len(p.Nodes) - 1
}
