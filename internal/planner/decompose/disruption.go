package decompose

import (
	"maps"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// DisruptionPart is a part of a disruption problem.
type DisruptionPart struct {
	Problem *model.DisruptionProblem
	// pools, nodes, pending and movable are its NodePools, nodes and classes by index in the
	// whole.
	pools, nodes, pending, movable []int
}

// leastNodesShare is the least share of the budget that a part with few nodes may take.
const leastNodesShare = 0.002

// SplitDisruption divides a disruption problem as [Split] does a problem. Nodes of one
// NodePool are in one part, unless they have different values of a label that it leaves open,
// as are pods that one PodDisruptionBudget guards. Parts share no PodDisruptionBudget, but those
// of a NodePool with an open label share its disruption budgets: each is stated with all that
// these allow ([MergeCommands]).
func SplitDisruption(f *model.DisruptionProblem, from int) []DisruptionPart {
	d, divided := divideDisruption(f, from)
	if divided == nil {
		return nil
	}
	parts, before := make([]DisruptionPart, len(divided)), time.Duration(0)
	for i := range parts {
		parts[i] = d.part(&divided[i])
		problem := parts[i].Problem.Problem
		took := share(&f.Problem.Policy, len(divided[i].nodes), len(f.Problem.Nodes), leastNodesShare)
		problem.Policy.Budget = took
		if problem.Policy.Elapsed != nil {
			problem.Policy.Budget += before
		}
		before += took
	}
	return parts
}

// Around is the part of a disruption problem that has nodes with these names and NodePools
// with these, or the problem itself where it is not divided. The nodes may be named by their
// NodeClaims.
func Around(f *model.DisruptionProblem, from int, nodes, pools []string) *model.DisruptionProblem {
	d, divided := divideDisruption(f, from)
	if divided == nil {
		return f
	}
	named := func(n int) bool {
		node := &f.Problem.Nodes[n]
		return slices.Contains(nodes, node.Name) || node.Claim != "" && slices.Contains(nodes, node.Claim)
	}
	ofPool := func(i int) bool { return slices.Contains(pools, f.Problem.Pools[i].Name) }
	var around Part
	for i := range divided {
		t := &divided[i]
		if slices.ContainsFunc(t.nodes, named) || slices.ContainsFunc(t.pools, ofPool) {
			around.pools, around.nodes = append(around.pools, t.pools...), append(around.nodes, t.nodes...)
			around.classes = append(around.classes, t.classes...)
		}
	}
	part := d.part(&around)
	return part.Problem
}

// disruption is a disruption problem that is being divided.
type disruption struct {
	*model.DisruptionProblem
	// all is its problem with the movable classes behind its own.
	all    *model.Problem
	shapes *shapes
}

// divideDisruption are the parts of all classes, or nil.
func divideDisruption(f *model.DisruptionProblem, from int) (*disruption, []Part) {
	if len(f.Usages) != len(f.Problem.Nodes) {
		return nil, nil
	}
	all := *f.Problem
	all.Classes = slices.Clone(all.Classes)
	for i := range f.Movable {
		all.Classes = append(all.Classes, f.Movable[i].PodClass)
	}
	d := &disruption{DisruptionProblem: f, all: &all}
	open := d.openLabels()
	if offerings(&all, allOf(len(all.Pools)), open) < from {
		return nil, nil
	}
	d.shapes = newShapes(&all)
	return d, divide(d.all, d.relations(open), from)
}

// openLabels are those of NodePools whose nodes may be in several parts: not where what they
// cost together decides (policy Balanced), or how many they are (static NodePools, limits).
func (d *disruption) openLabels() *openLabels {
	open, together := newOpenLabels(d.all), map[string]bool{}
	for i := range d.Policies {
		if p := &d.Policies[i]; p.Static || p.Consolidation == model.Balanced {
			together[p.Pool] = true
		}
	}
	for i := range d.all.Pools {
		if pool := &d.all.Pools[i]; limited(pool) || together[pool.Name] {
			open.of[i], open.values[i] = "", 1
		}
	}
	return open
}

// relations are those of all classes, and what their nodes and budgets add.
func (d *disruption) relations(open *openLabels) *relations {
	r := newRelations(d.all, open)
	pools, guarded := map[string]int{}, map[int]int{} // by name, and the first class or node of a PodDisruptionBudget
	first := map[string]int{}                         // the first node of a NodePool that may buy nothing
	for i := range d.all.Pools {
		pools[d.all.Pools[i].Name] = i
	}
	for n := range d.all.Nodes {
		name := d.all.Nodes[n].Pool
		pool, buys := pools[name]
		other, known := first[name]
		switch {
		case buys:
			r.relateMachines(r.node(n), pool, ofNode(&d.all.Nodes[n], open.of[pool]))
		case known:
			r.relate(r.node(n), r.node(other))
		case name != "":
			first[name] = n
		}
		for _, cp := range d.Usages[n].Pods {
			r.relate(d.pending()+cp.Class, r.node(n))
		}
	}
	guard := func(b, what int) {
		if first, known := guarded[b]; known {
			r.relate(first, what)
		} else {
			guarded[b] = what
		}
	}
	for m := range d.Movable {
		for _, b := range d.Movable[m].Budgets {
			guard(b, d.pending()+m)
		}
	}
	for n, b := range d.daemonBudgets {
		guard(b, r.node(n))
	}
	r.joinValues()
	return r
}

// daemonBudgets are the nodes with the PodDisruptionBudgets of their DaemonSet pods that allow
// something. One that allows nothing holds each of its nodes whatever becomes of the others, and
// mostly selects a pod of every node: maxUnavailable allows no eviction of DaemonSet pods.
func (d *disruption) daemonBudgets(yield func(node, budget int) bool) {
	for n := range d.Usages {
		for i := range d.Usages[n].DaemonPods {
			for _, b := range d.Usages[n].DaemonPods[i].Budgets {
				if allows := &d.Budgets[b]; !allows.Blocking && allows.Allowed > 0 && !yield(n, b) {
					return
				}
			}
		}
	}
}

// part states a part.
func (d *disruption) part(t *Part) DisruptionPart {
	slices.Sort(t.pools)
	slices.Sort(t.classes)
	own := DisruptionPart{pools: t.pools}
	for _, c := range t.classes {
		if m := c - d.pending(); m < 0 {
			own.pending = append(own.pending, c)
		} else {
			own.movable = append(own.movable, m)
		}
	}
	f, p := *d.DisruptionProblem, *d.DisruptionProblem.Problem
	p.Pools, p.Classes = chosen(p.Pools, own.pools), chosen(p.Classes, own.pending)
	f.Problem, f.Movable = &p, chosen(f.Movable, own.movable)
	own.Problem = &f
	d.addNodes(&own, t)
	return own
}

// pending is how many classes are not movable.
func (d *disruption) pending() int { return len(d.DisruptionProblem.Problem.Classes) }

// addNodes states the nodes of a part and what runs on them. Nodes of other parts where pods
// run that count for its own are in it as nodes of no NodePool, on which nothing runs that
// moves.
func (d *disruption) addNodes(own *DisruptionPart, t *Part) {
	f, p := own.Problem, own.Problem.Problem
	guest := map[int]bool{}
	for _, n := range d.shapes.nodesOf(chosen(d.all.Classes, t.classes)) {
		guest[n] = true
	}
	for _, n := range t.nodes {
		delete(guest, n)
	}
	own.nodes = slices.Sorted(maps.Keys(guest))
	own.nodes = append(own.nodes, t.nodes...)
	slices.Sort(own.nodes)
	p.Nodes, f.Usages = chosen(p.Nodes, own.nodes), chosen(f.Usages, own.nodes)
	number := make(map[int]int, len(own.movable)) // of movable classes in the part
	for i, m := range own.movable {
		number[m] = i
	}
	for i, n := range own.nodes {
		if guest[n] {
			p.Nodes[i].Price, f.Usages[i] = 0, model.NodeUsage{Policy: -1}
			continue
		}
		pods := slices.Clone(f.Usages[i].Pods)
		for k := range pods {
			pods[k].Class = number[pods[k].Class]
		}
		f.Usages[i].Pods = pods
	}
}

// Merger says how the commands of several parts become one list.
type Merger interface {
	// Before reports whether a command of one part goes before one of another.
	Before(a, b *model.Command) bool
	// Admit says why nodes of a command stay, since the commands before it have used up what
	// parts share; nil where the command is made. Both are by index in the whole.
	Admit(c *model.Command) []model.KeptNode
}

// MergeCommands makes one answer of those of all parts, by index in the whole. The commands of
// each part keep their order.
func MergeCommands(f *model.DisruptionProblem, parts []DisruptionPart, answers []*model.Commands, m Merger) *model.Commands {
	out := &model.Commands{Rejected: map[model.Reason]int64{}}
	for n := range f.Problem.Nodes {
		out.Before += f.Problem.Nodes[n].Price
	}
	queues := make([][]model.Command, len(parts))
	for i, answer := range answers {
		t := &parts[i]
		for _, c := range answer.Commands {
			queues[i] = append(queues[i], t.command(&c))
		}
		for _, k := range answer.Kept {
			k.Node = t.nodes[k.Node]
			out.Kept = append(out.Kept, k)
		}
		for _, s := range answer.Scores {
			s.Nodes = numbered(s.Nodes, t.nodes)
			out.Scores = append(out.Scores, s)
		}
		for reason, n := range answer.Rejected {
			out.Rejected[reason] += n
		}
		out.Tried += answer.Tried
		out.LowerBound += answer.LowerBound
	}
	for _, c := range interleave(queues, m.Before) {
		if kept := m.Admit(&c); kept != nil {
			out.Kept = append(out.Kept, kept...)
			continue
		}
		out.Commands = append(out.Commands, c)
		out.Evictions += c.Evictions
	}
	slices.SortStableFunc(out.Kept, func(a, b model.KeptNode) int { return a.Node - b.Node })
	out.After = out.Before
	for i := range out.Commands {
		out.After -= out.Commands[i].Saving
	}
	return out
}

// interleave takes the best of the first commands of all queues until none is left.
func interleave(queues [][]model.Command, better func(a, b *model.Command) bool) []model.Command {
	var out []model.Command
	for {
		best := -1
		for i := range queues {
			if len(queues[i]) > 0 && (best < 0 || better(&queues[i][0], &queues[best][0])) {
				best = i
			}
		}
		if best < 0 {
			return out
		}
		out, queues[best] = append(out, queues[best][0]), queues[best][1:]
	}
}

// command is a command of the part by index in the whole.
func (t *DisruptionPart) command(c *model.Command) model.Command {
	out := *c
	out.Nodes = numbered(c.Nodes, t.nodes)
	out.New = slices.Clone(c.New)
	for i := range out.New {
		out.New[i].Pool, out.New[i].Pods = t.pools[c.New[i].Pool], t.moved(c.New[i].Pods)
	}
	out.Placements = slices.Clone(c.Placements)
	for i := range out.Placements {
		out.Placements[i] = model.Placement{Node: t.nodes[c.Placements[i].Node], Pods: t.moved(c.Placements[i].Pods)}
	}
	return out
}

// moved are pods of the part by movable class of the whole.
func (t *DisruptionPart) moved(pods []model.ClassPods) []model.ClassPods {
	out := slices.Clone(pods)
	for i := range out {
		out[i].Class = t.movable[out[i].Class]
	}
	return out
}

// NewNodes are new nodes of a plan for the pending pods of the part by NodePool of the whole.
// Their pods are those of the part.
func (t *DisruptionPart) NewNodes(nodes []model.NewNode) []model.NewNode {
	out := slices.Clone(nodes)
	for i := range out {
		out[i].Pool = t.pools[out[i].Pool]
	}
	return out
}

// numbered are indices of a part by those of the whole.
func numbered(indices, whole []int) []int {
	out := make([]int, len(indices))
	for i, n := range indices {
		out[i] = whole[n]
	}
	return out
}
