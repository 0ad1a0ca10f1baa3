package planner

// variant is a way to grow a plan. None is best for every problem, so small
// problems are planned in all of them and the best plan stays.
type variant struct {
	// alone opens machines one by one, in order, instead of leaving their choice
	// to the packer. It keeps every count exact when something runs out.
	alone bool
	// thrifty chooses machines for what they take of what runs out instead of
	// for their price.
	thrifty bool
	// large places large pods first, whatever their rules.
	large bool
	// dear places pods first for which a machine costs most, in place of the large ones.
	dear bool
	// few compares domains by the machine that a class would need there by
	// itself, instead of by its share of a full one.
	few bool
	// picky places pods that few of the nodes suit before those that many suit.
	picky bool
	// joint lets every pod join an open machine, which grows as long as one is sold
	// that is large enough, as Karpenter does: large pods first, whatever their
	// rules and whoever waits for them.
	joint bool
	// equal places pods in an order that does not look at their priority.
	equal bool
	// plain gives up the preferences of all classes that builder.honours does not
	// name.
	plain bool
	// single lets pods join machines one by one even where nothing binds them, and
	// opens machines as for one pod.
	single bool
}

// smallProblem is up to how many pods a problem is planned in several ways even
// when all have a place, largeProblem when some wait although there may be one, if
// there is time. Up to largeProblem, time begins with a quick plan to know that.
const (
	smallProblem = 300
	largeProblem = 3000
)

// otherWays lists what else is worth trying after the first plan: when
// something ran out, machines one by one; in problems of no more than so many pods in
// which nodes or topology leave a choice, every way.
func (b *builder) otherWays(first packResult, most int) []variant {
	var out []variant
	if first.unplaced > 0 {
		out = append(out, variant{alone: true}, variant{alone: true, thrifty: true})
	}
	pods, choice, preferring, unequal := 0, len(b.nodes) > 0, false, false
	for i := range b.classes {
		c := &b.classes[i]
		if c.Invalid != "" {
			continue
		}
		pods += len(c.Spec.Pods)
		choice = choice || c.Colocated || len(b.keysOf(i, 0)) > 0
		preferring = preferring || len(c.Levels) > 1
		unequal = unequal || c.Spec.Priority != b.classes[0].Spec.Priority
	}
	preferring = preferring && first.unplaced > 0
	if !choice && !preferring && !unequal || pods > most {
		return out
	}
	if first.unplaced == 0 {
		out = append(out, variant{alone: true})
	}
	out = append(out, variant{few: true}, variant{large: true}, variant{large: true, few: true},
		variant{alone: true, large: true, few: true}, variant{alone: true, large: true, joint: true})
	if len(b.nodes) > 0 {
		out = append(out, variant{large: true, dear: true}, variant{picky: true}, variant{alone: true, picky: true, joint: true})
	}
	if unequal {
		out = append(out, variant{equal: true}, variant{alone: true, equal: true, joint: true})
	}
	if preferring {
		out = append(out, variant{plain: true}, variant{alone: true, large: true, joint: true, equal: true, plain: true})
	}
	return out
}
