package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Pending says in words why pods stay pending. Commands and scenarios show all of it,
// events as much as fits into one line ([Pending.Short]).
type Pending struct {
	// Reason is the code of what Why says; empty for another engine's words.
	Reason model.Reason
	// Why is a sentence without its full stop.
	Why string
	// Nearest is the nearest miss, Fix what to change; either may be empty.
	Nearest, Fix string
	// Needs is what alone the nearest miss lacks, such as "needs a In [b]", for where Nearest is
	// too long; empty where the miss does not say, and where a limit or a quota is short.
	Needs string
	// NotCause is what the nearest miss passes, such as "taints, limits"; empty where that is
	// not known.
	NotCause string
	// Details are what one pod asks for, how many more wait, and what each NodePool
	// lost to which check.
	Details []string
}

// Describe puts into words why the pods have no place.
func Describe(p *model.Problem, u *model.Unschedulable) Pending {
	out := Refused(u.Reason, u.Message, "")
	if n := u.Nearest; n != nil {
		out.Nearest, out.Needs, out.Fix, out.NotCause = nearestText(n), needsText(n), cmp.Or(n.Fix, out.Fix), passed(n)
	} else if u.Reason == model.ReasonPoolRequirement && len(u.Pools) > 0 {
		out.Fix = cmp.Or(widen(p, &p.Pools[u.Pools[0].Pool]), out.Fix)
	}
	say := func(format string, args ...any) { out.Details = append(out.Details, fmt.Sprintf(format, args...)) }
	say("it asks for %s", p.Classes[u.Class].Requests.Format(p.Axes))
	if more := furtherMisses(u.Nearest); more != "" {
		say("the nearest miss has more in its way: %s", more)
	}
	switch others := len(u.Pods) - 1; {
	case others == 1:
		say("1 other pod of the same kind stays pending with it")
	case others > 1:
		say("%d other pods of the same kind stay pending with it", others)
	}
	for _, i := range u.LeftOut {
		say("NodePool %s would take it and buys nothing: %s", p.LeftOut[i].Pool, p.LeftOut[i].Message)
	}
	for _, v := range u.Pools {
		var removed []string
		for _, r := range v.Removed {
			text := fmt.Sprintf("%d %s", r.Count, r.Reason)
			if r.Detail != "" {
				text += " (" + r.Detail + ")"
			}
			removed = append(removed, text)
		}
		say("NodePool %s: of %s, removed by %s", p.Pools[v.Pool].Name, plural(v.Offerings, "offering"), strings.Join(removed, ", "))
	}
	return out
}

// furtherMisses are the reasons that the nearest miss has beside the one that is told. A machine
// that is too small is so with its DaemonSets, too, which says nothing more.
func furtherMisses(n *model.NearestMiss) string {
	if n == nil {
		return ""
	}
	var out []string
	for _, r := range n.Fails {
		if r != n.Reason && (r != model.ReasonDaemonOverhead || n.Reason != model.ReasonResources) {
			out = append(out, string(r))
		}
	}
	return strings.Join(out, ", ")
}

// Refused puts into words why a pod is not planned at all. An empty message stands for
// the meaning of the reason, an empty fix for what helps against it in general.
func Refused(reason model.Reason, message, fix string) Pending {
	return Pending{Reason: reason, Why: strings.TrimSuffix(cmp.Or(message, Meaning(reason)), "."), Fix: cmp.Or(fix, fixOf(reason))}
}

// Short is the explanation in one sentence of no more than most characters: why and the reason's
// code, the nearest miss or at least what that lacks, what to change. Of the last two, what does
// not fit is left out; a first part that alone is too long ends after a word in "...", before the
// code.
// Precondition: most is at least 3.
func (w Pending) Short(most int) string {
	code := ""
	if w.Reason != "" && len(w.Reason) < most/2 {
		code = fmt.Sprintf(" (%s)", w.Reason)
	}
	text := model.Sentence(w.Why, most-len(code)) + code
	add := func(before, words string) bool {
		longer := text + before + model.Sentence(words, math.MaxInt)
		if words == "" || utf8.RuneCountInString(longer) > most {
			return false
		}
		text = longer
		return true
	}
	if !add("; nearest: ", w.Nearest) {
		add("; ", w.Needs)
	}
	add("; ", model.Clause(w.Fix))
	return text
}

// nearestText is the nearest miss in one line.
func nearestText(n *model.NearestMiss) string {
	var where []string
	for _, part := range []string{n.Node, n.InstanceType, n.Zone, string(n.CapacityType)} {
		if part != "" {
			where = append(where, part)
		}
	}
	if n.Pool != "" {
		where = append(where, "NodePool "+n.Pool)
	}
	text := strings.Join(where, ", ")
	if n.Have == "" && n.Want == "" {
		return text + ": " + string(n.Reason)
	}
	return fmt.Sprintf("%s: has %s, needs %s", text, cmp.Or(n.Have, "nothing"), cmp.Or(n.Want, "nothing"))
}

