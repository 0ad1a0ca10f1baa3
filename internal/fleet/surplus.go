package fleet

import (
	"cmp"
	"slices"
)

// deployment is the kind of owner whose pods several ReplicaSets have while it is rolled out.
const deployment = "Deployment"

// surplus is what the ReplicaSets of Deployments have too much on nodes: pods that are about to be
// deleted. Their controller creates and deletes some twenty pods in a second, so that what a newer
// ReplicaSet has still to create comes while these go.
type surplus map[deploymentKey]*surplusPods

// deploymentKey names a Deployment.
type deploymentKey struct{ namespace, name string }

// surplusPods are the pods that the ReplicaSets of one Deployment have too much on nodes.
type surplusPods struct {
	count int
	// least is what each of them asks for at least.
	least Amounts
}

// deploymentOf is the Deployment of a pod, if it has one.
func deploymentOf(p *Pod) (deploymentKey, bool) {
	return deploymentKey{p.Ref.Namespace, p.Owner.Name}, p.Owner.Kind == deployment
}

// add takes in pods like one.
func (s surplus) add(count int, like *Pod) {
	key, is := deploymentOf(like)
	if count <= 0 || !is {
		return
	}
	if have := s[key]; have != nil {
		have.count, have.least = have.count+count, have.least.least(like.Spec.Requests)
		return
	}
	s[key] = &surplusPods{count, like.Spec.Requests}
}

// cover takes off what is missing what finds room where pods of the same Deployment are about to
// go: those go sooner than a machine boots. It takes off nothing where one that is missing asks for
// more than one of those.
func (s surplus) cover(due []*announcement) {
	if len(s) == 0 {
		return
	}
	slices.SortFunc(due, func(x, y *announcement) int { return cmp.Compare(x.uid, y.uid) })
	for _, a := range due {
		key, is := deploymentOf(a.newest)
		have := s[key]
		if !is || have == nil || a.missing <= 0 || !have.least.covers(a.newest.Spec.Requests) {
			continue
		}
		covered := min(a.missing, have.count)
		a.missing -= covered
		have.count -= covered
	}
}

// surplusOf is the surplus of workloads, by what is known of their pods, and of pods on nodes whose
// ReplicaSets want none.
func surplusOf(of map[string]*announcement, unwanted []*Pod) surplus {
	s := surplus{}
	for _, a := range of {
		s.add(a.staying-a.wants(), a.newest) // those without a node are deleted first
	}
	for _, p := range unwanted {
		s.add(1, p)
	}
	return s
}

// staysOnNode reports whether a pod takes room on a node, and nothing has deleted it.
func staysOnNode(p *Pod) bool { return p.Bound() && !p.Terminating }

// least is the smaller one of each quantity of both.
func (a Amounts) least(b Amounts) Amounts {
	out := Amounts{
		CPU: min(a.CPU, b.CPU), Memory: min(a.Memory, b.Memory), Storage: min(a.Storage, b.Storage), Pods: min(a.Pods, b.Pods),
	}
	for _, x := range a.Extended {
		out.Set(x.Name, min(x.Value, b.Get(x.Name)))
	}
	return out
}

// covers reports whether no quantity of b is greater.
func (a Amounts) covers(b Amounts) bool {
	for _, name := range b.Names() {
		if b.Get(name) > a.Get(name) {
			return false
		}
	}
	return true
}
