// Package model is nap's vocabulary: the words in which the planner is asked a
// question and gives its answer. It holds values and their small arithmetic,
// and nothing that reads a clock, a network or a Kubernetes type.
//
// Start with [Problem], the question, and [Plan], the answer:
//
//	Problem  = Pools (what may be bought, from which Catalog of Offerings)
//	         + Nodes (what exists or is on its way)
//	         + Classes (the pods that need a place, identical ones counted)
//	         + Policy (preferences, budget, seed)
//	Plan     = NewNodes (with ranked offerings) + placements on existing Nodes
//	         + Unschedulable classes with counted Reasons + cost + lower bound
//
// Quantities are int64 in fixed units (see [Resources]); money is integer
// micro-dollars per hour (see [Money]); labels are plain strings. Everything is
// ordered by slices, never by map iteration, so that the same problem always
// reads the same.
//
// The package imports the standard library alone. Kubernetes objects become
// these values in package kube, and Azure's facts in package azure; no other package
// converts.
package model
