// Package graph is the simulated Microsoft.ResourceGraph: an index of all resources
// that lags behind the truth, and the part of the Kusto query language that finding
// one's own machines takes.
package graph
