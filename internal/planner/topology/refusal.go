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

// Refuses returns why topology keeps one more pod of the class from the place, as
// the first rule that does, or nothing when it admits it.
func (w *World) Refuses(class int, r *Rules, p Place) model.Reason {
	reason, _ := w.refuses(class, r, p)
	return reason
}

// Refusal puts what [World.Refuses] returns into figures, or is nil.
func (w *World) Refusal(class int, r *Rules, p Place) *Refusal {
	switch reason, i := w.refuses(class, r, p); reason {
	case model.ReasonSpread:
		return w.spreadRefusal(class, &r.Spread[i], p)
	case model.ReasonAffinity:
		return w.affinityRefusal(r)
	case model.ReasonAntiAffinity:
		if i < len(r.Empty) {
			return w.antiRefusal(r.Empty[i], p, "that the anti-affinity selects")
		}
		return w.antiRefusal(w.repelled[class][i-len(r.Empty)], p, "whose anti-affinity selects this one")
	}
	return nil
}

// refuses finds the first rule that keeps a pod from a place: a spread by its number;
// an anti-affinity by its own, those of other pods after those of the class.
func (w *World) refuses(class int, r *Rules, p Place) (model.Reason, int) {
	for i := range r.Spread {
		if w.spreadRoom(&r.Spread[i], p) == 0 {
			return model.ReasonSpread, i
		}
	}
	if w.affinityRoom(r, p, Everything) == 0 {
		return model.ReasonAffinity, 0
	}
	for i, c := range r.Empty {
		if w.emptyRoom(class, c, p, Everything) == 0 {
			return model.ReasonAntiAffinity, i
		}
	}
	for i, c := range w.repelled[class] {
		if w.emptyRoom(class, c, p, Everything) == 0 {
			return model.ReasonAntiAffinity, len(r.Empty) + i
		}
	}
	return "", 0
}

func (w *World) affinityRefusal(r *Rules) *Refusal {
	out := &Refusal{Reason: model.ReasonAffinity, Have: "no pod that the affinity selects in the domain"}
	if len(r.Affinity) > 1 {
		out.Have = "no pod that all terms of the affinity select in the domain"
		out.Fix = "Check that the pods selected by the affinity exist, that all of its terms select them, and where they run."
	}
	var keys []string
	for i := range r.Affinity {
		if key := w.KeyName(r.Affinity[i].Key); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	out.Want = "such a pod in the same " + strings.Join(keys, " and ")
	return out
}

func (w *World) spreadRefusal(class int, s *Spread, p Place) *Refusal {
	d := w.Domain(s.Key, p)
	key := w.KeyName(s.Key)
	if d < 0 {
		return &Refusal{Reason: model.ReasonSpread, Have: "no label " + key, Want: "label " + key}
	}
	out := &Refusal{Reason: model.ReasonSpread, Want: fmt.Sprintf("at most %d more than the fewest", s.MaxSkew)}
	out.Have = fmt.Sprintf("%s %s, ", pods(w.counters[s.Counter].Count(d)), w.within(s.Key, d))
	all := len(s.Domains) + len(w.spreads[s.id].more)
	empty, closed := w.unreachable(s)
	switch {
	case all < s.MinDomains:
		out.Have += fmt.Sprintf("fewest elsewhere 0 (%d domains of at least %d)", all, s.MinDomains)
		out.Fix = "Lower minDomains, raise maxSkew, or allow more zones."
	case closed:
		name := w.domainName(s.Key, empty)
		out.Have += fmt.Sprintf("and %d in %s, which counts although no NodePool can buy for the pod there", w.Minimum(s), name)
		out.Fix = w.leaveOut(class, s, empty) + ", let a NodePool buy there, raise maxSkew, or use ScheduleAnyway."
	default:
		out.Have += fmt.Sprintf("fewest elsewhere %d", w.Minimum(s))
	}
	return out
}

// leaveOut says how the pods of a class keep a domain from counting.
func (w *World) leaveOut(class int, s *Spread, d int32) string {
	name, key := w.domainName(s.Key, d), w.KeyName(s.Key)
	tolerated := w.space.NodesTolerating(w.space.Problem.Classes[class].Tolerations, false)
	tainted := false
	for n := range w.space.Problem.Nodes {
		if w.space.NodeValue(s.Key, n) == d {
			if tainted = !tolerated.Has(n); !tainted {
				break
			}
		}
	}
	switch {
	case tainted && len(w.spreads[s.id].more) == 0:
		return "Set nodeTaintsPolicy of the constraint to Honor, which leaves out the tainted nodes of " + name
	case !w.spreads[s.id].byAffinity:
		return fmt.Sprintf("Set nodeAffinityPolicy of the constraint to Honor and leave %s out with a nodeAffinity on %s", name, key)
	}
	return fmt.Sprintf("Leave %s out with a nodeAffinity on %s in the pod", name, key)
}

func pods(n int32) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// unreachable finds a domain that holds the fewest pods of a spread and in which
// no machine can be bought for them. Where every machine is a domain of its own,
// a new one is as good as any.
func (w *World) unreachable(s *Spread) (int32, bool) {
	if s.Key == Host {
		return 0, false
	}
	own := &w.spreads[s.id]
	reach := make([]bool, w.space.Values(s.Key))
	for o := range own.options.All {
		if v := w.space.OptionValue(s.Key, o); v >= 0 {
			reach[v] = true
		}
	}
	least := w.Minimum(s)
	for _, d := range slices.Concat(own.known, own.more) {
		if w.counters[s.Counter].Count(d) == least && !reach[d] {
			return d, true
		}
	}
	return 0, false
}

func (w *World) antiRefusal(counter int, p Place, whom string) *Refusal {
	c := w.counters[counter]
	d := w.Domain(c.Key, p)
	return &Refusal{Reason: model.ReasonAntiAffinity, Have: fmt.Sprintf("%s %s %s", pods(c.Count(d)), whom, w.within(c.Key, d)), Want: "none in the same " + w.KeyName(c.Key)}
}

// KeyName is the label behind a key number.
func (w *World) KeyName(key int) string {
	if key == Host {
		return model.LabelHostname
	}
	return w.space.Keys()[key]
}

// within says where a pod of a domain is.
func (w *World) within(key int, d int32) string {
	if key == Host {
		return "on that node"
	}
	return "in " + w.domainName(key, d)
}

func (w *World) domainName(key int, d int32) string {
	name, _ := w.space.ValueName(key, d)
	return name
}
