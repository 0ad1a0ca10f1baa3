// Package detail chooses which metrics a controller serves: by default those whose number
// does not grow with the cluster or with time, with a few for each NodePool and each size, and
// all of them where that is asked for. A scrape costs what it shows.
package detail

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Path is where metrics are served.
const Path = "/metrics"

// machinery are the beginnings of the names of metrics of work queues, of requests to the API
// server, and of reconcilers: controller-runtime and client-go have them for each of some fifty
// controllers, with buckets.
func machinery() []string {
	return []string{"workqueue_", "rest_client_", "controller_runtime_", "client_go_", "certwatcher_"}
}

// eachObject are labels which a metric has when it has series for each node, pod or other
// object. The metrics of NodePools and of their conditions have none of them.
func eachObject() []string { return []string{"node_name", "name"} }

// ofNodePools are metrics of NodePools whose label is called name: they are few, and alerts
// are made of them.
func ofNodePools() []string { return []string{"operator_nodepool_"} }

// Left reports whether a family of metrics is served only where details are asked for.
func Left(family *dto.MetricFamily) bool {
	begins := func(prefixes []string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(family.GetName(), p) })
	}
	switch {
	case begins(machinery()):
		return true
	case begins(ofNodePools()) || strings.HasPrefix(family.GetName(), "leader_election_") || len(family.GetMetric()) == 0:
		return false
	}
	return slices.ContainsFunc(family.GetMetric()[0].GetLabel(), func(l *dto.LabelPair) bool {
		return slices.Contains(eachObject(), l.GetName())
	})
}

// Kept are the labels that a counter keeps without details, and whether it is one that is
// summed over its others. Counters are for ever: one for each image, size, zone and NodePool
// that a machine was ever asked for with would be more with every new node image.
func Kept(name string) (labels []string, summed bool) {
	asked, refused := []string{"capacity_type", "size"}, []string{"capacity_type", "error_code", "phase"}
	labels, summed = map[string][]string{
		"karpenter_instance_vm_create_start_total":            asked,
		"karpenter_instance_vm_create_failure_total":          refused,
		"karpenter_instance_aks_machine_create_start_total":   asked,
		"karpenter_instance_aks_machine_create_failure_total": refused,
	}[name]
	return labels, summed
}

// sum adds up the counters of a family that have the same values of labels. What was gathered
// stays as it is: it shares its labels with the registry.
func sum(family *dto.MetricFamily, labels []string) *dto.MetricFamily {
	out := &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type, Unit: family.Unit}
	sums := map[string]*dto.Counter{}
	for _, m := range family.GetMetric() {
		var pairs []*dto.LabelPair
		var key strings.Builder
		for _, l := range m.GetLabel() {
			if slices.Contains(labels, l.GetName()) {
				pairs = append(pairs, l)
				key.WriteString(l.GetName() + "\x00" + l.GetValue() + "\x00")
			}
		}
		counter := sums[key.String()]
		if counter == nil {
			counter = &dto.Counter{Value: new(float64)}
			sums[key.String()] = counter
			out.Metric = append(out.Metric, &dto.Metric{Label: pairs, Counter: counter})
		}
		*counter.Value += m.GetCounter().GetValue()
	}
	return out
}

// Without gathers what a gatherer has, but for details.
func Without(all prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := all.Gather()
		families = slices.DeleteFunc(families, Left)
		for i, family := range families {
			if labels, summed := Kept(family.GetName()); summed {
				families[i] = sum(family, labels)
			}
		}
		return families, err
	})
}

// Filter wraps the handlers of a metrics server: metrics are served without details, and
// everything else as it is.
func Filter(all prometheus.Gatherer) server.Filter {
	short := promhttp.HandlerFor(Without(all), promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	return func(_ logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == Path {
				short.ServeHTTP(w, req)
				return
			}
			next.ServeHTTP(w, req)
		}), nil
	}
}
