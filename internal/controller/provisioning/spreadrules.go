package provisioning

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// spreadRule is a hard topology spread constraint that counts the pod itself. When the
// scheduler tries a node, it counts the pods that are nominated for it as if they ran there
// (RunFilterPluginsWithNominatedPods of kube-scheduler), but not those which are nominated for
// other nodes. So pods of one rule that are nominated for one node stand in each other's
// way: none of them passes, the scheduler takes their nominations back, and the room that
// they kept is open to all.
type spreadRule struct {
	// key is equal for pods that count each other.
	key string
	// most is how many of them may be nominated for one node at once.
	most int
}

// spreadRules are the rules of a pod. As many may be nominated for one node as the skew
// allows: more than that never pass together.
func spreadRules(pod *fleet.Pod) []spreadRule {
	var rules []spreadRule
	for i := range pod.Spec.Spread {
		s := &pod.Spec.Spread[i]
		if !s.Hard || pod.Labels == nil || !s.Selector.Matches(pod.Labels.Values) {
			continue
		}
		key := pod.Ref.Namespace + "\x00" + string(model.CompactKey(model.AppendKey(nil, s)))
		rules = append(rules, spreadRule{key, int(s.MaxSkew)})
	}
	return rules
}

// boundByZones reports whether a hard topology spread constraint or a required pod affinity or
// anti-affinity term of a pod is over zones, so that other pods may close a zone to it.
func boundByZones(spec *fleet.PodSpec) bool {
	overZones := func(t fleet.Term) bool { return t.TopologyKey == model.LabelZone }
	return slices.ContainsFunc(spec.Spread, func(s model.SpreadConstraint) bool { return s.Hard && s.TopologyKey == model.LabelZone }) ||
		slices.ContainsFunc(spec.Affinity, overZones) || slices.ContainsFunc(spec.AntiAffinity, overZones)
}

// spreadRoom counts the pods of each rule that are nominated for one node.
type spreadRoom map[string]int

// take reports whether one more pod with these rules may be nominated, and counts it if so.
func (r spreadRoom) take(rules []spreadRule) bool {
	for _, rule := range rules {
		if r[rule.key] >= rule.most {
			return false
		}
	}
	r.add(rules)
	return true
}

func (r spreadRoom) add(rules []spreadRule) {
	for _, rule := range rules {
		r[rule.key]++
	}
}

// spreadRoom counts the pods of a group whose nominations stand; written are those that were
// last written, by pod.
func (g *group) spreadRoom(written map[types.UID]string) spreadRoom {
	room := spreadRoom{}
	for uid, p := range g.pods {
		if len(p.rules) > 0 && !p.wanted && written[uid] == g.node {
			room.add(p.rules)
		}
	}
	return room
}
