package compiled

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// staying are the pods of a node which stay there until its grace period ends, since nothing may
// evict them before. A place that is bought for them would be empty for so long: they are planned
// when they may be evicted, or are gone.
type staying struct {
	p *Problem
	// held have the annotation karpenter.sh/do-not-disrupt. It is nil for a node on which no pod
	// stays.
	held map[model.PodRef]bool
}

// stayingOn are the pods that stay on a node. None does so on a node without a grace period, which
// such pods keep, nor on one that is repaired: what its drain leaves needs a place within minutes.
func (p *Problem) stayingOn(usage *model.NodeUsage) staying {
	s := staying{p: p}
	if !usage.GracePeriod || usage.Unhealthy != "" {
		return s
	}
	at := p.Input.Now
	if usage.ExpiresAt.After(at) && !usage.PrepareAt().After(at) {
		at = usage.ExpiresAt
	}
	s.held = map[model.PodRef]bool{}
	for i := range usage.DoNotDisruptPods {
		if pod := &usage.DoNotDisruptPods[i]; pod.Why == "" && pod.At(at) {
			s.held[pod.Pod] = true
		}
	}
	return s
}

// without are those of the pods that do not stay. Pods that no scheduler can place are among them:
// these keep their node.
func (s staying) without(of model.ClassPods) model.ClassPods {
	switch {
	case s.held == nil || s.p.Classes[s.p.FirstMovable+of.Class].Invalid:
		return of
	case s.p.NeverEvicted(of.Class):
		return model.ClassPods{Class: of.Class}
	case len(s.held) == 0:
		return of
	}
	pods := s.p.Input.Movable[of.Class].Pods
	of.Pods = slices.DeleteFunc(slices.Clone(of.Pods), func(i int) bool { return s.held[pods[i]] })
	return of
}

// NeverEvicted reports whether PodDisruptionBudgets never let a pod of a movable class, an index
// into Input.Movable, be evicted.
func (p *Problem) NeverEvicted(class int) bool {
	budgets := p.Input.Movable[class].Budgets
	return len(budgets) > 1 || len(budgets) == 1 && p.Input.Budgets[budgets[0]].Blocking
}
