// Package topology keeps count of pods per topology domain and says which domains
// a class of pods may enter: topology spread, pod affinity and anti-affinity
// with its inverse rule.
//
// Every distinct (topology key, selector, namespaces, node filter) of the
// problem is one [Counter]. A class has [Rules], which read counters, and a
// list of counters that its pods add to. A place has a domain per key: its
// label value, or, for kubernetes.io/hostname, itself. The semantics are those
// of the Kubernetes scheduler, with one extension for machines that do not
// exist yet: the domains of a spread constraint are those of existing eligible
// nodes together with those that can be bought for the class, and the emptiest
// host is always empty, because a new one can be bought.
package topology
