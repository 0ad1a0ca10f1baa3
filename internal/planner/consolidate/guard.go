package consolidate

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// receives reports whether a node's own quiet time lets it take in pods of nodes
// that are given back: it began anew when pods last came or went.
func (s *site) receives(t *model.NodeUsage) bool {
	if t.Policy < 0 {
		return true
	}
	policy := &s.fleet.Policies[t.Policy]
	return policy.Never || policy.Static || !quietSince(t).Add(policy.After).After(s.fleet.Now)
}

func quietSince(t *model.NodeUsage) time.Time {
	if t.LastPodEvent.After(t.InitializedAt) {
		return t.LastPodEvent
	}
	return t.InitializedAt
}

func stay(n int, reason model.Reason, format string, args ...any) *model.KeptNode {
	return &model.KeptNode{Node: n, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// guard says why a node is no candidate for consolidation, or nil.
func (s *site) guard(n int) *model.KeptNode {
	t := &s.fleet.Usages[n]
	if t.Policy < 0 {
		return stay(n, model.ReasonNoPool, "%s belongs to no NodePool and is not nap's to give back.", s.name(n))
	}
	policy := &s.fleet.Policies[t.Policy]
	if st := s.guardNode(n); st != nil {
		return st
	}
	if policy.Static {
		return stay(n, model.ReasonStaticPool, "%s belongs to NodePool %s, which keeps a fixed number of nodes.", s.name(n), policy.Pool)
	}
	if policy.Never {
		return stay(n, model.ReasonNeverConsolidate, "NodePool %s has consolidateAfter Never.", policy.Pool)
	}
	if from := s.fleet.ConsolidateFrom; from.After(s.fleet.Now) {
		st := stay(n, model.ReasonWindow, "Consolidation waits for the maintenance window, until %s.", clock(from))
		st.Until = from
		return st
	}
	if st := s.guardPods(n); st != nil {
		return st
	}
	if until := quietSince(t).Add(policy.After); until.After(s.fleet.Now) {
		st := stay(n, model.ReasonNotQuiet, "Pods last came to or left %s at %s; NodePool %s wants %s of quiet, until %s.",
			s.name(n), clock(quietSince(t)), policy.Pool, model.FormatDuration(policy.After), clock(until))
		st.Until = until
		return st
	}
	if policy.Consolidation == model.WhenEmpty && !s.isEmpty(n) {
		return stay(n, model.ReasonPolicy, "NodePool %s gives back empty nodes only, and %s runs %s.", policy.Pool, s.name(n), s.movablePods(n))
	}
	return nil
}

// guardNode is what speaks against disrupting a node for any reason.
func (s *site) guardNode(n int) *model.KeptNode {
	t, node := &s.fleet.Usages[n], &s.problem.Nodes[n]
	switch {
	case t.Disrupting || node.State == model.NodeLeaving:
		return stay(n, model.ReasonBeingDisrupted, "%s is already being given up.", s.name(n))
	case !t.Initialized || node.State != model.NodeReady:
		return stay(n, model.ReasonNotInitialized, "%s is not initialized yet.", s.name(n))
	case !t.Ready:
		return stay(n, model.ReasonNotInitialized, "%s is not ready: its kubelet does not report.", s.name(n))
	case t.RetryAfter.After(s.fleet.Now):
		st := stay(n, model.ReasonMoveFailed, "The last move of %s failed; it is tried again at %s.", s.name(n), clock(t.RetryAfter))
		st.Until = t.RetryAfter
		return st
	case t.Reserved:
		return stay(n, model.ReasonNominated, "%s is promised to the pods of a move under way.", s.name(n))
	case t.Nominated:
		return stay(n, model.ReasonNominated, "%s is promised to pods that are not bound yet.", s.name(n))
	case t.DoNotDisrupt:
		return stay(n, model.ReasonNodeHeld, "%s carries the annotation karpenter.sh/do-not-disrupt.", s.name(n))
	}
	return nil
}

// guardPods is what the node's pods have against being evicted.
func (s *site) guardPods(n int) *model.KeptNode {
	t := &s.fleet.Usages[n]
	for _, h := range t.DoNotDisruptPods {
		if !h.Until.IsZero() && !h.Until.After(s.fleet.Now) {
			continue
		}
		st := stay(n, model.ReasonPodHeld, "Pod %s on %s must not be disrupted (karpenter.sh/do-not-disrupt).", h.Pod, s.name(n))
		if !h.Until.IsZero() {
			st.Message = fmt.Sprintf("Pod %s on %s must not be disrupted before %s (karpenter.sh/do-not-disrupt).", h.Pod, s.name(n), clock(h.Until))
		}
		st.Pod, st.Until = h.Pod, h.Until
		return st
	}
	for _, cp := range t.Pods {
		if len(cp.Pods) == 0 {
			continue
		}
		m := &s.fleet.Movable[cp.Class]
		pod := m.Pods[cp.Pods[0]]
		if len(m.Budgets) > 1 {
			a, b := &s.fleet.Budgets[m.Budgets[0]], &s.fleet.Budgets[m.Budgets[1]]
			st := stay(n, model.ReasonPodBudgets, "%d PodDisruptionBudgets (%s, %s) speak of pod %s on %s, which the eviction API refuses.", len(m.Budgets), a, b, pod, s.name(n))
			st.Pod, st.Budget = pod, a.String()
			return st
		}
		for _, k := range m.Budgets {
			if b := &s.fleet.Budgets[k]; b.Blocking || b.Allowed <= 0 {
				st := stay(n, model.ReasonPodBudget, "PodDisruptionBudget %s allows no eviction of pod %s on %s now.", b, pod, s.name(n))
				if b.Blocking {
					st.Message = fmt.Sprintf("PodDisruptionBudget %s never allows an eviction of pod %s on %s.", b, pod, s.name(n))
				}
				st.Pod, st.Budget = pod, b.String()
				return st
			}
		}
	}
	for _, cp := range t.Pods {
		if len(cp.Pods) > 0 && s.kinds[s.first+cp.Class].invalid {
			pod := s.fleet.Movable[cp.Class].Pods[cp.Pods[0]]
			st := stay(n, model.ReasonPodInvalid, "Pod %s on %s asks for something that no scheduler can grant, so it would find no other place.", pod, s.name(n))
			st.Pod = pod
			return st
		}
	}
	return nil
}

// isEmpty is lodging.empty before the lodging is complete.
func (s *site) isEmpty(n int) bool {
	for _, cp := range s.fleet.Usages[n].Pods {
		if len(cp.Pods) > 0 && s.kinds[s.first+cp.Class].cost > 0 {
			return false
		}
	}
	return true
}

func (s *site) name(n int) string { return s.problem.Nodes[n].Name }

// movablePods counts a node's movable pods in words.
func (s *site) movablePods(n int) string {
	k := 0
	for _, cp := range s.fleet.Usages[n].Pods {
		k += len(cp.Pods)
	}
	return plural(k, "pod")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// clock prints a moment as messages name it.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// trimmed prints a number without needless digits.
func trimmed(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
