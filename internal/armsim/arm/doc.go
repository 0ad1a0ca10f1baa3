// Package arm is the part of the simulated Azure Resource Manager that all
// resource providers share: paths, documents, errors, routes, and the small
// stores of one subscription.
//
// A provider (compute, network, containerservice, ...) is built on a
// [Subscription] and offers a list of [Route]. Each part of a Subscription has a
// state of its own:
//
//	Resources   the documents by resource ID, and what is called when one changes
//	Operations  the long-running operations that clients poll
//	Tasks       what happens later, as data in a heap
//	Faults      what goes wrong on purpose, and the tasks that it holds back
//	Audit       the audit log and the counters
//	Clock       the time, and how fast it runs
//	Random      the draws that Config.Seed decides
//	IDs         the sequence behind GUIDs, ETags and the order of tasks
//
// # Locking
//
// One lock guards all of them: [Subscription.Lock]. Handlers and tasks run with it
// held; nothing in this package takes it, except the timer of [Tasks]. Stored
// documents are never changed in place but replaced, so a reply may be encoded
// after the lock is released.
package arm
