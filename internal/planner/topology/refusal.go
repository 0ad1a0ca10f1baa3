package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Refusal is a topology rule that keeps a pod from a place, with figures.
type Refusal struct {
	Reason     model.Reason
	Have, Want string
	// Fix is what to change, where more can be said than of the reason at large.
	Fix string
}

// Refuses returns why topology keeps one more pod from the place, as the reason of the
// first rule that does, or nothing when it admits the pod.
func (c *Counts) Refuses(r *Rules, p Place) model.Reason {
	reason, _ := c.refuses(r, p)
	return reason
}

// Refusal puts what [Counts.Refuses] returns into figures, or is nil.
func (c *Counts) Refusal(r *Rules, p Place) *Refusal {
	f := figures{c, r, p}
	switch reason, i := c.refuses(r, p); reason {
	case model.ReasonSpread:
		return f.spread(&r.Spread[i])
	case model.ReasonAffinity:
		return f.affinity()
	case model.ReasonAntiAffinity:
		if i < len(r.AntiAffinity) {
			a := &r.AntiAffinity[i]
			return f.excluded(a.Key, c.in(a.Counter, c.t.Domain(a.Key, p)), "that the anti-affinity selects")
		}
		const selecting = "whose anti-affinity selects this one"
		if i -= len(r.AntiAffinity); i == len(r.Inverse) {
			return f.excluded(Host, c.residents.count(p.ID, r.repelling), selecting)
		}
		a := &r.Inverse[i]
		return f.excluded(a.Key, c.in(a.Counter, c.t.Domain(a.Key, p)), selecting)
	default: // the other reasons are none of topology
	}
	return nil
}

// refuses finds the first rule that keeps a pod from a place, and its index: of an
// anti-affinity, inverse terms are numbered after those of the class, and those over hosts
// have one number, which comes last.
func (c *Counts) refuses(r *Rules, p Place) (model.Reason, int) {
	for i := range r.Spread {
		if c.spreadRoom(r, &r.Spread[i], p) == 0 {
			return model.ReasonSpread, i
		}
	}
	if c.affinityRoom(r, p, Everything) == 0 {
		return model.ReasonAffinity, 0
	}
	for i := range r.AntiAffinity {
		if c.antiAffinityRoom(&r.AntiAffinity[i], p, Everything) == 0 {
			return model.ReasonAntiAffinity, i
		}
	}
	for i := range r.Inverse {
		if c.antiAffinityRoom(&r.Inverse[i], p, Everything) == 0 {
			return model.ReasonAntiAffinity, len(r.AntiAffinity) + i
		}
	}
	if c.residents.count(p.ID, r.repelling) > 0 {
		return model.ReasonAntiAffinity, len(r.AntiAffinity) + len(r.Inverse)
	}
	return "", 0
}

// figures says in words how far a place is from a rule.
type figures struct {
	counts *Counts
	rules  *Rules
	place  Place
}

