// Package tight measures how often Azure sells a machine at the first asking in a
// subscription whose quotas are much smaller than what a cluster would like to
// buy: every VM family at a fifth of what an unbounded plan takes of it, and three
// other families ample.
//
// Both engines, nap's and Karpenter's, plan for the same pods and buy through the
// same provider from the same simulated Azure. An engine that plans beyond a quota
// is refused, or sent to the next best size, machine by machine.
package tight
