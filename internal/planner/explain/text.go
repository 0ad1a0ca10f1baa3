package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// maxPools is how many NodePools Text lists, so that it never needs more than
// twelve lines.
const maxPools = 6

// Text explains in at most twelve lines, the verdict first, why pods have no
// place: what was asked, what each NodePool lost to which check, the nearest
// miss, and what would help.
func Text(p *model.Problem, u *model.Unschedulable) string {
	c := &p.Classes[u.Class]
	var b strings.Builder
	fmt.Fprintf(&b, "%s cannot be scheduled: %s.\n", subject(p, u), u.Reason)
	if u.Reason == model.ReasonPodInvalid {
		fmt.Fprintf(&b, "  %s\n  Fix: %s\n", u.Message, fixOf(u.Reason))
		return b.String()
	}
	fmt.Fprintf(&b, "  %s\n", meaningOf(u.Reason))
	fmt.Fprintf(&b, "  One pod asks for %s.\n", c.Requests.Format(p.Axes))
	for i, v := range u.Pools {
		if i == maxPools && len(u.Pools) > maxPools+1 {
			fmt.Fprintf(&b, "  ... and %d NodePools more.\n", len(u.Pools)-maxPools)
			break
		}
		fmt.Fprintf(&b, "  NodePool %s\n", verdict(p, &v))
	}
	if n := u.Nearest; n != nil {
		fmt.Fprintf(&b, "  Nearest: %s: has %s, wants %s.\n", candidate(n), n.Have, n.Want)
		fmt.Fprintf(&b, "  Fix: %s\n", n.Fix)
	} else {
		fmt.Fprintf(&b, "  Fix: %s\n", fixOf(u.Reason))
	}
	return b.String()
}

// Line is the short form for events and logs, one line without the pods' name.
func Line(p *model.Problem, u *model.Unschedulable) string {
	if u.Nearest == nil {
		if u.Reason == model.ReasonPoolRequirement {
			return meaningOf(u.Reason) + " " + perPool(u, func(v *model.PoolVerdict) string { return matchesNothing(p, v) })
		}
		return meaningOf(u.Reason)
	}
	pools := perPool(u, func(v *model.PoolVerdict) string { return verdict(p, v) })
	return fmt.Sprintf("%s: has %s, wants %s (nearest of: %s)", candidate(u.Nearest), u.Nearest.Have, u.Nearest.Want, pools)
}

// perPool says something of the first few NodePools.
func perPool(u *model.Unschedulable, say func(*model.PoolVerdict) string) string {
	var pools []string
	for i := range u.Pools {
		if i == 3 && len(u.Pools) > 4 {
			pools = append(pools, fmt.Sprintf("%d NodePools more", len(u.Pools)-3))
			break
		}
		pools = append(pools, say(&u.Pools[i]))
	}
	return strings.Join(pools, "; ")
}

// matchesNothing says what a NodePool asks for that nothing on sale has: single
// requirements that no offering meets, or else all of them together.
func matchesNothing(p *model.Problem, v *model.PoolVerdict) string {
	pool := &p.Pools[v.Pool]
	var asked, unmet []string
	for _, r := range pool.Requirements {
		if _, own := pool.Labels[r.Key]; own {
			continue
		}
		asked = append(asked, r.String())
		if !offered(p, pool, r) {
			unmet = append(unmet, r.String())
		}
	}
	if len(unmet) > 0 {
		asked = unmet
	}
	switch {
	case v.Offerings == 0:
		return fmt.Sprintf("The catalogue of NodePool %s has no offering", pool.Name)
	case len(asked) == 0:
		return fmt.Sprintf("NodePool %s matches none of %s", pool.Name, plural(v.Offerings, "offering"))
	}
	return fmt.Sprintf("NodePool %s matches none of %s with %s", pool.Name, plural(v.Offerings, "offering"), strings.Join(asked, ", "))
}

// offered reports whether an offering of the pool's catalogue meets a requirement.
func offered(p *model.Problem, pool *model.Pool, r model.Requirement) bool {
	types := p.Catalogs[pool.Catalog].InstanceTypes
	for i := range types {
		for j := range types[i].Offerings {
			if Meets(&types[i], &types[i].Offerings[j], r) {
				return true
			}
		}
	}
	return false
}

// Meets reports whether a machine bought under an offering meets a requirement, as
// far as what is sold decides.
func Meets(t *model.InstanceType, o *model.Offering, r model.Requirement) bool {
	value, known := o.Labels[r.Key]
	if !known {
		value, known = t.Labels[r.Key]
	}
	if choices := t.Choices[r.Key]; !known && len(choices) > 0 {
		return slices.ContainsFunc(choices, func(v string) bool { return r.Matches(v, true) })
	}
	return r.Matches(value, known)
}

func subject(p *model.Problem, u *model.Unschedulable) string {
	c := &p.Classes[u.Class]
	if c.Owner == "" && len(u.Pods) == 1 {
		return "Pod " + c.Pods[u.Pods[0]].String()
	}
	owner := c.Owner
	if owner == "" {
		owner = "Pod " + c.Pods[u.Pods[0]].String() + " and its like"
	}
	return owner + ": " + plural(len(u.Pods), "pod")
}

func verdict(p *model.Problem, v *model.PoolVerdict) string {
	var parts []string
	for _, r := range v.Removed {
		if r.Detail != "" {
			parts = append(parts, fmt.Sprintf("%s, %s", r.Reason, r.Detail))
		} else {
			parts = append(parts, fmt.Sprintf("%d %s", r.Count, r.Reason))
		}
	}
	return fmt.Sprintf("%s: %s: %s", p.Pools[v.Pool].Name, plural(v.Offerings, "offering"), strings.Join(parts, ", "))
}

func candidate(n *model.NearestMiss) string {
	if n.Node != "" {
		return "node " + n.Node
	}
	where := n.InstanceType
	if n.Zone != "" {
		where += " in " + n.Zone
	}
	return fmt.Sprintf("%s (%s, NodePool %s)", where, n.CapacityType, n.Pool)
}

func meaningOf(reason model.Reason) string {
	for _, r := range model.Reasons() {
		if r.Reason == reason {
			return r.Meaning
		}
	}
	return string(reason)
}
