// Package conformance runs the test suites that Karpenter and its Azure provider publish
// against nap, and keeps what came of each spec.
//
// The suites are read from the modules in Go's module cache. Nothing of them is copied or
// edited: a folder below bin links to the module, and "go test -overlay" puts the custom
// resource definitions that nap ships in the place of those that the module embeds. A link
// is needed because Go refuses overlays of files whose names lie in its module cache.
//
// There are two kinds of suites. Those of the APIs start an API server of their own by
// controller-runtime's envtest, for which nap-lab plays the programs. Those of a cluster
// run against a lab, once with engine nap and, for comparison, with engine karpenter.
//
// [Record] is the memory: a file in which each result stays until a later run replaces
// it, so that a run that was interrupted continues, and from which docs/conformance.md is
// written.
package conformance
