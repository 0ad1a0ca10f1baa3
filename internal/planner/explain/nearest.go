package explain

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// nearest finds the option for which the least must change: the fewest labels, tolerations,
// resources and limits, of those one that the pod may use and that has only run out, of those the
// one that misses by least, of those the cheapest. Where some are in the places of the pod's
// volumes, it is one of these. It says what that has and what the pod wants,
// and is nil if there is no option that fails a check.
func (e *Explainer) nearest(pod *feasible.Pod, checks []feasible.Check) *model.NearestMiss {
	s := e.Space
	best := e.least(usable(fewestChanges(e.reachable(pod), checks), checks), pod)
	if best < 0 {
		return nil
	}
	i := slices.IndexFunc(checks, func(c feasible.Check) bool { return c.Pass != nil && !c.Pass.Has(best) })
	if i < 0 {
		return nil
	}
	t, o := s.Offering(best)
	miss := checks[i].Figures(best)
	if miss.Fix == "" {
		miss.Fix = e.fix(checks[i].Reason)
	}
	return &model.NearestMiss{
		Pool: s.Problem.Pools[s.Options[best].Pool].Name, InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType,
		Reason: checks[i].Reason, Have: miss.Have, Want: miss.Want, Fix: miss.Fix, Quota: miss.Quota, Fails: e.fails(best, checks),
	}
}

// usable are those options of a set that have only run out: a limit or a quota is full, or the
// cloud has none at the moment. Where there are none it is the set itself. What a pod asks for is
// meant, more so than a limit.
func usable(set bitset.Set, checks []feasible.Check) bitset.Set {
	out := set.Clone()
	for _, c := range checks {
		if c.Pass != nil && c.Reason != model.ReasonUnavailable && !feasible.RunsOut(c.Reason) {
			out.And(c.Pass)
		}
	}
	if out.Any() {
		return out
	}
	return set
}

// fails are the reasons of all checks that an option fails, in their order.
func (e *Explainer) fails(option int, checks []feasible.Check) []model.Reason {
	var out []model.Reason
	for _, c := range checks {
		if c.Pass != nil && !c.Pass.Has(option) && !slices.Contains(out, c.Reason) {
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
