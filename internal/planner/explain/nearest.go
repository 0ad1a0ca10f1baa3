package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// nearest finds the option for which the least must change: the fewest labels, tolerations and
// resources, of those the fewest limits and the like that have only run out, of those the
// one that misses by least, of those the cheapest. Where some are in the places of the pod's
// volumes, it is one of these. It says what that has and what the pod wants, of several misses
// the first that lasts, and is nil if there is no option that fails a check.
func (e *Explainer) nearest(pod *feasible.Pod, rules *topology.Rules, checks []feasible.Check) *model.NearestMiss {
	s := e.Space
	best := e.least(leastChanged(e.reachable(pod), checks), pod)
	if best < 0 {
		return nil
	}
	failed := e.failed(best, rules, checks)
	if len(failed) == 0 {
		return nil
	}
	first := failed[0]
	t, o := s.Offering(best)
	miss := first.Figures(best)
	if first.Reason == model.ReasonPodRequirement {
		miss.Fix = cmp.Or(volumeFix(pod.PodClass, miss.Want), miss.Fix)
	}
	if miss.Fix == "" {
		miss.Fix = e.fix(first.Reason)
	}
	return &model.NearestMiss{
		Pool: s.Problem.Pools[s.Options[best].Pool].Name, InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType,
		Reason: first.Reason, Have: miss.Have, Want: miss.Want, Fix: miss.Fix, Quota: miss.Quota, Fails: e.fails(best, failed),
	}
}

// volumeFix says what helps where the pod asks for a value of a label that no place of its volumes
// has, as for another zone than its disk is in: no NodePool can. It is empty for all else.
func volumeFix(class *model.PodClass, want string) string {
	for _, rs := range append([]model.Requirements{class.NodeRequirements}, class.NodeAlternatives...) {
		at := slices.IndexFunc(rs, func(r model.Requirement) bool { return r.String() == want })
		if at < 0 {
			continue
		}
		var values []string
		for _, place := range class.VolumeAlternatives {
			of := slices.IndexFunc(place, func(r model.Requirement) bool { return r.Key == rs[at].Key && r.Operator == model.In })
			if of < 0 || slices.ContainsFunc(place[of].Values, func(value string) bool { return rs[at].Matches(value, true) }) {
				return ""
			}
			values = append(values, place[of].Values...)
		}
		if len(values) > 0 {
			slices.Sort(values)
			return fmt.Sprintf("Change the pod's nodeSelector or nodeAffinity on %s: a volume of the pod can be used in %s alone.",
				rs[at].Key, strings.Join(slices.Compact(values), ", "))
		}
	}
	return ""
}

// passing reports whether what a reason says passes by itself or with a setting of an
// administrator: a limit, a quota or a reservation is full, or the cloud has none at the moment.
// What a pod asks for is meant, more so than a limit.
func passing(reason model.Reason) bool {
	return reason == model.ReasonUnavailable || feasible.RunsOut(reason)
}

// follows reports whether an option may fail a check only because something has run out: with
// more of that there were more values of a label, or the pods that it must be near had a place.
func (e *Explainer) follows(reason model.Reason, rules *topology.Rules) bool {
	return reason == model.ReasonMinValues || reason == model.ReasonAffinity && e.Waits(rules)
}

// leastChanged are the options within a set for which the least must change: the fewest changes
// beside what has only run out, of those the fewest of all.
func leastChanged(within bitset.Set, checks []feasible.Check) bitset.Set {
	lasting := make([]feasible.Check, 0, len(checks))
	for _, c := range checks {
		if !passing(c.Reason) {
			lasting = append(lasting, c)
		}
	}
	return fewestChanges(fewestChanges(within, lasting, 0), checks, 1)
}

// failed are the checks that an option fails: those that last come first, because nothing that
// is done about the others helps before, and those that may follow from the others last.
func (e *Explainer) failed(option int, rules *topology.Rules, checks []feasible.Check) []feasible.Check {
	var all, lasting, following, out []feasible.Check
	for _, c := range checks {
		if c.Pass == nil || c.Pass.Has(option) {
			continue
		}
		all = append(all, c)
		switch {
		case passing(c.Reason):
			out = append(out, c)
		case e.follows(c.Reason, rules):
			following = append(following, c)
		default:
			lasting = append(lasting, c)
		}
	}
	if len(out) == 0 {
		return all
	}
	return slices.Concat(lasting, out, following)
}

// fails are the reasons of the checks that an option fails, in their order, and that of the line
// which leaves no room for it.
func (e *Explainer) fails(option int, failed []feasible.Check) []model.Reason {
	var out []model.Reason
	for _, c := range failed {
		if !slices.Contains(out, c.Reason) {
			out = append(out, c.Reason)
		}
	}
	if line := e.exhausted(option); line >= 0 && !slices.Contains(out, e.Space.Supply.Lines[line].Reason) {
		out = append(out, e.Space.Supply.Lines[line].Reason)
	}
	return out
}

// fix is what helps against a reason in general. The list of reasons is made once for all
// classes.
func (e *Explainer) fix(reason model.Reason) string {
	if e.fixes == nil {
		e.fixes = map[model.Reason]string{}
		for _, r := range model.Reasons() {
			e.fixes[r.Reason] = r.Fix
		}
	}
	return e.fixes[reason]
}

// least is the option of a set that misses the size of a pod by least, of those the
// cheapest, or -1 if the set is empty.
func (e *Explainer) least(set bitset.Set, pod *feasible.Pod) int {
	s := e.Space
	fits := s.Allowed(feasible.ForSize, pod)
	fits.And(set)
	if fits.Any() {
		return e.cheapest(fits)
	}
	best, bestMiss := -1, 0.0
	for o := set.Next(0); o >= 0; {
		run := &s.Capacity.Runs[s.Options[o].Run]
		miss := shortage(pod.Size, run.Net)
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

// cheapest is the option of a set, which is not empty, with the lowest price, of equal ones
// the first. Prices are read once for all classes: options are large, and walking over
// them for each class takes longer than everything else here.
func (e *Explainer) cheapest(set bitset.Set) int {
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

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
