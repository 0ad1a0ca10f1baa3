// Package cloud makes a lab a cluster on Azure with nap in it: one service of the lab is
// the simulated Resource Manager (internal/armsim) with the kubelets of its machines,
// another installs nap's chart and plays the system node that its pods run on.
//
//	lab.Config{Services: []lab.Service{cloud.New(cloud.Options{Speed: 20})}}
//
// What other processes need to reach it is written into the lab's folder:
//
//	azure.json              where its administration is, for `nap lab fault` ([Open])
//	azure-environment.json  its endpoints, as AZURE_ENVIRONMENT_FILEPATH wants them
//	azure-token             the federated token with which the controller signs in
//	azure.env               the environment of a controller that is to use it, the
//	                        same variables that one sets on AKS ([ControllerEnvironment])
//	azure-state.json        its machines, so that a killed lab finds them again
package cloud
