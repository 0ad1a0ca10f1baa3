package provisioning

import (
	"cmp"
	"iter"
	"slices"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// sameKind is equal for pods of one owner and one spec which have taken a place on the
// same machine: each may do with the place of another.
type sameKind struct {
	owner, spec string
	// taken is the claim of the machine where the pod was bound, empty for one that is not.
	taken string
}

// left are the claims with a place for pods that the scheduler has bound to the machine of
// another claim, for which reservations hold, too: the place of another pod. Each place is
// listed once, in the order of the pods' UIDs. Pods with volumes are in none, since their
// volumes may bind them to a zone.
func (r *reservations) left(in *fleet.Input, all iter.Seq[*fleet.Pod]) map[sameKind][]string {
	claims := map[string]string{} // by node
	for i := range in.Problem.Nodes {
		if n := &in.Problem.Nodes[i]; n.Claim != "" {
			claims[n.Name] = n.Claim
		}
	}
	var bound []*fleet.Pod
	for pod := range all {
		on := claims[pod.Node]
		if claim, held := r.claims[pod.UID]; held && on != "" && on != claim && len(pod.Claims) == 0 {
			bound = append(bound, pod)
		}
	}
	slices.SortFunc(bound, func(a, b *fleet.Pod) int { return cmp.Compare(a.UID, b.UID) })
	out := map[sameKind][]string{}
	for _, pod := range bound {
		kind := sameKind{pod.OwnerUID, pod.Spec.Key, claims[pod.Node]}
		out[kind] = append(out[kind], r.claims[pod.UID])
	}
	return out
}

// arrive takes a place that was reserved before the pod existed: one where it fits, if
// there is any, or the place that a pod has left which was bound there. A pod that differs from
// the one after which the place was planned may be able to run elsewhere only, and takes none.
func (k *keeping) arrive(pod *fleet.Pod, fits func(claim string) bool) (claim string, ok bool) {
	if pod.Announced > 0 {
		return "", false
	}
	kind := sameKind{owner: pod.OwnerUID, spec: pod.Spec.Key}
	if len(k.free[kind]) == 0 {
		kind.owner = k.in.Set(pod.OwnerUID)
	}
	if claim, ok = takeFrom(k.free, kind, fits); ok {
		claim, _ = k.exchange(pod, claim, fits)
	}
	return claim, ok
}

// exchange gives a pod with a place on the machine of a claim the place that another pod of
// its kind has left, if one has taken room there: the scheduler may bind pods of one kind in
// any order. Where that one's machine is lost, so is the place, and the pod needs another
// like all that have lost theirs with the machine. Where its room is gone to a pod that came
// after its place was reserved, and was bound at once, it gets that place.
func (k *keeping) exchange(pod *fleet.Pod, claim string, fits func(claim string) bool) (own string, moved bool) {
	if pod.OwnerUID == "" || len(pod.Claims) > 0 || pod.Announced > 0 {
		return claim, false
	}
	if other, ok := takeFrom(k.left, sameKind{pod.OwnerUID, pod.Spec.Key, claim}, fits); ok {
		return other, true
	}
	kind := sameKind{owner: pod.OwnerUID, spec: pod.Spec.Key}
	if slices.ContainsFunc(k.free[kind], fits) && !fits(claim) {
		return takeFrom(k.free, kind, fits)
	}
	return claim, false
}

// takeFrom takes the first claim of a list that fits, or else the first one.
func takeFrom[K comparable](lists map[K][]string, key K, fits func(claim string) bool) (claim string, ok bool) {
	list := lists[key]
	if len(list) == 0 {
		return "", false
	}
	at := max(0, slices.IndexFunc(list, fits))
	claim = list[at]
	lists[key] = slices.Delete(list, at, at+1)
	return claim, true
}
