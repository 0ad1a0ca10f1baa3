package feasible

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Constraints returns all constraints on options, in the order in which they are
// reported: first what the pod's user decides, then what does not fit, then what
// cannot be bought. To add a rule, add a value here.
func Constraints() []Constraint {
	resources := bySize(fitsBare, true).constraint(model.ReasonResources, ForSize)
	resources.Implied = true
	besideDaemons := bySize(fitsBesideDaemons, false)
	besideDaemons.changes = (*Space).resourcesMissing
	list := []Constraint{
		taints().constraint(model.ReasonTaint, ForClass),
		nodeAffinity().constraint(model.ReasonPodRequirement, ForClass),
		devices().constraint(model.ReasonResourceClaims, ForClass),
		volumeTopology().constraint(model.ReasonVolumeTopology, ForClass),
		resources,
		besideDaemons.constraint(model.ReasonDaemonOverhead, ForSize),
		bySize(fitsPodSlots, false).constraint(model.ReasonMaxPods, ForSize),
		bySize(fitsDiskSlots, false).constraint(model.ReasonVolumeSlots, ForSize),
		hostPorts().constraint(model.ReasonHostPort, ForClass),
		maxPrice().constraint(model.ReasonMaxPrice, ForClass),
		availability().constraint(model.ReasonUnavailable, ForSupply),
	}
	for _, reason := range lineReasons {
		list = append(list, line(reason).constraint(reason, ForSupply))
	}
	return list
}

// taints: the pod tolerates the taints of the NodePool, and those of an existing node.
// PreferNoSchedule taints are preferences and not part of this rule.
func taints() rule[[]model.Toleration] {
	return rule[[]model.Toleration]{
		part:    func(pod *Pod) []model.Toleration { return pod.Tolerations },
		options: func(s *Space, t []model.Toleration, left bitset.Set) { s.keepTolerating(left, t, false) },
		nodes:   func(s *Space, t []model.Toleration, left bitset.Set) { left.And(s.NodesTolerating(t, false)) },
		changes: (*Space).tolerationsMissing,
		figures: func(at Candidate, t []model.Toleration) Miss {
			pool := at.pool()
			taint := model.Untolerated(pool.Taints, t)
			return Miss{
				Have: "taint " + taint.String(), Want: "a toleration for it",
				Fix: fmt.Sprintf("Add a toleration for %s to the pod, or remove the taint from NodePool %s.", taint, pool.Name),
			}
		},
	}
}

// nodeAffinity are the pod's nodeSelector and its required node affinity.
func nodeAffinity() rule[NodeAffinity] {
	return rule[NodeAffinity]{
		part:    func(pod *Pod) NodeAffinity { return NodeAffinityOf(pod.PodClass) },
		options: func(s *Space, a NodeAffinity, left bitset.Set) { s.Labels.keepOptionsMeeting(left, a) },
		nodes:   func(s *Space, a NodeAffinity, left bitset.Set) { s.Labels.keepNodesMeeting(left, a) },
		changes: (*Space).requirementsMissing,
		figures: func(at Candidate, a NodeAffinity) Miss {
			have, want := at.unmet(append([]model.Requirements{a.All}, a.Any...))
			if a.contradicts(want.Key) {
				fix := fmt.Sprintf("Correct what the pod asks for on %s: no value meets all of it.", want.Key)
				return Miss{Have: have, Want: want.String(), Fix: fix}
			}
			return Miss{Have: have, Want: want.String(), Fix: at.labelFix(want)}
		},
	}
}

