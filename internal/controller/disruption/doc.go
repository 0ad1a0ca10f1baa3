// Package disruption removes and replaces nodes: it carries out the commands that
// [github.com/nodeautoprovision/nap/internal/planner/consolidate] decides.
//
//	fleet ──> Plan ──> commands ──> marked ──> replacements ──> rechecked ──> drained ──> deleted
//	          decide.go             executor.go replacements.go recheck.go    drain.go    drain.go
//	                                   └──────── rolled back ───────┘ executor.go
//
// [Loop] looks at the fleet whenever something has changed, decides about all of
// it at once, and carries any number of commands on at the same time; nothing in it
// waits for anything. Pods go in stages, the large ones first, through Karpenter's
// eviction queue; what is left on a node once its NodeClaim is deleted is the
// business of Karpenter's termination controller.
//
// # The objects are the truth
//
// A command is written, as JSON in the annotation v1beta1.AnnotationCommand, on every
// NodeClaim that it removes, before anything else is done and until everything is
// rolled back or the claim is gone. The names of its replacements are in it before
// they are created, so a create can be repeated. Wherever the controller was killed,
// the next process reads the annotations (restore.go) and goes on, or rolls the
// command back when a replacement was never created:
//
//	annotated, not tainted           rolled back, or carried on
//	tainted, replacements missing    rolled back
//	replacements on their way        carried on
//	some of its pods evicted         rechecked, the others evicted or kept
//	some of its claims deleted       rechecked, the others deleted or kept
//	tainted, not annotated           the taint is foreign or forgotten: removed
//
// # At the moment of acting
//
// A command that was right when its replacements were ordered may not be right when
// they are there. The fleet of that moment is asked again
// ([consolidate.Recheck]); with an objection the command is rolled back: its nodes
// take pods again, replacements that no pod uses are deleted, and its nodes are left
// alone for a while that doubles with every failure. Where there are objections to
// some of its nodes only, or one of its replacements is not to be had, a partial
// command goes on with the others (partial.go).
//
//   - loop.go: when something is done
//   - record.go, command.go, commands.go: the annotation, a command, and all of them
//   - decide.go, draft.go, fleetreader.go: from the fleet to new commands
//   - executor.go, replacements.go, mark.go: carry a command on, or roll it back
//   - recheck.go, partial.go, drain.go: the moment of acting
//   - pacing.go, batch.go, backoff.go: when to decide, and when not
//   - restore.go, straytaints.go: after a restart
//   - report.go, package metrics: what is reported, and where
package disruption
