// Package nodechoice chooses new nodes with the bin packer, and proves how much any
// plan costs at least.
//
// [Construct] lets a constructor place what existing nodes and rules on hosts decide.
// The rest are demands: pods of a class of which the topology domain is decided. An adapter
// turns them into a problem of package binpack. Options worth buying become bin types,
// and rules on hosts become caps per bin, conflicts and further dimensions. Where these
// are stricter than the rules, the packing is still valid but its bound says nothing of
// the plan, and [Bound] proves another one.
//
// # The bound of a whole plan
//
// [Bound] relaxes the problem: every rule that it leaves out or weakens can only lower
// the cost. The bin packer's own bound (a linear program over patterns) is then a bound
// for every plan that places the same pods. It leaves out
//
//   - topology spread and affinity over label keys, affinity on hosts, and all rules on
//     hosts but two: those that limit the pods of one class on one node, and groups of
//     classes that limit each other, as long as nodes are not merged
//   - preferences, and which pods share disks
//   - limits and quotas, but for reservations
//   - minValues, and host ports of different classes
//   - that an existing node's room is used once if there are more than 48 nodes with
//     room: groups of nodes are merged into as many nodes as large as their largest
//
// See docs/planner.md, sections "New nodes by bin packing" and "The lower bound of a plan".
package nodechoice