// devices: the machine has devices of the kinds that the pod's resource claims ask for, and
// is where those that are allocated already can be used.
func devices() rule[model.Requirements] {
	return rule[model.Requirements]{
		part: func(pod *Pod) model.Requirements { return pod.Devices },
		options: func(s *Space, rs model.Requirements, left bitset.Set) {
			s.Labels.keepOptionsMeeting(left, NodeAffinity{All: rs})
		},
		nodes: func(s *Space, rs model.Requirements, left bitset.Set) {
			s.Labels.keepNodesMeeting(left, NodeAffinity{All: rs})
		},
		figures: func(at Candidate, rs model.Requirements) Miss {
			have, want := at.unmet([]model.Requirements{rs})
			if kind := model.KindOfDevices(want.Key); kind != "" {
				return Miss{Have: "no such device", Want: kind}
			}
			return Miss{Have: have, Want: "the node of the allocated claim: " + want.String()}
		},
	}
}

// volumeTopology: the machine is where the pod's volumes can be attached.
func volumeTopology() rule[[]model.Requirements] {
	return rule[[]model.Requirements]{
		part:    func(pod *Pod) []model.Requirements { return pod.VolumeAlternatives },
		options: func(s *Space, places []model.Requirements, left bitset.Set) { left.Keep(s.Labels.anyOf(places)) },
		nodes:   func(s *Space, places []model.Requirements, left bitset.Set) { left.Keep(s.Labels.nodesAnyOf(places)) },
		figures: func(at Candidate, places []model.Requirements) Miss {
			have, want := at.unmet(places)
			if disks := model.DisksOf(want.Key); disks != "" {
				return Miss{
					Have: "no " + disks, Want: disks + " for a volume of the pod",
					Fix: fmt.Sprintf("Let NodePool %s buy machines with %s=true, or give the pod's volume another storage class.",
						at.pool().Name, want.Key),
				}
			}
			return Miss{Have: have, Want: want.String()}
		},
	}
}

// AtVolumes are the options in the places of a pod's volumes, nil for all, whether or not they can
// attach disks of that kind. The caller must not change them.
func (s *Space) AtVolumes(pod *Pod) bitset.Set {
	places := make([]model.Requirements, len(pod.VolumeAlternatives))
	for i, rs := range pod.VolumeAlternatives {
		places[i] = slices.DeleteFunc(slices.Clone(rs), func(r model.Requirement) bool { return model.DisksOf(r.Key) != "" })
	}
	return s.Labels.anyOf(places)
}

// hostPorts: no daemon of the machine takes a port of the pod. Ports of other pods
// are the business of the packages that put pods together.
func hostPorts() rule[[]model.HostPort] {
	return rule[[]model.HostPort]{
		part:    func(pod *Pod) []model.HostPort { return pod.HostPorts },
		options: func(s *Space, ports []model.HostPort, left bitset.Set) { s.keepPortsFree(left, ports) },
		figures: func(at Candidate, ports []model.HostPort) Miss {
			taken := at.Space.DaemonSets[at.Space.Options[at.Option].Daemons].Ports
			clash := slices.IndexFunc(ports, func(p model.HostPort) bool { return PortsClash([]model.HostPort{p}, taken) })
			return Miss{Have: "a DaemonSet on the host port", Want: fmt.Sprintf("port %d for itself", ports[max(clash, 0)].Port)}
		},
	}
}

// maxPrice: a machine costs no more per hour than the pod allows. It does not limit
// existing nodes, which the scheduler may use in any case.
func maxPrice() rule[model.Money] {
	return rule[model.Money]{
		part: func(pod *Pod) model.Money { return pod.MaxPrice },
		options: func(s *Space, most model.Money, left bitset.Set) {
			if most <= 0 {
				return
			}
			for i := range s.Options {
				if s.Options[i].Price > most {
					left.Remove(i)
				}
			}
		},
		figures: func(at Candidate, most model.Money) Miss {
			return Miss{Have: at.Space.Options[at.Option].Price.String(), Want: "at most " + most.String()}
		},
	}
}

