// Package prerequisites says what of a cluster, its network and its subscription keeps
// nap from working, or will: a numbered table of checks, each a pure function of facts
// that others have read.
//
//	azurefacts, clusterfacts ── Facts ──> Check ── []Result ──> nap doctor, the controller
//
// A check never guesses: what could not be read makes its result unknown, with the
// reason. docs/prerequisites.md lists the table for people; a test holds the two together.
//
// Start with [Check] and [Table].
package prerequisites
