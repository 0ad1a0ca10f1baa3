// Package mutants asks whether a test would notice if a line of nap were lost.
//
// It takes one thing at a time out of a package (one side of a condition, an if, a call, a
// field) and runs the tests of that package and of those which use it. Tests that still
// pass have not noticed: the mutant survived. Either a test is missing or the line is not
// needed, or the change makes no difference that a test could see; the last kind is listed
// in testdata/survivors.txt, each with its reason.
//
// The idea is that of R. A. DeMillo, R. J. Lipton and F. G. Sayward, "Hints on Test Data
// Selection: Help for the Practicing Programmer", IEEE Computer 11(4), 1978.
package mutants