// bySize is a constraint on what one pod takes: keep removes from left the options
// without the room. With bare, the room of a machine without its daemons is meant.
func bySize(keep func(s *Space, size []int64, left bitset.Set), bare bool) rule[[]int64] {
	return rule[[]int64]{
		part:    func(pod *Pod) []int64 { return pod.Size },
		options: keep,
		figures: func(at Candidate, size []int64) Miss { return at.tooSmall(size, bare) },
	}
}

// fitsBare keeps the options whose machines have the resources without their
// daemons.
func fitsBare(s *Space, size []int64, left bitset.Set) {
	fits := left.Clone()
	fitsBesideDaemons(s, size, fits)
	if slices.ContainsFunc(s.DaemonSets, func(d DaemonSet) bool { return slices.Max(d.Requests) > 0 }) {
		for _, r := range s.Capacity.Runs {
			if !fits.Has(r.First) && s.holdsBare(r.First, size) {
				fits.AddRange(r.First, r.End)
			}
		}
	}
	left.And(fits)
}

// fitsBesideDaemons keeps the options that have the resources beside their daemons. Slots
// for pods and disks have rules of their own.
func fitsBesideDaemons(s *Space, size []int64, left bitset.Set) {
	for d, v := range size[:s.Dims.Axes] {
		if d != model.Pods {
			s.Capacity.keepAtLeast(left, d, v)
		}
	}
}

// fitsPodSlots keeps the options that have a slot for the pod beside their daemons.
func fitsPodSlots(s *Space, size []int64, left bitset.Set) {
	s.Capacity.keepAtLeast(left, model.Pods, size[model.Pods])
}

// fitsDiskSlots keeps the options to which the pod's volumes can be attached, per driver.
func fitsDiskSlots(s *Space, size []int64, left bitset.Set) {
	for d := s.Dims.Axes; d < s.Dims.Count; d++ {
		s.Capacity.keepAtLeast(left, d, size[d])
	}
}

// nothing is the part of a pod on which rules about the supply depend.
type nothing struct{}

// availability: the cloud sells the offering right now. What the lines leave is the
// business of other rules, so that each has its own reason.
func availability() rule[nothing] {
	return rule[nothing]{
		part:    func(*Pod) nothing { return nothing{} },
		options: func(s *Space, _ nothing, left bitset.Set) { left.And(s.Supply.sold) },
		figures: func(at Candidate, _ nothing) Miss {
			_, offering := at.Space.Offering(at.Option)
			if offering.Unavailable == "" {
				return Miss{Have: "not available", Want: "an offering that is sold"}
			}
			return Miss{Have: offering.Unavailable, Want: "an offering that is sold"}
		},
	}
}

// line: what lines of a kind leave suffices for one machine.
func line(reason model.Reason) rule[nothing] {
	return rule[nothing]{
		part:    func(*Pod) nothing { return nothing{} },
		options: func(s *Space, _ nothing, left bitset.Set) { left.And(s.Supply.within[reason]) },
		figures: func(at Candidate, _ nothing) Miss { return at.exhausted(reason) },
	}
}

// pool is the NodePool of the option.
func (at Candidate) pool() *model.Pool {
	return &at.Space.Problem.Pools[at.Space.Options[at.Option].Pool]
}

// unmet names the first requirement that the option's labels do not meet, and the label
// that the option has instead. Of several alternatives the first one is told. Both are
// empty when every requirement is met.
func (at Candidate) unmet(alternatives []model.Requirements) (have string, want model.Requirement) {
	s := at.Space
	for _, rs := range alternatives {
		for _, r := range rs {
			if set := s.Labels.Matching(model.Requirements{r}); set.Has(at.Option) {
				continue
			}
			key := s.Labels.KeyIndex(r.Key)
			value, ok := s.Labels.ValueName(key, s.Labels.OptionValue(key, at.Option))
			if !ok {
				return "no such label", r
			}
			return r.Key + "=" + value, r
		}
	}
	return "", model.Requirement{}
}

