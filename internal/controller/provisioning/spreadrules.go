package provisioning

import (
	corev1 "k8s.io/api/core/v1"
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

// spreadRules are the rules of a pod. On the hosts of a rule as many may be nominated as may
// run. Of zones, one less than the skew: then a pod passes on each node of a zone that has
// no more pods than the others, whichever of the pods the scheduler looks at first. With a
// skew of 1 none is nominated, since only the next one in the order of zones passes.
func spreadRules(pod *fleet.Pod) []spreadRule {
	var rules []spreadRule
	for i := range pod.Spec.Spread {
		s := &pod.Spec.Spread[i]
		if !s.Hard || pod.Labels == nil || !s.Selector.Matches(pod.Labels.Values) {
			continue
		}
		most := int(s.MaxSkew)
		if s.TopologyKey != corev1.LabelHostname {
			most--
		}
		key := pod.Ref.Namespace + "\x00" + string(model.CompactKey(model.AppendKey(nil, s)))
		rules = append(rules, spreadRule{key, most})
	}
	return rules
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
