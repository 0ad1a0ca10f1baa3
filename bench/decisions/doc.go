// Package decisions writes down what the planner decides, so that a change which
// is not meant to change decisions can be held to that.
//
// A [Case] is one problem: a workload of the benchmark, a generated cluster, a
// fleet. [Case.Decide] solves it with a budget of steps, not of time, and returns
// the decision as text: the pool, offering and pods of every new node, the pods on
// every existing node, the unschedulable pods with their reason, cost and bound;
// for a fleet the commands of consolidation and the reason why each other node
// stays. [Hash] makes a line of it that a file can keep.
//
// The same case gives the same text on every machine and with every GOMAXPROCS.
package decisions
