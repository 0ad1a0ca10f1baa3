// Package topology counts pods per topology domain and says how many pods of a class
// may enter a place: topology spread constraints, pod affinity, and pod anti-affinity
// with its inverse. See docs/planner.md, section "Topology".
//
// # Model
//
// A domain is a value of a topology key. A [Place], which is an existing node or a new
// one that is planned as an option, has one domain for each label key that it has, or
// none; for kubernetes.io/hostname ([Host]) every place is a domain.
//
// A counter counts the pods that one term selects. Every distinct combination of
// topology key, selector, namespaces and node filter in the problem is one counter, so
// that classes with equal terms share it. An anti-affinity term has a second, inverse
// counter of the pods that have the term: pods that the term selects may enter no domain
// where it is positive. The node filter is what nodeAffinityPolicy and nodeTaintsPolicy
// of a spread constraint leave, and only places with all keys of the pod's enforced
// constraints.
//
// Counters that anti-affinity over hosts alone reads have no numbers. Pods on a place are
// counted by kind instead ([resident]): where a thousand classes refuse all others, as
// those of tenants and of exclusive jobs do, each pod would count for a thousand terms.
//
// [Rules] are the terms of a class at one level of its preferences, bound to counters:
//
//	spread         count in the domain + 1 - global minimum <= maxSkew
//	affinity       count in the domain > 0, or the pod is the first of its group
//	anti-affinity  count in the domain = 0
//	inverse        inverse count in the domain = 0
//
// The semantics are those of the Kubernetes scheduler, with extensions for nodes that do
// not exist yet. The eligible domains of a spread constraint are those of existing nodes
// that count and those in which a node can be bought for the class; [Eligible] adds
// those that the plan opens for other pods. Over hosts the nodes that exist are eligible;
// for those that have yet to start see the page.
//
// # Types
//
//	[Topology]  what [Compile] makes of a problem: counters and rules; immutable
//	[Order]     which domains have to be decided when, given the order of placing
//	[Eligible]  the eligible domains of spread constraints in one plan
//	[Counts]    the numbers in one plan; the only state
//
// # Undecided domains
//
// A new node may be planned as any of several options with different domains of a key,
// as long as no rule needs to know which: see [Order.FixedKeys]. Its pods count in each
// possible domain for anti-affinity, which errs to the safe side, and for affinity in
// none: pods that have to be near them enter the node itself. [Counts.AddUndecided]
// counts so.
package topology
