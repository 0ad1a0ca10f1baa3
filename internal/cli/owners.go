package cli

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// podOwners are the workloads which pods belong to, as in "Deployment default/web", by the
// pod's name. Pods that another pod controls stand for themselves.
type podOwners map[string]string

// newPodOwners has room for the pods that a problem asks places for.
func newPodOwners(p *model.Problem) podOwners {
	pods := 0
	for i := range p.Classes {
		pods += len(p.Classes[i].Pods)
	}
	return make(podOwners, pods)
}

// note keeps the owners of pods, and returns the pods' names in order. Neighbours mostly have
// one owner: its text is made once for all of them.
func (o podOwners) note(in *fleet.Input, refs []model.PodRef) []string {
	names := make([]string, len(refs))
	var last *fleet.Pod
	for i, ref := range refs {
		names[i] = ref.String()
		p := in.Record(ref)
		if p != nil && last != nil && p.Owner == last.Owner && p.Owner.Kind != "" && p.Owner.Kind != "Pod" &&
			p.Ref.Namespace == last.Ref.Namespace {
			o[names[i]] = o[names[i-1]]
			continue
		}
		o[names[i]], last = shownName(in, ref), p
	}
	slices.Sort(names)
	return names
}

// shownName is [fleet.Pod.ShownName] of a pod.
func shownName(in *fleet.Input, ref model.PodRef) string {
	if p := in.Record(ref); p != nil {
		return fleet.ShownName(p)
	}
	return "Pod " + ref.String()
}
