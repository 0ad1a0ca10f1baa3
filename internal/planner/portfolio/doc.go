// Package portfolio searches for a plan: it constructs plans by several strategies,
// keeps the best, decides conflicts between topology spread and the domains in which
// nodes are bought for others, and improves small plans.
//
// # One search
//
//	first     the zero strategy; in problems of up to 3,000 pods without time
//	others    further strategies, each without time, if a plan may be better for
//	          another order: always up to 300 pods, up to 3,000 if there is time
//	restore   gives preferences back that a plan without them has given up in vain
//	improve   constructs the best plan again with time for the bin packer
//	lns       large neighbourhood search, up to 3,000 pods
//
// Plans are compared by the pods that they place, of the highest priority first, and then
// by cost. [Strategies] says which strategies are tried.
//
// # Domain conflicts
//
// If nodes can be sold in domains that a spread constraint does not count and whose pods
// cannot use them, a whole search may end in a plan that the scheduler refuses. Then
// conflicts are decided one after the other, in searches without time: two dry runs
// compare the plan that shuts the options of the domain with the plan that lets the
// constraint count it.
//
// See docs/planner.md, section "Portfolio".
package portfolio
