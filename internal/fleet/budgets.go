package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// podBudgets are the PodDisruptionBudgets of a snapshot.
type podBudgets struct {
	// byNamespace has the budgets of each namespace, sorted by name.
	byNamespace map[string][]*Budget
	// listed are the budgets that of has returned, in the order of their first
	// use; index finds them there.
	listed []model.PodBudget
	index  map[*Budget]int
	// known are the answers of the method of so far.
	known map[budgetKey][]int
	// owed are the evictions that nodes which go still draw on each budget.
	owed map[*Budget]int
	// now decides which budgets count as blocking.
	now time.Time
}

// budgetKey is what budgets see of a pod.
type budgetKey struct {
	namespace string
	labels    *Labels
	unready   bool
}

func newPodBudgets(records map[objectKey]*Budget, now time.Time) *podBudgets {
	b := &podBudgets{byNamespace: map[string][]*Budget{}, index: map[*Budget]int{}, known: map[budgetKey][]int{}, now: now}
	for _, record := range records {
		b.byNamespace[record.Namespace] = append(b.byNamespace[record.Namespace], record)
	}
	for _, list := range b.byNamespace {
		slices.SortFunc(list, func(x, y *Budget) int { return cmp.Compare(x.Name, y.Name) })
	}
	return b
}

// block reports whether a pod can never be evicted: its budget allows no
// disruption ever, or more than one budget selects it, which Kubernetes refuses.
func (b *podBudgets) block(p *Pod) bool {
	if len(b.byNamespace[p.Ref.Namespace]) == 0 || !awaitsDrain(p) {
		return false
	}
	asked := b.asked(p)
	return len(asked) > 1 || len(asked) == 1 && asked[0].blocks(b.now)
}

// HeldByBudgets returns whether the PodDisruptionBudgets of a snapshot let no pod like a given one be evicted at this
// moment; of nil, a pod that is unknown, it says no.
func HeldByBudgets(s *Snapshot, now time.Time) func(*Pod) bool {
	b := newPodBudgets(s.budgets, now)
	return func(p *Pod) bool {
		if p == nil || !awaitsDrain(p) {
			return false
		}
		asked := b.asked(p)
		return len(asked) > 1 || len(asked) == 1 && asked[0].Allowed <= 0
	}
}

// blocks reports whether the budget never allows an eviction.
func (b *Budget) blocks(now time.Time) bool {
	return b.Blocking || !b.BlockingFrom.IsZero() && !now.Before(b.BlockingFrom)
}

// asked are the budgets which the eviction API asks about a pod. It refuses a pod of several
// before it asks any of them, so that one which frees pods that are not ready does so only alone.
func (b *podBudgets) asked(p *Pod) []*Budget {
	var out []*Budget
	for _, record := range b.byNamespace[p.Ref.Namespace] {
		if record.Selector.Matches(p.Labels.Values) {
			out = append(out, record)
		}
	}
	if len(out) == 1 && out[0].FreesUnready && p.Unready {
		return nil
	}
	return out
}

// of returns the budgets that an eviction of the pod counts against, as indices
// into listed, ordered by name. Pods that a drain does not evict have none. Callers must not
// change the result.
func (b *podBudgets) of(p *Pod) []int {
	if p.Buffer != "" {
		return nil // there is no pod to evict
	}
	if len(b.byNamespace[p.Ref.Namespace]) == 0 || !awaitsDrain(p) {
		return nil
	}
	key := budgetKey{p.Ref.Namespace, p.Labels, p.Unready}
	out, known := b.known[key]
	if known {
		return out
	}
	for _, record := range b.asked(p) {
		i, listed := b.index[record]
		if !listed {
			i = len(b.listed)
			b.index[record] = i
			b.listed = append(b.listed, model.PodBudget{
				Namespace: record.Namespace, Name: record.Name, Allowed: int(record.Allowed), Owed: b.owed[record],
				Blocking: record.blocks(b.now),
			})
		}
		out = append(out, i)
	}
	b.known[key] = out
	return out
}

// owe counts what nodes that are drained, by name, still draw on budgets: their pods which have not
// been asked to go. Those that are on their way out are in what a budget allows already, and those
// which nothing ever evicts, or not at this moment, owe nothing.
func (b *podBudgets) owe(pods map[model.PodRef]*Pod, drained map[string]bool) {
	if len(drained) == 0 || len(b.byNamespace) == 0 {
		return
	}
	b.owed = map[*Budget]int{}
	for _, p := range pods {
		if !drained[p.Node] || !p.Bound() || !awaitsDrain(p) || p.KeepUntil.After(b.now) {
			continue
		}
		if asked := b.asked(p); len(asked) == 1 && !asked[0].blocks(b.now) {
			b.owed[asked[0]]++
		}
	}
}
