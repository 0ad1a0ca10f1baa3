// Package compute is the simulated Microsoft.Compute: virtual machines and their
// extensions, sizes, quota, capacity, node images and placement scores.
//
// [Provider] puts the parts together; each has a state of its own:
//
//	handlers    the calls on virtual machines: create, change, show, delete (check.go
//	            says what is refused at once, view.go is the instance view)
//	lifecycle   the steps of a machine, as tasks: created, booted, warned, evicted, deleted
//	table       the machines, by the ID of their resource
//	books       quota as it is and as the usages API shows it, and capacity
//	sizes       the SKU API, restrictions, and what a size cannot do
//	images      the node images that exist
//	extensions  what runs on machines, its secrets and its failures
//	observers   the simulated kubelets, which hear of boots, notices and ends
//
// A machine's life, as provisioningState shows it:
//
//	Creating -> Succeeded -> (boots) -> Deleting -> gone
//	   |            `-> evicted: gone, or Deallocated
//	   `-> Failed, until its owner deletes or puts it again
package compute
