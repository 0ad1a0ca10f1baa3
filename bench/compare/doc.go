// Package compare measures the planner of two commits side by side: it builds the
// benchmarks of both, runs them in turns, and compares the least of each figure.
//
// Start with [Build], then [Measure]. The least of many short runs is what a busy machine
// disturbs least, and turns let both sides meet the same disturbances. Of a run, CPU time
// says more than time on such a machine.
package compare
