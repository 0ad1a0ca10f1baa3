package provisioning

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// initializeWithin is how long a node may take from its creation until it is
// initialized before its pods are told what it waits for.
const initializeWithin = time.Minute

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
		if node == nil || node.Initialized || now.Sub(node.Created) < initializeWithin {
			continue
		}
		missing := awaited(claim, node)
		for _, pod := range in.present(refs) {
			if r.explained.TryAccept() {
				r.recorder.Publish(event.WaitingForNode(pod, node.Name, missing))
			}
		}
	}
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

// awaited are the things that a node needs before it is initialized, as Karpenter
// sees it: a kubelet that is ready, no startup taints, all its resources.
func awaited(claim *fleet.Claim, node *fleet.Node) []string {
	var out []string
	if !node.Ready {
		out = append(out, "its kubelet is not Ready")
	}
	for _, t := range node.Taints {
		if slices.ContainsFunc(claim.StartupTaints, func(s model.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect }) {
			out = append(out, fmt.Sprintf("it still has the startup taint %s, which something else has to remove", t))
		}
	}
	for _, name := range claim.Allocatable.Names() {
		if claim.Allocatable.Get(name) > 0 && node.Allocatable.Get(name) == 0 {
			out = append(out, fmt.Sprintf("it does not report the resource %s, which a device plugin has to register", name))
		}
	}
	if len(out) == 0 {
		out = append(out, "its NodeClaim's condition Initialized says why")
	}
	return out
}