// tooSmall compares what is missing most, as a share of what the pod takes; bare is the
// room of a machine without its daemons. Precondition: something is missing.
func (at Candidate) tooSmall(size []int64, bare bool) Miss {
	s := at.Space
	net, overhead := s.Net(at.Option), s.DaemonSets[s.Options[at.Option].Daemons].Requests
	worst, dim := -1.0, 0
	for d, want := range size {
		room := net[d]
		if bare {
			room += overhead[d]
		}
		if want > room {
			if short := float64(want-room) / float64(want); short > worst {
				worst, dim = short, d
			}
		}
	}
	miss := Miss{Have: s.Dims.format(dim, net[dim]), Want: s.Dims.format(dim, size[dim])}
	if net[dim]+overhead[dim] == 0 && dim < s.Dims.Axes {
		miss.Fix = fmt.Sprintf("Let NodePool %s buy instance types that have %s, or drop the request.", at.pool().Name, s.Dims.axisName(dim))
	}
	switch {
	case dim == model.EphemeralStorage:
		miss.Fix = diskFix(size[dim])
	case dim < s.Dims.Axes:
		switch most := s.asked.largest()[dim]; {
		case most == 0:
			miss.Fix = model.ResourceAdvice(s.Dims.axisName(dim))
		case size[dim] > most:
			miss.Fix = fmt.Sprintf("Lower the request: the largest machine on sale has %s.", s.Dims.format(dim, most))
		}
	}
	switch {
	case bare:
		miss.Have = s.Dims.format(dim, net[dim]+overhead[dim])
	case overhead[dim] > 0:
		miss.Have += " after " + strings.TrimSpace(s.Dims.format(dim, overhead[dim])) + " for DaemonSets"
	}
	return miss
}

// largestDisk is what pods may use of a machine with the largest system disk that an
// AKSNodeClass allows: of 2048 GB, the kubelet keeps a tenth free.
const largestDisk = 2048e9 / 10 * 9

// diskFix says what helps where a machine has too little ephemeral storage.
func diskFix(want int64) string {
	if want > largestDisk {
		return fmt.Sprintf("Lower the request: with the largest spec.osDiskSizeGB of an AKSNodeClass, 2048, a machine has %s.",
			model.FormatAmount(model.EphemeralStorage, largestDisk))
	}
	return "Raise spec.osDiskSizeGB of the AKSNodeClass, which sets it (2048 at most), or lower the request."
}

// exhausted compares what a machine takes with what is left of the first line of the
// reason that is short: at the start, or by now because of what the plan has bought. The
// result is empty when no line is short.
func (at Candidate) exhausted(reason model.Reason) Miss {
	for _, u := range at.Space.Uses(at.Option) {
		line := &at.Space.Supply.Lines[u.Line]
		if left := at.Ledger.Left(u.Line); line.Reason == reason && u.Amount > min(line.Left, left) {
			miss := Miss{Have: fmt.Sprintf("%s left of %s", line.Amount(left), line.Name), Want: line.Amount(u.Amount)}
			if reason == model.ReasonQuota {
				miss.Quota = strings.TrimPrefix(line.Name, quotaLine)
			}
			return miss
		}
	}
	if _, offering := at.Space.Offering(at.Option); reason == model.ReasonQuota && offering.NoQuota {
		return Miss{Have: offering.Unavailable, Want: "room for one machine"}
	}
	return Miss{}
}

// holdsBare reports whether a machine of an option without its daemons has the
// resources for a pod, apart from slots for pods and disks.
func (s *Space) holdsBare(option int, size []int64) bool {
	net, overhead := s.Net(option), s.DaemonSets[s.Options[option].Daemons].Requests
	for d, v := range size[:s.Dims.Axes] {
		if d != model.Pods && v > net[d]+overhead[d] {
			return false
		}
	}
	return true
}

// mostValues is how many values of a label are named as those that there are.
const mostValues = 8

