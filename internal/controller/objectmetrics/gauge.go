package objectmetrics

import (
	"fmt"
	"strings"
	"sync"
	"time"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
)

// Reading says what a gauge shows.
type Reading int

const (
	// Left is a gauge that is not served: it keeps nothing.
	Left Reading = iota
	// AsSet is a gauge that shows the value that was set last.
	AsSet
	// Aging is a gauge of an age in seconds, which grows after it was set.
	Aging
)

// Replace takes a gauge of Karpenter's out of the registry and returns the one that takes
// its place there, unless it is left out. It fails where the gauge is not of Prometheus.
func Replace(registry prometheus.Registerer, theirs opmetrics.GaugeMetric, reading Reading) (opmetrics.GaugeMetric, error) {
	desc, err := take(registry, theirs)
	if err != nil {
		return nil, err
	}
	if reading == Left {
		return unseen{theirs}, nil
	}
	g := &gauge{theirs: theirs, desc: desc, aging: reading == Aging, objects: map[string]map[string]*point{}}
	if err := registry.Register(g); err != nil {
		return nil, fmt.Errorf("register %s: %w", desc, err)
	}
	return g, nil
}

// take takes a gauge out of the registry and returns its description.
func take(registry prometheus.Registerer, theirs opmetrics.GaugeMetric) (*prometheus.Desc, error) {
	collector, ok := theirs.(prometheus.Collector)
	if !ok {
		return nil, fmt.Errorf("a gauge is %T, which Prometheus cannot collect", theirs)
	}
	descs := make(chan *prometheus.Desc, 1)
	collector.Describe(descs)
	registry.Unregister(collector)
	return <-descs, nil
}

// unseen is a gauge that keeps nothing.
type unseen struct{ opmetrics.GaugeMetric }

func (unseen) Set(float64, map[string]string)       {}
func (unseen) Delete(map[string]string)             {}
func (unseen) DeletePartialMatch(map[string]string) {}
func (unseen) Reset()                               {}

// gauge is a gauge of objects, each of which has few series.
type gauge struct {
	theirs opmetrics.GaugeMetric // says labels and stage; has no series
	desc   *prometheus.Desc
	aging  bool

	mu sync.Mutex
	// objects are the series of each object, by the values of all labels.
	objects map[string]map[string]*point
}

// point is one series.
type point struct {
	values []string // of the labels, in the order of the description
	value  float64
	set    time.Time
}

func (g *gauge) Labels() []opmetrics.Label { return g.theirs.Labels() }
func (g *gauge) Stage() opmetrics.Stage    { return g.theirs.Stage() }

// objectOf names the object that labels are of.
func objectOf(labels map[string]string) string {
	return labels[status.MetricLabelNamespace] + "/" + labels[status.MetricLabelName]
}

// key are all values of labels, in their order.
func (g *gauge) key(labels map[string]string) (values []string, key string) {
	for _, l := range g.theirs.Labels() {
		values = append(values, labels[l.Name])
	}
	return values, strings.Join(values, "\xff")
}

// Set implements GaugeMetric.
func (g *gauge) Set(v float64, labels map[string]string) {
	values, key := g.key(labels)
	object := objectOf(labels)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.objects[object] == nil {
		g.objects[object] = map[string]*point{}
	}
	g.objects[object][key] = &point{values: values, value: v, set: time.Now()}
}

// Delete implements GaugeMetric.
func (g *gauge) Delete(labels map[string]string) {
	_, key := g.key(labels)
	g.mu.Lock()
	defer g.mu.Unlock()
	object := objectOf(labels)
	delete(g.objects[object], key)
	g.drop(object)
}

// DeletePartialMatch implements GaugeMetric. It is quick where the labels name the object.
func (g *gauge) DeletePartialMatch(labels map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, named := labels[status.MetricLabelName]
	if _, placed := labels[status.MetricLabelNamespace]; named && placed {
		g.deleteMatches(objectOf(labels), labels)
		return
	}
	for object := range g.objects {
		g.deleteMatches(object, labels)
	}
}

func (g *gauge) deleteMatches(object string, labels map[string]string) {
	for key, p := range g.objects[object] {
		if g.matches(p, labels) {
			delete(g.objects[object], key)
		}
	}
	g.drop(object)
}

// drop forgets an object that has no series any more.
func (g *gauge) drop(object string) {
	if len(g.objects[object]) == 0 {
		delete(g.objects, object)
	}
}

func (g *gauge) matches(p *point, labels map[string]string) bool {
	for i, l := range g.theirs.Labels() {
		if want, asked := labels[l.Name]; asked && p.values[i] != want {
			return false
		}
	}
	return true
}

// Reset implements GaugeMetric.
func (g *gauge) Reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.objects)
}

// Describe implements prometheus.Collector.
func (g *gauge) Describe(descs chan<- *prometheus.Desc) { descs <- g.desc }

// Collect implements prometheus.Collector.
func (g *gauge) Collect(out chan<- prometheus.Metric) {
	for _, p := range g.points() {
		v := p.value
		if g.aging {
			v += time.Since(p.set).Seconds()
		}
		m, err := prometheus.NewConstMetric(g.desc, prometheus.GaugeValue, v, p.values...)
		if err != nil {
			m = prometheus.NewInvalidMetric(g.desc, err)
		}
		out <- m
	}
}

// points are all series. A point is not changed once it is set.
func (g *gauge) points() []*point {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*point
	for _, series := range g.objects {
		for _, p := range series {
			out = append(out, p)
		}
	}
	return out
}
