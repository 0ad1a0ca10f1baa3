package objectmetrics

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	metricsnode "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/metrics"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

// Labels of nodes beside those of [v1.WellKnownLabels].
const (
	nodeName  = "node_name"
	nodePhase = "phase"
	managed   = "managed"
)

// Nodes has the metrics of nodes, made from Karpenter's mirror of the cluster whenever they
// are collected.
type Nodes struct {
	cluster     *state.Cluster
	utilization *prometheus.Desc
	lifetime    *prometheus.Desc
	amounts     []amount
	// labels are the well-known labels that are told, by their names in metrics.
	labels map[string]string
	// each says that metrics of each node are served, not only those of the cluster.
	each bool
}

// amount is a metric of each node that has a series for each resource.
type amount struct {
	desc *prometheus.Desc
	of   func(*state.StateNode) corev1.ResourceList
}

// NewNodes puts the metrics of nodes into the registry, in the place of those of
// Karpenter's controller; each says whether those of each node are among them, or only
// those of the cluster.
func NewNodes(registry prometheus.Registerer, cluster *state.Cluster, each bool) (*Nodes, error) {
	metricsnode.NewController(cluster) // which makes and registers the gauges
	n := &Nodes{cluster: cluster, each: each, labels: wellKnown()}
	for _, m := range []struct {
		gauge opmetrics.GaugeMetric
		of    func(*state.StateNode) corev1.ResourceList
	}{
		{metricsnode.Allocatable, func(n *state.StateNode) corev1.ResourceList { return n.Node.Status.Allocatable }},
		{metricsnode.TotalPodRequests, (*state.StateNode).PodRequests},
		{metricsnode.TotalPodLimits, (*state.StateNode).PodLimits},
		{metricsnode.TotalDaemonRequests, (*state.StateNode).DaemonSetRequests},
		{metricsnode.TotalDaemonLimits, (*state.StateNode).DaemonSetLimits},
		{metricsnode.SystemOverhead, func(n *state.StateNode) corev1.ResourceList {
			return resources.Subtract(n.Node.Status.Capacity, n.Node.Status.Allocatable)
		}},
	} {
		desc, err := take(registry, m.gauge)
		if err != nil {
			return nil, err
		}
		n.amounts = append(n.amounts, amount{desc, m.of})
	}
	var err error
	if n.lifetime, err = take(registry, metricsnode.Lifetime); err != nil {
		return nil, err
	}
	if n.utilization, err = take(registry, metricsnode.ClusterUtilization); err != nil {
		return nil, err
	}
	if err := registry.Register(n); err != nil {
		return nil, fmt.Errorf("register the metrics of nodes: %w", err)
	}
	return n, nil
}

// wellKnown are Karpenter's well-known labels by their names in metrics: what follows the
// prefix, in small letters.
func wellKnown() map[string]string {
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(v1.WellKnownLabels)) {
		if parts := strings.Split(key, "/"); len(parts) == 2 {
			out[snake(parts[1])] = key
		}
	}
	return out
}

func snake(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// Describe implements prometheus.Collector.
func (n *Nodes) Describe(descs chan<- *prometheus.Desc) {
	descs <- n.utilization
	if !n.each {
		return
	}
	descs <- n.lifetime
	for _, a := range n.amounts {
		descs <- a.desc
	}
}

// Collect implements prometheus.Collector.
func (n *Nodes) Collect(out chan<- prometheus.Metric) {
	for _, m := range n.read() {
		out <- m
	}
}

// read makes all metrics while Karpenter's mirror is locked for reading. They are sent only
// afterwards, so that a slow scrape holds no lock.
func (n *Nodes) read() []prometheus.Metric {
	var out []prometheus.Metric
	allocatable, requested := corev1.ResourceList{}, corev1.ResourceList{}
	for node := range n.cluster.Nodes() {
		if node.Node == nil {
			continue
		}
		resources.MergeInto(allocatable, node.Allocatable())
		resources.MergeInto(requested, node.PodRequests())
		if n.each {
			out = n.appendNode(out, node)
		}
	}
	for name, all := range allocatable {
		if all.IsZero() {
			continue
		}
		share := number(name, requested[name]) / number(name, all)
		of := []*dto.LabelPair{pair(metrics.ResourceTypeLabel, snake(string(name)))}
		out = append(out, &sample{n.utilization, of, 100 * share})
	}
	return out
}

// appendNode appends the metrics of a node. Its labels are made once for all of them.
func (n *Nodes) appendNode(out []prometheus.Metric, node *state.StateNode) []prometheus.Metric {
	labels := n.labelsOf(node)
	out = append(out, &sample{n.lifetime, labels, time.Since(node.Node.CreationTimestamp.Time).Seconds()})
	at := 0 // where the label of the resource belongs
	for at < len(labels) && labels[at].GetName() < metrics.ResourceTypeLabel {
		at++
	}
	for _, a := range n.amounts {
		for name, q := range a.of(node) {
			of := slices.Insert(slices.Clone(labels), at, pair(metrics.ResourceTypeLabel, snake(string(name))))
			out = append(out, &sample{a.desc, of, number(name, q)})
		}
	}
	return out
}

// labelsOf are a node's labels in metrics, sorted by name.
func (n *Nodes) labelsOf(node *state.StateNode) []*dto.LabelPair {
	out := []*dto.LabelPair{
		pair(nodeName, node.Node.Name), pair(nodePhase, string(node.Node.Status.Phase)), pair(managed, strconv.FormatBool(node.Managed())),
	}
	for name, key := range n.labels {
		out = append(out, pair(name, node.Node.Labels[key]))
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// sample is the value of one series. Samples share labels.
type sample struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair // sorted by name
	value  float64
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *sample) Write(m *dto.Metric) error {
	m.Label, m.Gauge = s.labels, &dto.Gauge{Value: &s.value}
	return nil
}

// number is an amount in cores, bytes or pieces.
func number(name corev1.ResourceName, q resource.Quantity) float64 {
	if name == corev1.ResourceCPU {
		return float64(q.MilliValue()) / 1000
	}
	return float64(q.Value())
}
