// Package armsim is a simulated Azure: an HTTP server that answers the Azure
// Resource Manager, the token endpoint and the retail price API on the paths,
// with the bodies, headers, error codes and delays of the real ones, so that
// code written with the official SDK cannot tell the difference.
//
// # Start here
//
//	server, err := armsim.New(armsim.Config{})      // a whole subscription with one AKS cluster
//	http.Serve(tlsListener, server.Handler())       // the caller brings TLS
//	server.Observe(kubelets)                        // told when machines boot and go
//	server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Size: "Standard_D*", Zone: "1"})
//	server.Audit(0)                                 // the witness: every mutation and what became of it
//
// Tests use package armtest, which adds a transport without sockets, an SDK
// cloud configuration and a credential.
//
// # How a request travels
//
//	Handler -> authenticate -> faults and throttling -> route -> handler (holds Server.mu) -> reply
//
// Handlers see and change one [state] under one lock and return a reply that
// is encoded after the lock is released. Stored documents are never changed in
// place: they are replaced, so a reply may be encoded while the next request runs.
//
// Everything that happens later (an operation that ends, a machine that boots,
// a spot eviction) is a task: a time, a kind and a resource, kept in a heap
// that is part of the state. Hence a lab that was killed finds its
// half-created machines again and finishes them, and a client may resume an
// operation across a restart.
//
// # Why the SDK's fake servers are not used
//
// The SDK's fake packages parse requests, but they keep the state of
// long-running operations in the process (a restart would lose it), match
// paths by case although ARM does not, cannot express an error message
// (quota and capacity errors are told apart by their text alone), and lack the
// preview calls and headers that the AKS machine API needs. The routing that
// replaces them is one table, see routes.go. Resources are kept as the JSON
// documents that clients sent, so that no field is lost which the simulator
// does not know. That they are right is shown by tests that drive the server
// with the real SDK clients.
//
// # What is simpler than the real Azure
//
//   - One subscription, one region with machines, one AKS cluster.
//   - Network rate limits refill evenly; the real ones count in windows of five minutes.
//   - Ephemeral OS disks are compared in GiB, which is what Azure's disk sizes mean.
//   - Capacity is a number of machines for each size, zone and priority; it does
//     not move by itself, except by what is bought and by faults.
//   - Spot prices are those of the catalogue and the same in every zone.
//   - A federated token is taken for what it says; nobody checks its signature.
//   - Extensions do nothing but take time; what they were told reaches the
//     simulated kubelet with [Machine].
//
// # Time
//
// The package uses package time alone. In tests it runs under testing/synctest
// with an in-process transport; in the lab Config.TimeScale compresses every
// simulated duration, and the Retry-After-Ms header tells clients so.
package armsim
