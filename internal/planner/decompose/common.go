package decompose

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// Common are the classes, by index, that alone keep a large problem from being divided: they do
// not ask for a value of a label that a NodePool leaves open, so that they may run on machines of
// any value and relate all of these to each other. It returns nil where the problem has no more
// cells than so many ([Cells]), where it is not divided without them, where topology terms
// relate them to other classes, and where spreads may count domains that one phase does not know of.
// It follows from the problem alone.
func Common(p *model.Problem, from, cells int) []int {
	if len(p.Classes) < 3 {
		return nil
	}
	open := newOpenLabels(p)
	isOpen := func(label string) bool { return label != "" }
	if !slices.ContainsFunc(open.of, isOpen) || cellsOf(p, open) <= cells {
		return nil
	}
	common := indifferent(p, open)
	if len(common) == 0 || len(common) == len(p.Classes) || relatedByTerms(p, common) || unknownDomains(p) {
		return nil
	}
	rest := *p
	rest.Classes = chosen(p.Classes, others(p, common))
	if divide(&rest, newRelations(&rest, newOpenLabels(&rest)), from) == nil {
		return nil
	}
	return common
}

// indifferent are the classes that some NodePool with an open label takes without a value of it.
func indifferent(p *model.Problem, open *openLabels) []int {
	var out []int
	known := map[string]bool{}
	pools, cloud := newPoolsByLabel(p), noderules.NewCloudLabels(p)
	for c := range p.Classes {
		rules := placesOf(&p.Classes[c])
		key := rules.Key()
		is, seen := known[key]
		if !seen {
			is = slices.ContainsFunc(pools.candidates(&rules), func(i int) bool {
				return open.of[i] != "" && valuesOf(&rules, open.of[i]) == nil && rules.Admits(&p.Pools[i], cloud)
			})
			known[key] = is
		}
		if is {
			out = append(out, c)
		}
	}
	return out
}

// others are all classes but these.
func others(p *model.Problem, these []int) []int {
	return slices.DeleteFunc(allOf(len(p.Classes)), func(c int) bool {
		_, is := slices.BinarySearch(these, c)
		return is
	})
}

// relatedByTerms reports whether topology terms relate these classes to others.
func relatedByTerms(p *model.Problem, these []int) bool {
	r := &relations{problem: p, parent: allOf(len(p.Classes))}
	r.relateTerms()
	roots := map[int]bool{}
	for _, c := range these {
		roots[r.root(c)] = true
	}
	return slices.ContainsFunc(others(p, these), func(c int) bool { return roots[r.root(c)] })
}

// unknownDomains reports whether a topology term is about a label that some NodePool leaves open, or
// whether pods spread over domains that their volumes keep them from: these count once there is a
// node in them, which other pods may bring about.
func unknownDomains(p *model.Problem) bool {
	keys, cloud := topologyKeys(p), noderules.NewCloudLabels(p)
	return slices.ContainsFunc(p.Pools, func(pool model.Pool) bool { return opensDomains(&pool, keys, cloud) }) ||
		slices.ContainsFunc(p.Classes, func(c model.PodClass) bool {
			return len(c.VolumeAlternatives) > 0 && spreadsOverDomains(c)
		})
}

// Phases are the two parts of a problem of which one has these classes, the other one the rest,
// both with all NodePools and nodes and with a share of the budget by their pods.
func Phases(p *model.Problem, common []int) (rest, own Part) {
	phase := func(classes []int) Part {
		q := *p
		q.Classes = chosen(p.Classes, classes)
		q.Policy.Budget = share(&p.Policy, q.PodCount(), p.PodCount(), leastShare)
		return Part{Problem: &q, pools: allOf(len(p.Pools)), nodes: allOf(len(p.Nodes)), classes: classes}
	}
	return phase(others(p, common)), phase(common)
}

// undecided stands for the value that a machine will get of a label. No label has it.
const undecided = "(undecided)"

