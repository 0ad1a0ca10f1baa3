// Package differential compares nap's planner with Karpenter's scheduler on
// generated clusters: whatever Karpenter schedules, nap schedules, at no
// higher price, and nap's plan breaks no rule.
//
// [Generate] draws a cluster by seed, [GenerateWide] one with what is seldom asked
// for as well: preferences, minValues, reservations, priorities, namespaces, disks
// of all kinds, and so on ([Traits]), [GenerateLarge] one of many apps. [Compare]
// runs both engines on it and returns what contradicts the promise, [Shrink] takes
// away what a finding does not need. The test prints what is left as YAML.
//
// Where nap differs on purpose, the generator leaves the case out and names the
// difference as docs/differences.md does.
package differential
