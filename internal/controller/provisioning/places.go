package provisioning

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/model"
)

// takesPlace is after how long the scheduler has bound a pod that fits on a node which is
// ready. One that still waits then does not get the place: another pod has it.
const takesPlace = settleAtLeast

// places are the pods that have waited for the scheduler to put them on nodes which are
// ready, since a plan found room for them there. The scheduler gives such room to whichever
// pod it looks at first. The methods are not safe for concurrent use.
type places struct {
	clock clock.Clock
	pods  map[types.NamespacedName]place
}

// place is the room of one pod.
type place struct {
	pod  types.UID
	node string
	// since is when a plan first found this room for the pod.
	since time.Time
	// told places have been returned by missed.
	told bool
}

// replace states all places of the newest plan: the names of the nodes. A place that was
// there before stays as old as it is.
func (p *places) replace(nodes map[types.NamespacedName]string, uid func(types.NamespacedName) types.UID) {
	now := make(map[types.NamespacedName]place, len(nodes))
	for key, node := range nodes {
		if old, known := p.pods[key]; known && old.node == node && old.pod == uid(key) {
			now[key] = old
			continue
		}
		now[key] = place{pod: uid(key), node: node, since: p.clock.Now()}
	}
	p.pods = now
}

// missed reports, once for each place, whether any pod waits although its place has been
// there for takesPlace. It forgets the places of pods that do not wait.
func (p *places) missed(waits func(types.NamespacedName, types.UID) bool) bool {
	missed := false
	for key, at := range p.pods {
		switch {
		case !waits(key, at.pod):
			delete(p.pods, key)
		case !at.told && p.clock.Since(at.since) >= takesPlace:
			at.told, missed = true, true
			p.pods[key] = at
		}
	}
	return missed
}

// onReadyNodes are the nodes that are ready on which a plan puts pods that exist.
func onReadyNodes(in *planInputs, plan *model.Plan) map[types.NamespacedName]string {
	nodes := map[types.NamespacedName]string{}
	for _, placement := range plan.Placements {
		n := &in.input.Problem.Nodes[placement.Node]
		if n.Claim != "" && n.State != model.NodeReady {
			continue
		}
		for _, ref := range in.input.Pods(placement.Pods) {
			if record := in.input.Record(ref); record != nil && record.Announced == 0 && record.Buffer == "" {
				nodes[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}] = n.Name
			}
		}
	}
	return nodes
}
