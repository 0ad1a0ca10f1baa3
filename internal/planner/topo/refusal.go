package topo

import (
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Refusal is a topology rule that keeps a pod from a place, with figures.
type Refusal struct {
	Reason     model.Reason
	Have, Want string
}

// Refuses returns the first rule that keeps one more pod of the class from the
// place, or nil when topology admits it.
func (w *World) Refuses(class int, r *Rules, p Place) *Refusal {
	for i := range r.Spread {
		if s := &r.Spread[i]; w.spreadRoom(s, p) == 0 {
			return w.spreadRefusal(s, p)
		}
	}
	if w.affinityRoom(r, p, Everything) == 0 {
		keys := make([]string, len(r.Affinity))
		for i := range r.Affinity {
			keys[i] = w.KeyName(r.Affinity[i].Key)
		}
		return &Refusal{model.ReasonAffinity, "no pod that the affinity selects in the domain", "such a pod in the same " + strings.Join(keys, " and ")}
	}
	for _, c := range r.Empty {
		if w.emptyRoom(class, c, p, Everything) == 0 {
			return w.antiRefusal(c, p, "that the anti-affinity selects")
		}
	}
	for _, c := range w.repelled[class] {
		if w.emptyRoom(class, c, p, Everything) == 0 {
			return w.antiRefusal(c, p, "whose anti-affinity selects this one")
		}
	}
	return nil
}

func (w *World) spreadRefusal(s *Spread, p Place) *Refusal {
	d := w.Domain(s.Key, p)
	key := w.KeyName(s.Key)
	if d < 0 {
		return &Refusal{model.ReasonSpread, "no label " + key, "label " + key}
	}
	have := fmt.Sprintf("%d pods in %s, fewest elsewhere %d", w.counters[s.Counter].Count(d), w.domainName(s.Key, d), w.Minimum(s))
	if len(s.Domains) < s.MinDomains {
		have += fmt.Sprintf(" (%d domains of at least %d)", len(s.Domains), s.MinDomains)
	}
	return &Refusal{model.ReasonSpread, have, fmt.Sprintf("at most %d more than the fewest", s.MaxSkew)}
}

func (w *World) antiRefusal(counter int, p Place, whom string) *Refusal {
	c := w.counters[counter]
	d := w.Domain(c.Key, p)
	return &Refusal{model.ReasonAntiAffinity, fmt.Sprintf("%d pods %s in %s", c.Count(d), whom, w.domainName(c.Key, d)), "none in the same " + w.KeyName(c.Key)}
}

// KeyName is the label behind a key number.
func (w *World) KeyName(key int) string {
	if key == Host {
		return model.LabelHostname
	}
	return w.space.Keys()[key]
}

func (w *World) domainName(key int, d int32) string {
	if key == Host {
		return "that node"
	}
	name, _ := w.space.ValueName(key, d)
	return name
}
