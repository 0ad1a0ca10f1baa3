package offers

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// Joint is the cheapest option that holds the pods of two new nodes of a state together,
// that costs no more than most and that the ledger affords in their place; -1 if there is
// none. Rules on hosts are not asked. The nodes must be of one pool without minValues and
// in the same domains of every key that some rule of topology reads, and so is the option.
func (a *Alternatives) Joint(s *placement.State, x, y *placement.Place, most model.Money) int {
	p := a.poolOf(x.Option)
	if !a.alike(s, x, y) {
		return -1
	}
	joint := a.joined(s, x, y)
	if joint == nil {
		return -1
	}
	settled := s.Domains.Settled(joint)
	labels := a.in.Space.Labels
	if slices.ContainsFunc(settled, func(k int) bool { return labels.OptionValue(k, x.Option) != labels.OptionValue(k, y.Option) }) {
		return -1
	}
	fits := p.fitting(s, joint, s.Used(joint))
	for _, k := range a.in.Topology.LabelKeys() {
		fits.And(p.valued(k, labels.OptionValue(k, x.Option)))
	}
	s.Ledger.Take(x.Option, -1)
	s.Ledger.Take(y.Option, -1)
	defer s.Ledger.Take(x.Option, 1)
	defer s.Ledger.Take(y.Option, 1)
	for _, o := range p.order {
		if a.in.Space.Options[o].Price > most {
			return -1
		}
		if p.has(fits, o) && s.Ledger.Admits(o) {
			return o
		}
	}
	return -1
}

// alike reports whether two new nodes are of one pool without minValues and in the same
// domains.
func (a *Alternatives) alike(s *placement.State, x, y *placement.Place) bool {
	options := a.in.Space.Options
	if options[x.Option].Pool != options[y.Option].Pool || x.Open || y.Open || len(a.in.MinValues.Of(int(options[x.Option].Pool))) > 0 {
		return false
	}
	for _, k := range a.in.Topology.LabelKeys() {
		if a.in.Space.Labels.OptionValue(k, x.Option) != a.in.Space.Labels.OptionValue(k, y.Option) {
			return false
		}
	}
	for _, pc := range y.Pods {
		if s.Domains.Order.Seen(pc.Class, x.Place) != s.Domains.Order.Seen(pc.Class, y.Place) {
			return false
		}
	}
	return true
}

// joined is a place with the pods of both, planned as the first one's option although that
// may be too small; nil where host ports clash. It is not part of the state.
func (a *Alternatives) joined(s *placement.State, x, y *placement.Place) *placement.Place {
	joint := *x
	joint.Free, joint.Pods, joint.Options = slices.Clone(x.Free), slices.Clone(x.Pods), x.Options.Clone()
	joint.Ports, joint.Attached = slices.Clip(x.Ports), slices.Clip(x.Attached)
	joint.Options.And(y.Options)
	for _, pc := range y.Pods {
		c := &a.in.Classes[pc.Class]
		if len(c.Spec.HostPorts) > 0 && feasible.PortsClash(c.Spec.HostPorts, joint.Ports) {
			return nil
		}
		s.Load(c, pc.Level, pc.Count, &joint)
	}
	return &joint
}
