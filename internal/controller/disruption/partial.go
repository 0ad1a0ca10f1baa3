package disruption

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// A command may remove many nodes and replace them by many others. When one of the
// replacements cannot be bought, a pod that has just come blocks one of the nodes, or
// some pods have lost their room, the other nodes need not stay for that: what is
// left is a partial command, and only the rest of its nodes is released.

// reduce looks for the most nodes of a command to which there are no objections and
// releases the others. Nodes whose pods request little are kept first: most of them
// go that way. It returns false, and leaves the command as it was, when none is left.
func (r *rechecker) reduce(ctx context.Context, c *command, found []consolidate.Objection, standing []*command) bool {
	if c.Reason != model.DisruptUnderutilized || len(c.Remove) < 2 {
		return false
	}
	blamed := map[string]bool{}
	for _, o := range found {
		blamed[o.Node] = true
	}
	all, requested := c.Remove, requestedOn(c.Remove, r.mirror.Snapshot())
	kept := slices.DeleteFunc(slices.Clone(all), func(n Removed) bool { return blamed[n.Node] })
	slices.SortStableFunc(kept, func(a, b Removed) int { return cmp.Compare(requested[a.Node], requested[b.Node]) })
	var value worth
	stands := func(n int) bool {
		c.Remove, c.released = kept[:n:n], without(all, kept[:n])
		objections, input := r.objections(ctx, []*command{c}, standing)
		if len(objections) == 0 {
			value = worthOf(&c.Record, input.Disruption)
		}
		return len(objections) == 0
	}
	most := 0
	for over := len(kept) + 1; over-most > 1; {
		n := (most + over) / 2
		if over > len(kept) {
			n = len(kept) // mostly nothing but the blamed is in the way
		}
		if stands(n) {
			most = n
		} else {
			over = n
		}
	}
	c.Remove, c.released = kept[:most:most], without(all, kept[:most])
	if most == 0 {
		c.Remove, c.released = all, nil
		return false
	}
	r.batch.lose(&c.Record, model.USD(c.Saving)-value.saving)
	c.Saving, c.Evictions = value.saving.Dollars(), value.evictions
	log.FromContext(ctx).Info("a command goes on with fewer nodes", "command", c.ID,
		"nodes", names(c.Remove), "stay", names(c.released), "because", found[0].Message)
	return true
}

// worth is what a command comes to: its saving an hour and the pods that it evicts.
type worth struct {
	saving    model.Money
	evictions int
}

func worthOf(r *Record, p *model.DisruptionProblem) worth {
	var w worth
	for n := range p.Problem.Nodes {
		node := &p.Problem.Nodes[n]
		if slices.ContainsFunc(r.Remove, func(r Removed) bool { return r.Node == node.Name }) {
			w.saving += node.Price
			for _, pods := range p.Usages[n].Pods {
				w.evictions += len(pods.Pods)
			}
		}
		if slices.ContainsFunc(r.Replace, func(r Replacement) bool { return r.Claim == node.Name || r.Claim == node.Claim }) {
			w.saving -= node.Price
		}
	}
	return w
}

// requestedOn is what the pods of nodes request, as shares of what all nodes of the
// fleet have room for, by the name of the node.
func requestedOn(nodes []Removed, s *fleet.Snapshot) map[string]float64 {
	out := map[string]float64{}
	for _, r := range nodes {
		out[r.Node] = 0
	}
	room := roomOf(s)
	for p := range s.Pods() {
		if sum, ours := out[p.Node]; ours && !p.Terminal {
			out[p.Node] = sum + size(&p.Spec.Requests, room)
		}
	}
	return out
}

func without(all, some []Removed) []Removed {
	return slices.DeleteFunc(slices.Clone(all), func(r Removed) bool { return slices.Contains(some, r) })
}
