package provisioning

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// reportUninitialized tells pods that have a place on a machine which does not come, or on a
// node which does not become initialized, what is missing there. Nothing else is bought for
// them meanwhile, so that a slow start costs no second machine. kept are the pods by the
// name of the node's claim.
func (r *reporter) reportUninitialized(in *planInputs, kept map[string][]model.PodRef, now time.Time) {
	for name, refs := range kept {
		claim := in.snapshot.Claim(name)
		if claim == nil {
			continue
		}
		if troubled(claim) {
			r.tellTrouble(in.present(refs), claim)
			continue
		}
		node := in.snapshot.Node(claim.NodeName)
		if node == nil || node.Initialized || now.Sub(node.Created) < fleet.InitializeWithin {
			continue
		}
		missing := fleet.Awaited(claim, node)
		for _, pod := range in.present(refs) {
			if r.explained.TryAccept() {
				r.recorder.Publish(event.WaitingForNode(pod, node.Name, missing))
			}
		}
	}
}

// promised are the pods that count on a node which is not initialized since they are nominated
// for it, by the name of the node's claim. They are in no problem.
func (in *planInputs) promised() map[string][]model.PodRef {
	claims := map[string]string{}
	for claim := range in.snapshot.Claims() {
		if node := in.snapshot.Node(claim.NodeName); node != nil && !node.Initialized && !node.Deleting && !claim.Leaving {
			claims[node.Name] = claim.Name
		}
	}
	out := map[string][]model.PodRef{}
	if len(claims) == 0 {
		return out
	}
	for pod := range in.snapshot.Pods() {
		if claim := claims[pod.Nominated]; claim != "" && pod.Wanted && pod.Node == "" {
			out[claim] = append(out[claim], pod.Ref)
		}
	}
	return out
}

// troubled reports whether the cloud has said why a claim, which may be nil, has no machine yet.
func troubled(claim *fleet.Claim) bool {
	return claim != nil && claim.Trouble != "" && claim.ProviderID == ""
}

// tellTrouble tells pods why the machine that is on its way for them is not there.
func (r *reporter) tellTrouble(pods []*corev1.Pod, claim *fleet.Claim) {
	for _, pod := range pods {
		if r.explained.TryAccept() {
			r.recorder.Publish(event.WaitingForMachine(pod, claim.Name, claim.Trouble, claim.GivenUp))
		}
	}
}
