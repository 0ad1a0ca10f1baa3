// Package mutants asks whether a test would notice if a line of nap were lost.
//
// It takes one thing at a time out of a package (one side of a condition, an if, a call, a
// field) and runs the tests of that package and of those which use it. Tests that still
// pass have not noticed: the mutant survived. Either a test is missing or the line is not
// needed, or the change makes no difference that a test could see; the last kind is listed
// in testdata/survivors.txt, each with its reason.
//
// All mutants of a package are compiled into its tests at once, each behind a switch that an
// environment variable turns on. Each test is run once to see which of them would make a
// difference in it, and then only these tests are run against each mutant, the fastest
// first. What a switch cannot express, such as the loss of a panic at a function's end, is
// compiled on its own. Behind a switch a loss may also leave a variable unused, which on its
// own would not compile.
//
//   - site.go, visit.go: the mutants of a package
//   - guard.go, switches.go.txt: their switches
//   - instrument.go: a package with all its switches
//   - suite.go, binary.go: which tests reach a mutant, and what they say of it
//   - alone.go: mutants without a switch
//   - target.go, survivors.go: what is judged, and what may survive
//
// The idea is that of R. A. DeMillo, R. J. Lipton and F. G. Sayward, "Hints on Test Data
// Selection: Help for the Practicing Programmer", IEEE Computer 11(4), 1978, the switches
// those of R. H. Untch, A. J. Offutt and M. J. Harrold, "Mutation Analysis Using Mutant
// Schemata", ISSTA 1993.
package mutants
