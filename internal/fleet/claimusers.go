package fleet

import (
	"cmp"

	"github.com/nodeautoprovision/nap/internal/model"
)

// claimUsers says for which of the pods that share a ResourceClaim it is planned first. It keeps
// one pod for each claim, since thousands may share one.
type claimUsers struct {
	cluster  *clusterNodes
	catalogs *poolCatalogs
	// holders are the oldest pods of each claim that have a node or are expected on one, firsts
	// those that wait and are planned. Both are complete once pendingPods.sort has run.
	holders, firsts map[objectKey]*Pod
	// large says of specs, as far as asked, whether no machine is large enough for them.
	large map[*PodSpec]bool
}

func newClaimUsers(nodes *clusterNodes, catalogs *poolCatalogs) *claimUsers {
	return &claimUsers{
		cluster: nodes, catalogs: catalogs, holders: map[objectKey]*Pod{}, firsts: map[objectKey]*Pod{}, large: map[*PodSpec]bool{},
	}
}

// add counts a pod as a user of a claim. An expected pod has no node yet, but room on one.
//
// A pod that never runs must keep no other off the claim: one that waits for a gate, goes, or
// cannot be planned is no user, and one that is too large for any machine comes last.
func (u *claimUsers) add(claim objectKey, p *Pod, expected bool) {
	switch {
	case p.Terminal || p.Terminating:
	case p.Node != "" || expected:
		if precedes(p, u.holders[claim]) {
			u.holders[claim] = p
		}
	case p.Wanted && p.Spec.planned() && u.before(p, u.firsts[claim]):
		u.firsts[claim] = p
	}
}

// first is the pod for which a claim is planned, nil without any.
func (u *claimUsers) first(claim objectKey) *Pod { return cmp.Or(u.holders[claim], u.firsts[claim]) }

// before reports whether a claim is planned for a pod and not for another one, which may be nil.
func (u *claimUsers) before(p, other *Pod) bool {
	if other == nil {
		return true
	}
	if p.Spec != other.Spec && u.tooLarge(p.Spec) != u.tooLarge(other.Spec) {
		return u.tooLarge(other.Spec)
	}
	return older(p, other) < 0
}

// tooLarge reports whether no node and no machine that can be bought is large enough for a pod,
// by cpu, memory, storage and the number of pods.
func (u *claimUsers) tooLarge(s *PodSpec) bool {
	large, known := u.large[s]
	if !known {
		large = !u.fits(s)
		u.large[s] = large
	}
	return large
}

func (u *claimUsers) fits(s *PodSpec) bool {
	axes := model.NewAxes()
	requests := s.Requests.Vector(axes)
	for _, n := range u.cluster.list {
		if requests.Fits(n.allocatable.Vector(axes)) {
			return true
		}
	}
	looked := map[*Catalog]bool{}
	for _, catalog := range u.catalogs.byPool {
		if looked[catalog] {
			continue
		}
		looked[catalog] = true
		for i := range catalog.InstanceTypes {
			if requests.Fits(catalog.InstanceTypes[i].Allocatable()) {
				return true
			}
		}
	}
	return false
}

// planned reports whether pods of the spec can be planned, see pendingPods.add.
func (s *PodSpec) planned() bool { return s.TooMuch == "" && !s.AvoidsPools && s.Invalid == "" }
