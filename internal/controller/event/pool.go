package event

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

// The reasons of events on NodePools. What is unwise about one has the codes of package poollint.
const (
	ReasonLimitReached    = "LimitReached"
	ReasonLimitInvalid    = "LimitInvalid"
	ReasonLimitLeavesRoom = "LimitLeavesRoom"
	ReasonFrozen          = "Frozen"
	ReasonThawed          = "Thawed"
	ReasonSound           = "ConfigurationSound"
)

// LimitReached says on a NodePool which limit keeps machines from being bought.
func LimitReached(pool *karpv1.NodePool, text string) events.Event {
	return warning(pool, ReasonLimitReached, text)
}

// LimitInvalid says on a NodePool that nothing is bought since a limit cannot be read.
func LimitInvalid(pool *karpv1.NodePool, text string) events.Event {
	return warning(pool, ReasonLimitInvalid, text)
}

// LimitLeavesRoom says on a NodePool that no limit keeps machines from being bought any
// more that pods wait for.
func LimitLeavesRoom(pool *karpv1.NodePool, text string) events.Event {
	return normal(pool, ReasonLimitLeavesRoom, text)
}

// Frozen says on a NodePool that none of its nodes is removed voluntarily, and why.
func Frozen(pool *karpv1.NodePool, text string) events.Event {
	return normal(pool, ReasonFrozen, text)
}

// Thawed says on a NodePool that its nodes may be removed voluntarily again.
func Thawed(pool *karpv1.NodePool, text string) events.Event {
	return normal(pool, ReasonThawed, text)
}

// Unwise says on a NodePool what is unwise about it, and what to do.
func Unwise(pool *karpv1.NodePool, f *poollint.Finding) events.Event {
	return warning(pool, ReasonOf(f), f.Message+"; "+model.Clause(f.Fix), version(pool), f.Text())
}

// Sound says on a NodePool that nothing about it is unwise any more.
func Sound(pool *karpv1.NodePool, text string) events.Event {
	return normal(pool, ReasonSound, text, version(pool), text)
}

// ReasonOf is the reason of the event about a finding. That a NodePool can buy nothing has the one
// by which Karpenter's users know it.
func ReasonOf(f *poollint.Finding) string {
	if f.Code == poollint.NothingToBuy {
		return events.NoCompatibleInstanceTypes
	}
	return string(f.Code)
}

// version tells an event from the same about an object that has changed since.
func version(o client.Object) string { return o.GetResourceVersion() }