// Beside states a phase after a plan of the other one, whose machines it may fill, and whose
// pods have their places. Some machines are full: those of NodePools with minValues, since another
// pod could take from their choice, those of NodePools beside which there is a heavier one, which a
// pod may have to use, those which may get a value of a label that some pod does not want, and
// those that cost more than some pod allows. Others hold no pods which ask for one value of a label
// that they are still to get. Beside reports whether there are machines of either kind.
func (t *Part) Beside(whole *model.Problem, plan *model.Plan) (closed bool) {
	p := After(whole, plan)
	p.Classes, p.Policy = t.Problem.Classes, t.Problem.Policy
	asked, avoided, most := map[string]bool{}, map[string]bool{}, model.Money(math.MaxInt64)
	for c := range p.Classes {
		if own := p.Classes[c].MaxPrice; own > 0 {
			most = min(most, own)
		}
		rules := noderules.Of(&p.Classes[c])
		rules.Asked(func(r *model.Requirement) {
			asked[r.Key] = true
			if r.Operator != model.In && r.Operator != model.Exists && r.Operator != model.DoesNotExist {
				avoided[r.Key] = true
			}
		})
	}
	heaviest := math.MinInt
	for i := range whole.Pools {
		heaviest = max(heaviest, whole.Pools[i].Weight)
	}
	for i := len(whole.Nodes); i < len(p.Nodes); i++ {
		n := &p.Nodes[i]
		pool := &whole.Pools[plan.NewNodes[i-len(whole.Nodes)].Pool]
		unclear := false
		for _, r := range pool.Requirements {
			if _, known := n.Labels[r.Key]; !known {
				n.Labels[r.Key] = undecided
				unclear, closed = unclear || avoided[r.Key], closed || asked[r.Key]
			}
			unclear = unclear || r.MinValues > 0
		}
		if unclear || pool.Weight < heaviest || n.Price > most {
			n.Used, closed = n.Allocatable, true
		}
	}
	t.Problem, t.nodes = p, allOf(len(p.Nodes))
	return closed
}

// Fill adds the plan of a phase beside a plan of the whole ([Part.Beside]) to that one, and
// returns which machines have more pods than before, by index among the new nodes. These are not
// sorted, and the bound is the one that the plan had: it holds without the pods that are added.
func (t *Part) Fill(whole *model.Problem, out, plan *model.Plan) (filled []int) {
	bound, added := out.LowerBound, *plan
	added.Placements = nil
	at := map[int]int{} // placements by node
	for i := range out.Placements {
		at[out.Placements[i].Node] = i
	}
	for _, pl := range plan.Placements {
		i, known := at[pl.Node]
		switch n := pl.Node - len(whole.Nodes); {
		case n >= 0:
			out.NewNodes[n].Pods = withPods(out.NewNodes[n].Pods, t.podsOf(pl.Pods))
			filled = append(filled, n)
		case known:
			out.Placements[i].Pods = withPods(out.Placements[i].Pods, t.podsOf(pl.Pods))
		default:
			added.Placements = append(added.Placements, pl)
		}
	}
	t.addTo(out, &added)
	out.LowerBound = bound
	return filled
}

// withPods has more pods, of other classes.
func withPods(pods, more []model.ClassPods) []model.ClassPods {
	out := slices.Concat(pods, more)
	slices.SortFunc(out, func(a, b model.ClassPods) int { return a.Class - b.Class })
	return out
}

// Sort sorts a plan of the whole as [Merge] does.
func Sort(p *model.Problem, plan *model.Plan) { inOrder(p, plan) }

// Unbound is a problem whose pods may run on machines of any value of the labels that NodePools leave
// open, and without topology: no plan of the problem costs less than the cheapest one of it that
// places the same pods. It is a small problem, since the values make no difference.
func Unbound(p *model.Problem) *model.Problem {
	labels := map[string]bool{}
	for _, label := range newOpenLabels(p).of {
		labels[label] = true
	}
	strip := func(rs model.Requirements) model.Requirements {
		return slices.DeleteFunc(slices.Clone(rs), func(r model.Requirement) bool { return labels[r.Key] })
	}
	out := *p
	out.Classes = slices.Clone(p.Classes)
	for i := range out.Classes {
		c := &out.Classes[i]
		c.NodeRequirements = strip(c.NodeRequirements)
		alternatives := make([]model.Requirements, 0, len(c.NodeAlternatives))
		for _, rs := range c.NodeAlternatives {
			alternatives = append(alternatives, strip(rs))
		}
		c.NodeAlternatives = alternatives
		c.Spread, c.Affinity, c.AntiAffinity, c.Preferences, c.NodePreferences = nil, nil, nil, nil, nil
	}
	out.Policy.Elapsed, out.Policy.Replay = nil, nil
	return &out
}
