package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// nearest finds the option that fails the fewest checks, of those the one that
// misses by least, and says what it has and what the pod wants.
func (e *Explainer) nearest(class int, c *model.PodClass, size []int64, rules *topology.Rules, checks []feasible.Check) *model.NearestMiss {
	s := e.Space
	best := e.least(fewestFailures(len(s.Options), checks), size)
	if best < 0 {
		return nil
	}
	var failed model.Reason
	for _, check := range checks {
		if check.Pass != nil && !check.Pass.Has(best) {
			failed = check.Reason
			break
		}
	}
	if failed == "" {
		return nil
	}
	t, o := s.Offering(best)
	near := &model.NearestMiss{
		Pool: s.Problem.Pools[s.Options[best].Pool].Name, InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType, Reason: failed,
	}
	e.figures(near, best, class, c, size, rules)
	return near
}

// least is the option of a set that misses a size by least, of those the cheapest, or
// -1 if the set is empty.
func (e *Explainer) least(set feasible.Set, size []int64) int {
	s := e.Space
	fits := s.Holding(size)
	fits.And(set)
	if fits.Any() {
		return e.cheapest(fits)
	}
	best, bestMiss := -1, 0.0
	for o := set.Next(0); o >= 0; {
		run := &s.Runs[s.Options[o].Run]
		miss := shortage(size, run.Net)
		for ; o >= 0 && o < run.End && (best < 0 || miss <= bestMiss); o = set.Next(o + 1) {
			if best < 0 || miss < bestMiss || s.Options[o].Price < s.Options[best].Price {
				best, bestMiss = o, miss
			}
		}
		if o >= 0 && o < run.End {
			o = set.Next(run.End)
		}
	}
	return best
}

// cheapest is the option of a set, which is not empty, with the lowest price.
func (e *Explainer) cheapest(set feasible.Set) int {
	if e.prices == nil {
		e.prices = make([]model.Money, len(e.Space.Options))
		for o := range e.prices {
			e.prices[o] = e.Space.Options[o].Price
		}
	}
	best := set.Next(0)
	for o := range set.All {
		if e.prices[o] < e.prices[best] {
			best = o
		}
	}
	return best
}

// shortage is by how much, at worst, a size exceeds what there is, relative to
// the size; zero when it fits.
func shortage(size, room []int64) float64 {
	worst := 0.0
	for d, want := range size {
		if want > room[d] {
			worst = max(worst, float64(want-room[d])/float64(want))
		}
	}
	return worst
}

// figures fills in have, want and the remedy.
func (e *Explainer) figures(n *model.NearestMiss, option, class int, c *model.PodClass, size []int64, rules *topology.Rules) {
	s := e.Space
	pool := &s.Problem.Pools[s.Options[option].Pool]
	t, offering := s.Offering(option)
	n.Fix = fixOf(n.Reason)
	switch n.Reason {
	case model.ReasonTaint:
		taint := model.Untolerated(pool.Taints, c.Tolerations)
		n.Have, n.Want = "taint "+taint.String(), "a toleration for it"
		n.Fix = fmt.Sprintf("Add a toleration for %s to the pod, or remove the taint from NodePool %s.", taint, pool.Name)
	case model.ReasonPodRequirement:
		n.Have, n.Want = e.label(option, append([]model.Requirements{c.NodeRequirements}, c.NodeAlternatives...))
		n.Fix = fmt.Sprintf("Change the pod's nodeSelector or nodeAffinity on %s, or let NodePool %s buy machines that match it.", firstWord(n.Want), pool.Name)
	case model.ReasonVolumeTopology:
		n.Have, n.Want = e.label(option, c.VolumeAlternatives)
	case model.ReasonResources, model.ReasonDaemonOverhead, model.ReasonMaxPods, model.ReasonVolumeSlots:
		e.amounts(n, option, size)
	case model.ReasonHostPort:
		n.Have, n.Want = "a DaemonSet on the host port", fmt.Sprintf("port %d for itself", c.HostPorts[0].Port)
	case model.ReasonUnavailable:
		n.Have, n.Want = offering.Unavailable, "an offering that is sold"
		if n.Have == "" {
			n.Have = "not available"
		}
	case model.ReasonQuota, model.ReasonReservation, model.ReasonLimit, model.ReasonNodeLimit:
		e.line(n, option)
	case model.ReasonMinValues:
		if short := e.Scant(class, option, size); short != nil {
			n.Have = fmt.Sprintf("%s of %s among the offerings that hold the pod", plural(short.Have, "value"), short.Key)
			n.Want = fmt.Sprintf("%d (minValues of NodePool %s)", short.Want, pool.Name)
		}
	case model.ReasonSpread, model.ReasonAffinity, model.ReasonAntiAffinity:
		if r := e.refusal(class, rules, option); r != nil {
			n.Have, n.Want = r.Have, r.Want
			if r.Fix != "" {
				n.Fix = r.Fix
			}
		}
	default:
		n.Have, n.Want = t.Name, "another offering"
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// label names the first requirement that the option's labels do not meet.
func (e *Explainer) label(option int, alternatives []model.Requirements) (have, want string) {
	s := e.Space
	for _, rs := range alternatives {
		for _, r := range rs {
			if set := s.Matching(model.Requirements{r}); set.Has(option) {
				continue
			}
			value, ok := s.ValueName(s.KeyIndex(r.Key), s.OptionValue(s.KeyIndex(r.Key), option))
			if !ok {
				return "no such label", r.String()
			}
			return r.Key + "=" + value, r.String()
		}
	}
	return "", ""
}

// amounts compares what is missing most.
func (e *Explainer) amounts(n *model.NearestMiss, option int, size []int64) {
	s := e.Space
	o := &s.Options[option]
	overhead := s.DaemonSets[o.Daemons].Requests
	worst, at := -1.0, 0
	for d, want := range size {
		room := o.Net[d]
		if n.Reason == model.ReasonResources {
			room += overhead[d]
		}
		if want > room {
			if short := float64(want-room) / float64(want); short > worst {
				worst, at = short, d
			}
		}
	}
	axes := s.Dims - len(s.Drivers)
	if o.Net[at]+overhead[at] == 0 && at < axes {
		n.Fix = fmt.Sprintf("Let NodePool %s buy instance types that have %s, or drop the request.", n.Pool, s.AxisName(at))
	}
	name := func(v int64) string {
		if at < axes {
			return s.AxisName(at) + " " + model.FormatAmount(at, v)
		}
		return fmt.Sprintf("%s disks %d", s.Drivers[at-axes], v)
	}
	n.Want = name(size[at])
	if n.Reason == model.ReasonResources {
		n.Have = name(o.Net[at] + overhead[at])
		return
	}
	n.Have = name(o.Net[at])
	if overhead[at] > 0 {
		n.Have += " after " + strings.TrimSpace(name(overhead[at])) + " for DaemonSets"
	}
}

// line compares what a machine takes with what is left of what runs out.
func (e *Explainer) line(n *model.NearestMiss, option int) {
	for _, u := range e.Space.Options[option].Uses {
		line := &e.Space.Lines[u.Line]
		if line.Reason == n.Reason && u.Amount > min(line.Left, e.Ledger.Left(u.Line)) {
			n.Have = fmt.Sprintf("%s left of %s", line.Amount(e.Ledger.Left(u.Line)), line.Name)
			n.Want = line.Amount(u.Amount)
			return
		}
	}
}

func fixOf(reason model.Reason) string {
	all := model.Reasons()
	i := slices.IndexFunc(all, func(r model.ReasonInfo) bool { return r.Reason == reason })
	if i < 0 {
		return ""
	}
	return all[i].Fix
}
