// Package shadow is the record of what nap would have cost in a cluster that another
// autoscaler rules: Karpenter, AKS's node auto-provisioning, the cluster autoscaler. It does
// no I/O: a [Sample] of the cluster and [Purchase]s go in, a [Record] is what is written down,
// and a [Report] is what people read.
//
//	record.Observe(sample)
//	data, err := record.Pack()        // bounded by MostData
//	report := record.Since(from)
//
// # What counts
//
// A sample has two prices per hour for the same pods: what the nodes cost that there are, and
// what nap's plan for their pods costs. Both are taken to hold until the next sample. Where
// that comes later than [Gap] allows, no shadow has watched, and the time between counts on
// neither side. Sums are kept by hour.
//
// # What waiting pods would have got
//
// A purchase is made for pods that begin to wait together. It has what nap would have bought
// for them in the cluster as it was, and which machines the ruling autoscaler brought that
// these pods went to.
package shadow