func (f *figures) affinity() *Refusal {
	out := &Refusal{Reason: model.ReasonAffinity, Have: "no pod that the affinity selects in the domain"}
	if len(f.rules.Affinity) > 1 {
		out.Have = "no pod that all terms of the affinity select in the domain"
		out.Fix = "Check that the pods selected by the affinity exist, that all of its terms select them, and where they run."
	}
	var keys []string
	for i := range f.rules.Affinity {
		if key := f.counts.t.KeyName(f.rules.Affinity[i].Key); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	out.Want = "such a pod in the same " + strings.Join(keys, " and ")
	return out
}

func (f *figures) spread(s *Spread) *Refusal {
	c := f.counts
	d, key := c.t.Domain(s.Key, f.place), c.t.KeyName(s.Key)
	if d < 0 {
		return &Refusal{Reason: model.ReasonSpread, Have: "no label " + key, Want: "label " + key, Fix: f.unknownKey(s.Key)}
	}
	out := &Refusal{Reason: model.ReasonSpread, Want: fmt.Sprintf("at most %d more than the fewest", s.MaxSkew)}
	out.Have = fmt.Sprintf("%s %s, ", pods(c.in(s.Counter, d)), f.within(s.Key, d))
	empty, closed := f.unreachable(s)
	switch {
	case c.Eligible.TooFew(s):
		out.Have += fmt.Sprintf("fewest elsewhere 0 (%d domains of at least %d)", c.Eligible.count(s), s.MinDomains)
		out.Fix = "Lower minDomains, raise maxSkew, or allow more zones."
	case closed:
		name := f.domainName(s.Key, empty)
		out.Have += fmt.Sprintf("and %d in %s, which counts although no NodePool can buy for the pod there", c.Minimum(s), name)
		out.Fix = f.leaveOut(s, empty) + ", let a NodePool buy there, raise maxSkew, or use ScheduleAnyway."
	default:
		out.Have += fmt.Sprintf("fewest elsewhere %d", c.least(f.rules, s, f.place))
	}
	return out
}

// unknownKey says what helps against a spread over a label that no machine has; empty where one has
// it, or can have it.
func (f *figures) unknownKey(key int) string {
	if f.counts.t.space.Labels.Values(key) > 0 {
		return ""
	}
	name := f.counts.t.KeyName(key)
	if domain, _, _ := strings.Cut(name, "/"); strings.HasSuffix(domain, "kubernetes.io") { // which NodePools may not set
		return fmt.Sprintf("Spread over another label, or use ScheduleAnyway: no machine has %s.", name)
	}
	return fmt.Sprintf(
		"Give the template of each NodePool the label %s, which no machine has, spread over another one, or use ScheduleAnyway.",
		name)
}

// leaveOut says how a pod keeps a domain from being eligible.
func (f *figures) leaveOut(s *Spread, d int32) string {
	t, space := f.counts.t, f.counts.t.space
	name, key := f.domainName(s.Key, d), t.KeyName(s.Key)
	tolerated := space.NodesTolerating(space.Problem.Classes[f.rules.Class].Tolerations, false)
	tainted := false
	for n := range space.Problem.Nodes {
		if space.Labels.NodeValue(s.Key, n) == d {
			if tainted = !tolerated.Has(n); !tainted {
				break
			}
		}
	}
	switch {
	case tainted && len(f.counts.Eligible.more(s.group)) == 0:
		return "Set nodeTaintsPolicy of the constraint to Honor, which leaves out the tainted nodes of " + name
	case !s.byNodeAffinity:
		return fmt.Sprintf("Set nodeAffinityPolicy of the constraint to Honor and leave %s out with a nodeAffinity on %s", name, key)
	}
	return fmt.Sprintf("Leave %s out with a nodeAffinity on %s in the pod", name, key)
}

// unreachable finds an eligible domain that holds the fewest pods of a spread and in
// which no node can be bought for them. There is none where every node is a domain: a
// new one is as good as any.
func (f *figures) unreachable(s *Spread) (int32, bool) {
	if s.Key == Host {
		return 0, false
	}
	c := f.counts
	reach := make([]bool, c.t.space.Labels.Values(s.Key))
	for o := range s.options.All {
		if v := c.t.space.Labels.OptionValue(s.Key, o); v >= 0 {
			reach[v] = true
		}
	}
	least := c.Minimum(s)
	for _, d := range slices.Concat(s.Domains, c.Eligible.more(s.group)) {
		if c.in(s.Counter, d) == least && !reach[d] {
			return d, true
		}
	}
	return 0, false
}

// excluded says how many pods in the domain of a key exclude the pod.
func (f *figures) excluded(key int, n int32, which string) *Refusal {
	return &Refusal{
		Reason: model.ReasonAntiAffinity,
		Have:   fmt.Sprintf("%s %s %s", pods(n), which, f.within(key, f.counts.t.Domain(key, f.place))),
		Want:   "none in the same " + f.counts.t.KeyName(key),
	}
}

// within says where a pod of a domain is.
func (f *figures) within(key int, d int32) string {
	if key == Host {
		return "on that node"
	}
	return "in " + f.domainName(key, d)
}

func (f *figures) domainName(key int, d int32) string {
	name, _ := f.counts.t.space.Labels.ValueName(key, d)
	return name
}

func pods(n int32) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
