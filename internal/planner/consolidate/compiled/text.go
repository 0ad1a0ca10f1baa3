package compiled

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// NodeName is the name of a node.
func (p *Problem) NodeName(n int) string { return p.Planning.Nodes[n].Name }

// NodeNames lists nodes for messages: all of up to four, or three and how many more.
func (p *Problem) NodeNames(nodes []int32) string {
	text := ""
	for i, n := range nodes {
		switch {
		case i == 3 && len(nodes) > 4:
			return text + " and " + Plural(len(nodes)-3, "other")
		case i > 0:
			text += ", "
		}
		text += p.NodeName(int(n))
	}
	return text
}

// Owner names a class by its workload, or by its first pod.
func (p *Problem) Owner(class int32) string {
	c := &p.Planning.Classes[class]
	switch {
	case c.Owner != "":
		return c.Owner
	case len(c.Pods) > 0:
		return c.Pods[0].String()
	}
	return "no workload"
}

// Keep is a reason to keep node n, with a message in the manner of fmt.Sprintf.
func Keep(n int, reason model.Reason, format string, args ...any) *model.KeptNode {
	return &model.KeptNode{Node: n, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// KeepByBudget says that the budgets of a NodePool, by the number of its policy, allow no more
// nodes to be removed for a reason next to so many that are.
func KeepByBudget(f *model.DisruptionProblem, n, policy int, reason model.DisruptionReason, removed int) *model.KeptNode {
	of := &f.Policies[policy]
	why := Keep(n, model.ReasonPoolBudget,
		"The disruption budgets of NodePool %s allow %s for reason %s now, and the moves before %s take %d.",
		of.Pool, Plural(max(0, of.Allowed[reason]), "more node"), reason, f.Problem.Nodes[n].Name, removed)
	why.Until = of.BudgetEnds[reason]
	return why
}

// DoesNotPay is the reason to keep node n, the first of these nodes, when removing
// them would save too little for the evictions that it takes, which are so many. Whose
// goes before the number of pods, such as "its ". EvictionCost and units are the sums of
// Node.EvictionCost and Node.EvictionUnits.
func (p *Problem) DoesNotPay(n int, names, whose string, evicted int, saving model.Money, evictionCost, units float64) *model.KeptNode {
	terms := &p.Input.Terms
	payback, pods := model.FormatDuration(terms.Payback), whose+Plural(evicted, "pod")
	total := dollars(model.Money(float64(terms.EvictionPrice) * units))
	// What the machine was bought for decides most: it comes first, since events cut what is long.
	if expected := evictionCost - p.EvictionPrice*units; expected >= 1 {
		return Keep(n, model.ReasonDoesNotPay,
			"Pods were moved here to save %s; giving back %s saves %s, which within %s earns less than that and the %s of evicting %s.",
			model.Money(expected), names, saving, payback, total, pods)
	}
	price := dollars(terms.EvictionPrice) + " each"
	if units != float64(evicted) {
		price = fmt.Sprintf("%s times a disruption cost of %.6g", dollars(terms.EvictionPrice), units)
	}
	return Keep(n, model.ReasonDoesNotPay, "Giving back %s saves %s, which within %s earns less than evicting %s costs (%s, %s in all).",
		names, saving, payback, pods, price, total)
}

// Plural is "1 pod", "2 pods".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Fit is what so many pods do: one fits, two fit.
func Fit(pods int) string {
	if pods == 1 {
		return "fits"
	}
	return "fit"
}

// FormatTime prints a moment as messages name it.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// dollars prints an amount that is not per hour, without needless digits.
func dollars(m model.Money) string { return "$" + strconv.FormatFloat(m.Dollars(), 'g', 6, 64) }
