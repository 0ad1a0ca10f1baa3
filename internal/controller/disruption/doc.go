// Package disruption gives machines back: it carries out what
// [github.com/nodeautoprovision/nap/internal/planner/consolidate] decides.
//
//	fleet ──> Plan ──> moves ──> marked ──> replacements ──> looked at again ──> drained ──> deleted
//	          decide.go           begin.go   begin.go         proceed.go          drain.go    drain.go
//	                                 └───────────── taken back ──────┘ undo.go
//
// [Loop] looks at the fleet whenever something has changed, decides about all of
// it at once, and carries any number of moves on at the same time; nothing in it
// waits for anything. Pods go in stages, the large ones first, through Karpenter's
// eviction queue; what is left on a node once its NodeClaim is deleted is the
// business of Karpenter's termination controller.
//
// # The objects are the truth
//
// A move is written, as JSON in the annotation [v1beta1.AnnotationCommand], on every
// NodeClaim that it gives back, before anything else is done and until
// everything is taken back or the claim is gone. The names of its replacements
// are in it before they are created, so a create can be repeated. Whatever the
// controller was killed in the midst of, the next one reads the annotations
// (restore.go) and goes on, or takes the move back when a replacement was never
// created:
//
//	annotated, not tainted           taken back, or carried on
//	tainted, replacements missing    taken back
//	replacements on their way        carried on
//	some of its pods evicted         looked at again, the others evicted or kept
//	some of its claims deleted       looked at again, the others deleted or kept
//	tainted, not annotated           the taint is a stranger's or forgotten: removed
//
// # At the moment of acting
//
// A move that was right when its replacements were ordered may not be right when
// they are there. The fleet of that moment is asked again
// ([consolidate.Recheck]); with an objection the move is taken back, its nodes
// take pods again, replacements that nobody uses are given back, and its nodes
// rest for a while that doubles with every failure. Where only some of its nodes
// are spoken against, or one of its replacements is not to be had, the move goes on
// with the others (narrow.go).
//
//   - loop.go: when something is done
//   - record.go: the annotation
//   - decide.go: from the fleet to new moves
//   - begin.go, proceed.go, drain.go, narrow.go, undo.go: the way of a move
//   - wave.go, rhythm.go: whether moves saved what they promised, when to decide
//   - restore.go: after a restart
//   - mark.go: taint, condition and annotation of a node
//   - report.go, package metrics: what is told to whom
package disruption