// needsText is what the nearest miss lacks, without which one it is. An amount says nothing
// without the limit or quota that leaves less.
func needsText(n *model.NearestMiss) string {
	if n.Want == "" || feasible.RunsOut(n.Reason) {
		return ""
	}
	return "needs " + n.Want
}

// passed names what people suspect first and the nearest miss does not fail.
func passed(n *model.NearestMiss) string {
	if len(n.Fails) == 0 {
		return ""
	}
	var out []string
	for _, suspect := range []struct {
		name    string
		reasons []model.Reason
	}{
		{"taints", []model.Reason{model.ReasonTaint}},
		{"labels and zones", []model.Reason{model.ReasonPodRequirement, model.ReasonVolumeTopology}},
		{"size", []model.Reason{model.ReasonResources, model.ReasonDaemonOverhead, model.ReasonMaxPods, model.ReasonVolumeSlots}},
		{"limits", []model.Reason{model.ReasonLimit, model.ReasonNodeLimit, model.ReasonCostLimit}},
		{"quota", []model.Reason{model.ReasonQuota}},
		{"capacity of Azure", []model.Reason{model.ReasonUnavailable}},
	} {
		if !slices.ContainsFunc(suspect.reasons, func(r model.Reason) bool { return slices.Contains(n.Fails, r) }) {
			out = append(out, suspect.name)
		}
	}
	return strings.Join(out, ", ")
}

// Meaning is what a reason means, one sentence.
func Meaning(reason model.Reason) string {
	for _, r := range model.Reasons() {
		if r.Reason == reason {
			return r.Meaning
		}
	}
	return string(reason)
}

// fixOf is what helps against a reason in general; empty for an unknown one.
func fixOf(reason model.Reason) string {
	for _, r := range model.Reasons() {
		if r.Reason == reason {
			return r.Fix
		}
	}
	return ""
}

// verdict is why no NodePool takes the pods, one sentence without the figures of the
// nearest miss.
func verdict(p *model.Problem, u *model.Unschedulable) string {
	if u.Reason == model.ReasonPoolRequirement && u.Nearest == nil && len(u.Pools) > 0 {
		return perPool(u, func(v *model.PoolVerdict) string { return matchesNothing(p, v) })
	}
	return Meaning(u.Reason)
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
		if _, own := pool.Labels[r.Key]; own && !decides(&p.Catalogs[pool.Catalog], r.Key) {
			continue
		}
		switch {
		case !offered(&p.Catalogs[pool.Catalog], r):
			unmet = append(unmet, r.String())
		case r.Key == model.LabelMode && r.Operator == model.NotIn: // every NodePool that says nothing of it has that
			continue
		}
		asked = append(asked, r.String())
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

// mostValues is how many values of a label are named as those that there are.
const mostValues = 8

// widen says which requirement of a NodePool nothing on sale meets, and what there is of its
// label; empty where each is met by something.
func widen(p *model.Problem, pool *model.Pool) string {
	for _, r := range pool.Requirements {
		if value, own := pool.Labels[r.Key]; own && !r.Matches(value, true) {
			return fmt.Sprintf("Make the label %s=%s in the template of NodePool %s and its requirement %s agree.", r.Key, value, pool.Name, r)
		}
		if _, own := pool.Labels[r.Key]; own || offered(&p.Catalogs[pool.Catalog], r) {
			continue
		}
		values := map[string]bool{}
		types := p.Catalogs[pool.Catalog].InstanceTypes
		for i := range types {
			for j := range types[i].Offerings {
				value := cmp.Or(types[i].Offerings[j].Labels[r.Key], types[i].Labels[r.Key])
				if value != "" && !(r.Key == model.LabelZone && value == model.NoZone) {
					values[value] = true
				}
			}
		}
		if len(values) == 0 || len(values) > mostValues {
			return fmt.Sprintf("Correct the requirement of NodePool %s on %s: none of its %d values on sale matches.", pool.Name, r.Key, len(values))
		}
		return fmt.Sprintf("Correct the requirement of NodePool %s on %s: there are %s.",
			pool.Name, r.Key, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	return ""
}

// offered reports whether an offering of a catalogue meets a requirement.
func offered(c *model.Catalog, r model.Requirement) bool {
	types := c.InstanceTypes
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
	switch {
	case known:
	case r.Key == model.LabelInstanceType:
		value, known = t.Name, true
	case r.Key == model.LabelCapacityType:
		value, known = string(o.CapacityType), true
	case r.Key == model.LabelZone:
		value, known = o.Zone, true
	}
	if choices := t.Choices[r.Key]; !known && len(choices) > 0 {
		return slices.ContainsFunc(choices, func(v string) bool { return r.Matches(v, true) })
	}
	return r.Matches(value, known)
}
