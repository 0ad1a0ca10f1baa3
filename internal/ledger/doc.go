// Package ledger is the book of what a cluster's machines have cost: which were bought, at
// which price, for how long, for which pods, and whether the moves that removed nodes have paid.
// It knows no Kubernetes type and does no I/O: a [Look] at the cluster goes in, a [Book] is
// what is written down, and a [Report] is what people read.
//
//	look, err := ledger.LookAt(ctx, mirror.Snapshot(), catalogs, ledger.Settings{Now: now})
//	closed := book.Observe(look)      // pages of days that are over
//	data, err := book.Pack()          // bounded by MostData
//	report := ledger.Sum(books, from, to)
//
// # What counts
//
// A machine counts from when Azure accepted it until Azure says that it is gone, at the price of
// its offering: the machine, its managed disk, and what the user says that every node costs
// beside. What it has cost is added up at every look, so that a price counts from when it
// changes. The book holds up to when everything is counted; who goes on with it, after a
// restart or as another leader, counts from there. Nothing is therefore lost or counted
// twice. A machine that went while no controller looked ends when it was last counted.
//
// # For which pods
//
// What a node costs between two looks is shared by its pods: the mean of what a pod
// requests of the node's CPU, of its memory and of its GPUs, where it has some. What no
// pod requests is the row [Idle], the pods of DaemonSets and the node's own the row
// [Daemons], and a machine that is no node yet the row [Starting]. All rows together are
// what the machines have cost.
//
// # Whether a move has paid
//
// A move has cost what its replacements cost while the nodes that it removes were still
// there. It earns the difference between the prices per hour of what it removed and what
// it bought, from when the removed nodes were gone, until a replacement is gone, until one
// of its NodePools buys another machine where it bought none, and for a day at most.
package ledger