// labelFix says what helps against a requirement on a label that the option lacks: another
// key, the values that are on sale, or a change of the NodePool.
func (at Candidate) labelFix(r model.Requirement) string {
	pool := at.pool()
	values, met := at.onSale(r)
	switch advice := model.LabelAdvice(r); {
	case met && advice == "":
		return fmt.Sprintf("Change the pod's nodeSelector or nodeAffinity on %s, or let NodePool %s buy machines that match it.",
			r.Key, pool.Name)
	case advice != "":
		return advice
	case len(values) == 0:
		if meant := model.MeantLabel(r.Key, at.Space.labelsOnSale(pool.Catalog)); meant != "" {
			return fmt.Sprintf("Select %s instead of %s, which no machine has.", meant, r.Key)
		}
		return fmt.Sprintf("Change the pod's nodeSelector or nodeAffinity on %s, or create a NodePool whose template has this label.", r.Key)
	case len(values) > mostValues:
		return fmt.Sprintf("Change the pod's nodeSelector or nodeAffinity on %s: none of its %d values on sale matches.", r.Key, len(values))
	}
	return fmt.Sprintf("Change the pod's nodeSelector or nodeAffinity on %s: there are %s.", r.Key, strings.Join(values, ", "))
}

// onSale are the values of a label in the catalogue of the option's NodePool, in order, and
// whether one of them, or the NodePool's own say on the label, can meet the requirement.
func (at Candidate) onSale(r model.Requirement) (values []string, met bool) {
	pool := at.pool()
	values = at.Space.valuesOnSale(pool.Catalog, r.Key)
	_, met = pool.Labels[r.Key]
	met = met || slices.ContainsFunc(values, func(value string) bool { return r.Matches(value, true) })
	own := slices.ContainsFunc(pool.Requirements, func(own model.Requirement) bool { return own.Key == r.Key })
	return values, met || own && len(values) == 0
}

// labelsOnSale are the keys of the labels in a catalogue, in order. They are looked for once.
func (s *Space) labelsOnSale(catalog int) []string {
	return Kept(s, saleKey{catalog: catalog}, func() []string {
		seen := map[string]bool{}
		types := s.Problem.Catalogs[catalog].InstanceTypes
		for i := range types {
			for key := range types[i].Labels {
				seen[key] = true
			}
			for key := range types[i].Choices {
				seen[key] = true
			}
			for j := range types[i].Offerings {
				for key := range types[i].Offerings[j].Labels {
					seen[key] = true
				}
			}
		}
		return slices.Sorted(maps.Keys(seen))
	})
}

// valuesOnSale are the values of a label in a catalogue, in order. They are looked for once:
// many pods may ask for the same label, and a catalogue has thousands of offerings.
func (s *Space) valuesOnSale(catalog int, label string) []string {
	return Kept(s, saleKey{catalog, label}, func() []string {
		seen := map[string]bool{}
		add := func(value string, known bool) {
			if known && !(label == model.LabelZone && value == model.NoZone) {
				seen[value] = true
			}
		}
		types := s.Problem.Catalogs[catalog].InstanceTypes
		for i := range types {
			value, known := types[i].Labels[label]
			add(value, known)
			for _, choice := range types[i].Choices[label] {
				add(choice, true)
			}
			for j := range types[i].Offerings {
				value, known := types[i].Offerings[j].Labels[label]
				add(value, known)
			}
		}
		return slices.Sorted(maps.Keys(seen))
	})
}

// largestAmounts are the most that a machine on sale has of each axis, whether or not a
// NodePool may buy it.
func largestAmounts(p *model.Problem, axes int) []int64 {
	most := make([]int64, axes)
	for c := range p.Catalogs {
		types := p.Catalogs[c].InstanceTypes
		for i := range types {
			has := types[i].Allocatable()
			for axis := range most {
				most[axis] = max(most[axis], has.Get(axis))
			}
		}
	}
	return most
}
