package consolidate

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// unplaceable explains why the listed unplaced pods of a state have no place.
type unplaceable struct {
	st *state.State
	// now says that no machine was sought for them.
	now bool
}

// explain says of the first class of them what keeps it off the other nodes, or from
// being given a new one. The pods come from node n.
func (u unplaceable) explain(n int) *model.KeptNode {
	p := u.st.Problem
	name := p.NodeName(n)
	for _, class := range u.st.Unplaced.Classes() {
		count := u.st.Unplaced.Of(class)
		if count == 0 {
			continue
		}
		where, one := "on no other node and on no machine that can be bought", "one"
		if u.now {
			where, one = "on no other node now", "a machine"
		}
		why := compiled.Keep(n, model.ReasonNoPlace, "%s of %s on %s %s %s",
			compiled.Plural(int(count), "pod"), p.Owner(class), name, compiled.Fit(int(count)), where)
		for _, cp := range p.Nodes[n].Moving {
			if p.FirstMovable+cp.Class == int(class) {
				why.Pod = p.Input.Movable[cp.Class].Pods[cp.Pods[0]]
			}
		}
		if refusal := u.refusal(class); refusal != nil {
			why.Reason = refusal.Reason
			why.Message += fmt.Sprintf(": where there is room there is %s, wanted is %s", refusal.Have, refusal.Want)
		} else if line := u.exhausted(class); line != nil {
			why.Reason = line.Reason
			why.Message += fmt.Sprintf(": %s leaves no room for %s %s", line.Name, one, besides(line.Reason, name))
		}
		why.Message += "."
		return why
	}
	return compiled.Keep(n, model.ReasonNoPlace, "The pods of %s have no place elsewhere.", name)
}

// forLimits reports whether limits in resources or nodes, and nothing else, keep all listed unplaced
// pods from having a place.
func (u unplaceable) forLimits() bool {
	for _, class := range u.st.Unplaced.Classes() {
		if u.st.Unplaced.Of(class) == 0 {
			continue
		}
		line := u.exhausted(class)
		if line == nil || !replaceable(line.Reason) || u.refusal(class) != nil {
			return false
		}
	}
	return true
}

// replaceable reports whether in limits of this reason the replacement of a node takes its place.
func replaceable(reason model.Reason) bool {
	return reason == model.ReasonLimit || reason == model.ReasonNodeLimit
}

// besides says of which room in a limit or quota a new node would need more: that of the node which
// goes, or what is left beside it.
func besides(reason model.Reason, name string) string {
	if replaceable(reason) {
		return "in the place of " + name
	}
	return fmt.Sprintf("while %s exists", name)
}

// summary names the unplaced pods: "3 pods of deployment web and 2 other groups".
func (u unplaceable) summary() (text, fit string) {
	classes := 0
	for _, class := range u.st.Unplaced.Classes() {
		n := u.st.Unplaced.Of(class)
		if n == 0 {
			continue
		}
		if classes++; classes == 1 {
			text, fit = fmt.Sprintf("%s of %s", compiled.Plural(int(n), "pod"), u.st.Problem.Owner(class)), compiled.Fit(int(n))
		}
	}
	if classes > 1 {
		text, fit = text+fmt.Sprintf(" and %s", compiled.Plural(classes-1, "other group")), compiled.Fit(classes)
	}
	return text, fit
}

// exhausted is the limit or quota that keeps a new node for a pod of the class from
// being bought: that of the first option which would hold one, where each of them is
// kept by one; otherwise nil.
func (u unplaceable) exhausted(class int32) *feasible.Line {
	p := u.st.Problem
	var first *feasible.Line
	for o := range p.Space.Allowed(feasible.ForClass, p.Space.Pod(&p.Planning.Classes[class])).All {
		if _, offering := p.Space.Offering(o); !offering.Available || !feasible.Fits(p.Classes[class].Size, p.Project(p.Space.Net(o))) {
			continue
		}
		short := slices.IndexFunc(p.Space.Uses(o), func(use feasible.Use) bool { return use.Amount > u.st.Ledger.Left(use.Line) })
		if short < 0 {
			return nil
		}
		if first == nil {
			first = &p.Space.Supply.Lines[p.Space.Uses(o)[short].Line]
		}
	}
	return first
}

// refusal is the rule of topology that keeps a pod of the class off a node that has
// room, with all preferences dropped; nil when there is no such node.
func (u unplaceable) refusal(class int32) *topology.Refusal {
	c := &u.st.Problem.Classes[class]
	last := len(c.Levels) - 1
	for i := range u.st.Index.All {
		if u.st.Bins.At(i).Removed || !feasible.Fits(c.Size, u.st.Bins.Free(i)) || !u.st.Bins.IsNode(i) || !c.Levels[last].Nodes.Has(int(i)) {
			continue
		}
		if r := u.st.Counts.Refusal(c.Levels[last].Rules, u.st.Bins.Place(i)); r != nil {
			return r
		}
	}
	return nil
}
