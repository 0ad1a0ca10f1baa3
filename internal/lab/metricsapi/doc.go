// Package metricsapi serves the Metrics API (metrics.k8s.io) of a lab, as metrics-server
// does in a cluster: what running pods and their nodes use, for kubectl top and for the
// HorizontalPodAutoscaler controller, which is the real one.
//
// Nothing is executed in a lab, so nothing is used either but what a [Load] says: the pods
// that it selects share it equally, as requests behind a Service are. More pods bring the
// use of each down, and what scales by use comes to rest.
//
// [Service] is the part of the lab; the API server proves to it by its certificate who it
// is, and reaches it through the Service of the cluster that the APIService names.
package metricsapi
