// Package leadership keeps a controller from writing when it is not the leader any more.
//
// A process that was stopped for longer than its lease lasts (by a signal, a frozen
// container, a paused or suspended machine) goes on where it was when it wakes up, and
// does not know that another one leads by now: its timers fire within seconds, and in
// these seconds it would buy what the other one buys. So every write passes a [Lease],
// which is held only while the last renewal is not too long ago. Time that the process
// or the machine has slept counts.
//
//   - lease.go: whether the lease is held
//   - transport.go: renewals are seen, and writes refused, where requests are sent
//   - client.go: which requests are writes of the leader
//   - boottime_*.go: a clock that goes on while the machine sleeps
//
// Start with [NewLease].
package leadership
