package nodechoice

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// domains says in which domains of a label key the bins of a problem are, and how many pods
// of each placed class every domain takes; nil where no class has a rule by which that is
// limited, or where there are too many pods to count them by domain. The bins are those of the
// packing's options, then those of the rooms, of which none may stand for several nodes.
// Allowed are the options of each class of the instance.
func (r *relaxation) domains(k *packing, rooms []room, allowed []bitset.Set) *binpack.Domains {
	key := r.spreadKey()
	if key == topology.Host || !binpack.Countable(&k.problem, 1) {
		return nil
	}
	labels := &r.in.Space.Labels
	var values []int32
	d := &binpack.Domains{}
	add := func(value int32) {
		at := slices.Index(values, value)
		if at < 0 {
			at = len(values)
			values = append(values, value)
		}
		d.Of = append(d.Of, at)
	}
	for _, o := range k.options {
		add(labels.OptionValue(key, o))
	}
	for i := range rooms {
		add(labels.NodeValue(key, rooms[i].nodes.Next(0)))
	}
	if d.Count = len(values); !binpack.Countable(&k.problem, d.Count) {
		return nil
	}
	limits := false
	for i := range r.in.Classes {
		if r.target.Placed[i] == 0 {
			continue
		}
		var spans []binpack.Span
		for _, s := range r.in.Topology.Spans(r.in.HardRules(i), key, topology.Placeable{
			Pods: r.target.Placed[i], Options: allowed[i], Nodes: r.in.LastLevel(i).Nodes, Domains: values,
			Alone: func(counter int) bool { return r.countedAlone(counter, i) },
		}) {
			spans = append(spans, binpack.Span(s))
			limits = true
		}
		d.Spans = append(d.Spans, spans)
	}
	if !limits {
		return nil
	}
	return d
}

// spreadKey is the label key of most rules by which placed classes spread or keep apart, or
// [topology.Host] if there is none.
func (r *relaxation) spreadKey() int {
	rulesOf, key := map[int]int{}, topology.Host
	for i := range r.in.Classes {
		if r.target.Placed[i] == 0 {
			continue
		}
		rules := r.in.HardRules(i)
		note := func(k int) {
			if k == topology.Host {
				return
			}
			if rulesOf[k]++; key == topology.Host || rulesOf[k] > rulesOf[key] {
				key = k
			}
		}
		for j := range rules.Spread {
			note(rules.Spread[j].Key)
		}
		for _, a := range rules.AntiAffinity {
			note(a.Key)
		}
	}
	return key
}

// countedAlone reports whether of all placed pods a counter counts those of one class alone.
func (r *relaxation) countedAlone(counter, class int) bool {
	for i := range r.in.Classes {
		if i != class && r.target.Placed[i] > 0 && slices.Contains(r.in.Topology.Adds(i), int32(counter)) {
			return false
		}
	}
	return true
}
