// Package ablation measures what each part of the planner's portfolio earns: it plans
// problems without one part at a time and compares the plans with those of the whole
// portfolio.
//
// Start with [Run]. [Problems] are the workloads of the benchmark and generated clusters.
// Every plan has a budget of steps, not of time, so that the same code gives the same
// figures on every machine.
package ablation
