package fleet

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// sortPods gives every bound pod to its machine and collects those that need a
// place: the waiting ones, and the ones that must leave their node.
func (a *assembly) sortPods() {
	a.users = map[objectKey]int{}
	for _, p := range a.pods {
		for _, c := range p.Claims {
			if !p.Terminal {
				a.users[objectKey{p.Ref.Namespace, c}]++
			}
		}
		if m := cmp.Or(a.nominated(p), a.plannedFor(p)); m != nil {
			m.pods = append(m.pods, p)
			continue
		}
		switch {
		case p.Wanted:
			a.want(p)
		case p.Bound():
			m := a.byNode[p.Node]
			if m == nil {
				continue
			}
			if m.state == model.NodeLeaving && p.Movable(a.opts.Now) && !a.heldByBudget(p) {
				a.want(p)
				continue
			}
			m.pods = append(m.pods, p)
		}
	}
	for _, m := range a.machines {
		slices.SortFunc(m.pods, func(x, y *Pod) int { return compareRefs(x.Ref, y.Ref) })
	}
}

// older orders pods by age, then by name.
func older(x, y *Pod) int {
	if c := x.Created.Compare(y.Created); c != 0 {
		return c
	}
	return compareRefs(x.Ref, y.Ref)
}

// nominated returns the machine that a waiting pod is promised to, if it is there
// to stay.
func (a *assembly) nominated(p *Pod) *machine {
	if p.Nominated == "" || p.Node != "" || p.Terminal {
		return nil
	}
	if m := a.byNode[p.Nominated]; m != nil && m.state != model.NodeLeaving {
		return m
	}
	return nil
}

// plannedFor returns the machine on which a move under way has a place for a pod
// whose own node leaves.
func (a *assembly) plannedFor(p *Pod) *machine {
	name, known := a.planned[p.Ref]
	if !known || !p.Bound() || !p.Movable(a.opts.Now) {
		return nil
	}
	if m := a.byNode[p.Node]; m == nil || m.state != model.NodeLeaving {
		return nil
	}
	if a.promised == nil {
		a.promised = map[string]*machine{}
		for _, m := range a.machines {
			a.promised[m.name] = m
			if m.claim != nil {
				a.promised[m.claim.Name] = m
			}
		}
	}
	if m := a.promised[name]; m != nil && m.state != model.NodeLeaving {
		return m
	}
	return nil
}

// houses reports whether a pod runs on the machine, and is not only promised to it.
func (m *machine) houses(p *Pod) bool { return m.node != nil && p.Node == m.node.Name }

func (a *assembly) want(p *Pod) {
	switch {
	case p.Spec.AvoidsPools:
		a.reject(p, model.ReasonPodRequirement, "the pod asks for a node outside every NodePool", true)
	case p.Spec.Invalid != "":
		a.reject(p, model.ReasonPodInvalid, p.Spec.Invalid, false)
	default:
		a.wanted = append(a.wanted, p)
	}
}

// reject leaves a pod out. One that should have moved stays where it is, and
// counts there.
func (a *assembly) reject(p *Pod, reason model.Reason, message string, quiet bool) {
	if m := a.byNode[p.Node]; m != nil {
		i, _ := slices.BinarySearchFunc(m.pods, p, func(x, y *Pod) int { return compareRefs(x.Ref, y.Ref) })
		m.pods = slices.Insert(m.pods, i, p)
	}
	a.in.Rejected = append(a.in.Rejected, Rejection{Pod: p.Ref, Owner: p.ownerName(), Reason: reason, Message: message, Quiet: quiet})
}

// heldByBudget reports whether a pod cannot be evicted for good: its budget
// allows no disruption ever, or more than one budget selects it, which
// Kubernetes refuses.
func (a *assembly) heldByBudget(p *Pod) bool {
	matching := 0
	for _, b := range a.budgets {
		if b.Namespace == p.Ref.Namespace && b.Selector.Matches(p.Labels.Values) {
			if b.Blocking {
				return true
			}
			matching++
		}
	}
	return matching > 1
}
