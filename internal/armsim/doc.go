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
//	server.Audit(0)                                 // the audit log: every mutation and what became of it
//
// Tests use package armtest, which adds a transport without sockets, an SDK
// cloud configuration and a credential.
//
// # The map
//
//	armsim            Server: configuration, assembly, and what tests and the lab ask of it
//	  gateway         a request from HTTP to its handler and back; throttle: rate limits
//	  saver           the state file and the audit file
//	  admin           /admin/, which drives and watches the simulation
//	arm               what all providers share: paths, documents, routes, operations, tasks,
//	                  faults, the audit log, clock and random draws
//	compute           machines, extensions, sizes, quota, capacity, images
//	network           interfaces, subnets, addresses
//	containerservice  the cluster, agent pools, the AKS machine API
//	graph             Resource Graph
//	retailprices      the retail price API
//	billing           price sheets and reservations
//	identity          sign-in, tokens, permissions
//	managedidentity   Microsoft.ManagedIdentity: identities and whose tokens count as theirs
//	authorization     Microsoft.Authorization: roles and role assignments
//	armtest           what a test needs to have all this beside it
//	kubelet           the kubelets of the machines
//
// # How a request travels
//
//	Handler -> token -> path and version -> permission -> faults -> rate limits -> handler -> reply
//
// Each provider registers its rows of routes ([arm.Route]); [Server.Routes] lists
// them all. Handlers see and change the state of one [arm.Subscription] under its
// lock and return a reply that is encoded after the lock is released. Stored
// documents are never changed in place: they are replaced, so a reply may be encoded
// while the next request runs.
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
// preview calls and headers that the AKS machine API needs. Resources are kept as
// the JSON documents that clients sent, so that no field is lost which the simulator
// does not know. Tests drive the server with the real SDK clients.
//
// # What is simpler than the real Azure
//
//   - One subscription, one region with machines, one AKS cluster.
//   - A managed cluster is made and changed at once; stopping and starting take time.
//   - Network rate limits refill evenly; the real ones count in windows of five minutes.
//   - Ephemeral OS disks are compared in GiB, which is what Azure's disk sizes mean.
//   - Capacity is a number of machines for each size, zone and priority; it does
//     not move by itself, except by what is bought and by faults.
//   - Spot prices are those of the catalogue and the same in every zone.
//   - A federated token is taken for what it says; its signature is not checked.
//   - Extensions do nothing but take time; what they were told reaches the
//     simulated kubelet with [Machine].
//
// # Time
//
// The package uses package time alone. In tests it runs under testing/synctest
// with an in-process transport; in the lab Config.TimeScale compresses every
// simulated duration, and the Retry-After-Ms header tells clients so.
package armsim
