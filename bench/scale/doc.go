// Package scale measures what nap keeps in memory for clusters of a given size, and how
// mirror and planner grow with the size of the fleet. There is no API server: objects are
// made here, encoded and decoded as they come over the wire, and take the way that they
// take in nap-controller.
//
// What Karpenter's cluster state and the other kinds in the caches hold is not measured.
package scale
