package fleet

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// deployment is the kind of owner whose pods several ReplicaSets have while it is rolled out.
const deployment = "Deployment"

// surplus is what the ReplicaSets of Deployments have too much on nodes: pods that are about to be
// deleted. Their controller creates and deletes some twenty pods in a second, so that what a newer
// ReplicaSet has still to create comes while these go.
type surplus map[deploymentKey]int

// deploymentKey names a Deployment, and what the scheduler looks at of pods of it, all but their
// labels: pods alike can use each other's room, on nodes which stay.
type deploymentKey struct{ namespace, name, spec string }

// deploymentOf is the Deployment of a pod, if it has one.
func deploymentOf(p *Pod) (deploymentKey, bool) {
	return deploymentKey{p.Ref.Namespace, p.Owner.Name, p.Spec.Key}, p.Owner.Kind == deployment
}

// add takes in so many pods like one.
func (s surplus) add(count int, like *Pod) {
	if key, is := deploymentOf(like); is && count > 0 {
		s[key] += count
	}
}

// cover takes off what is missing what finds room where pods of the same Deployment are about to
// go: those go sooner than a machine boots.
func (s surplus) cover(due []*announcement) {
	if len(s) == 0 {
		return
	}
	slices.SortFunc(due, func(x, y *announcement) int { return cmp.Compare(x.uid, y.uid) })
	for _, a := range due {
		key, is := deploymentOf(a.newest)
		if is && a.missing > 0 {
			covered := min(a.missing, s[key])
			a.missing -= covered
			s[key] -= covered
		}
	}
}

// surplusOf is the surplus of workloads in a snapshot, by what is known of their pods, and of the
// pods whose ReplicaSets want none. It looks at all pods where some workload has too many.
func surplusOf(s *Snapshot, of map[string]*announcement, unwanted []*Pod) surplus {
	out := surplus{}
	for _, p := range unwanted {
		if leavesRoom(s.nodes, p) {
			out.add(1, p)
		}
	}
	staying := map[string]int{} // of workloads with too many pods, those that leave room
	for uid, a := range of {
		if _, is := deploymentOf(a.newest); is && a.living > a.wants() {
			staying[uid] = 0
		}
	}
	if len(staying) == 0 {
		return out
	}
	for _, p := range s.pods {
		if n, has := staying[p.OwnerUID]; has && leavesRoom(s.nodes, p) {
			staying[p.OwnerUID] = n + 1
		}
	}
	for uid, n := range staying { // those without a node, and with one that leaves, may be deleted first
		out.add(n-of[uid].wants(), of[uid].newest)
	}
	return out
}

// leavesRoom reports whether others like a pod may use its room when it goes: its node takes pods,
// and goes on to.
func leavesRoom(nodes map[string]*Node, p *Pod) bool {
	n := nodes[p.Node]
	return p.Bound() && !p.Terminating && n != nil && !n.Deleting && !n.Disrupted && !n.Evicted &&
		model.Untolerated(n.Taints, p.Spec.Tolerations) == nil
}
