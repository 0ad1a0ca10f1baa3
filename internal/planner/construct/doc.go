// Package construct builds plans: it places classes of pods, one after the other, on
// existing nodes, on nodes to be bought and on new ones.
//
// A [Constructor] works on a [placement.State] by a [Strategy], which never changes
// while it works. What happens to a class:
//
//	Place        levels of preferences one after the other, until no pod is left
//	slotFinder   groups of places and of options that the class's topology cannot tell
//	             apart (slots): existing nodes first, then new nodes, then options
//	             by pool weight and cost
//	fill         takes from the slots, first fit, as long as topology admits pods
//	opener       chooses the option of a new node; or, with [Constructor.Collect],
//	             a [Demand] records the pods for the bin packer
//
// The order of classes ([Constructor.Sequence]) decides much: constrained and large
// classes come first.
//
// Pods with affinity on hosts (colocated classes) cannot go to a node of their own. The
// node on which the first pod of such a group, its seed, is placed keeps room for the
// pods that wait for it, or grows: a node to be bought is exchanged for a larger
// option. [Constructor.Admit] tries several places for a seed.
//
// See docs/planner.md, section "Construction".
package construct
