package objectmetrics

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"pgregory.net/rapid"
)

// theirs is a gauge as Karpenter's controllers of conditions make it.
func theirs(registry prometheus.Registerer) opmetrics.GaugeMetric {
	var labels []opmetrics.Label
	for _, name := range []string{"namespace", "name", "type", "status"} {
		labels = append(labels, opmetrics.Label{Name: name})
	}
	return opmetrics.NewPrometheusGauge(registry, prometheus.GaugeOpts{Name: "conditions", Help: "Conditions."}, labels, opmetrics.GA)
}

// scrape is what a registry serves.
func scrape(t rapid.TB, registry prometheus.Gatherer) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// Whatever is done to a gauge, the one in its place serves what Karpenter's would.
func TestGaugeServesWhatKarpentersWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted, got := prometheus.NewRegistry(), prometheus.NewRegistry()
		upstream := theirs(wanted)
		ours, err := Replace(got, theirs(got), AsSet)
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]*rapid.Generator[string]{
			"namespace": rapid.SampledFrom([]string{"", "a"}), "name": rapid.SampledFrom([]string{"a", "b", "a/b"}),
			"type": rapid.SampledFrom([]string{"Ready", "Drifted"}), "status": rapid.SampledFrom([]string{"True", "False"}),
		}
		all := func() map[string]string {
			out := map[string]string{}
			for _, name := range []string{"namespace", "name", "type", "status"} {
				out[name] = values[name].Draw(t, name)
			}
			return out
		}
		some := func() map[string]string {
			out := all()
			for _, name := range []string{"namespace", "name", "type", "status"} {
				if rapid.Bool().Draw(t, "without "+name) {
					delete(out, name)
				}
			}
			return out
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				v, labels := rapid.Float64Range(0, 10).Draw(t, "value"), all()
				upstream.Set(v, labels)
				ours.Set(v, labels)
			},
			"delete": func(*rapid.T) {
				labels := all()
				upstream.Delete(labels)
				ours.Delete(labels)
			},
			"delete matches": func(*rapid.T) {
				labels := some()
				upstream.DeletePartialMatch(labels)
				ours.DeletePartialMatch(labels)
			},
			"reset": func(*rapid.T) {
				upstream.Reset()
				ours.Reset()
			},
			"": func(t *rapid.T) {
				if want, got := scrape(t, wanted), scrape(t, got); got != want {
					t.Fatalf("served is\n%s\nKarpenter serves\n%s", got, want)
				}
			},
		})
	})
}

// An age grows while its object does not change.
func TestAgeGrowsBetweenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		g, err := Replace(registry, theirs(registry), Aging)
		if err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{"namespace": "", "name": "general-a", "type": "Ready", "status": "True"}
		g.Set(5, labels)
		time.Sleep(10 * time.Second)
		if got := scrape(t, registry); !strings.HasSuffix(got, "} 15\n") {
			t.Errorf("served is %q, want an age of 15", got)
		}
		g.Set(1, labels)
		if got := scrape(t, registry); !strings.HasSuffix(got, "} 1\n") {
			t.Errorf("served is %q, want an age of 1", got)
		}
	})
}

// A gauge that is left out serves nothing, and its name is free.
func TestGaugeThatIsLeftOutServesNothing(t *testing.T) {
	registry := prometheus.NewRegistry()
	g, err := Replace(registry, theirs(registry), Left)
	if err != nil {
		t.Fatal(err)
	}
	g.Set(1, map[string]string{"name": "general-a"})
	g.DeletePartialMatch(map[string]string{"name": "general-a"})
	if got := scrape(t, registry); got != "" || len(g.Labels()) != 4 {
		t.Errorf("served is %q with %d labels", got, len(g.Labels()))
	}
	theirs(registry)
}

// An object without series takes no memory.
func TestObjectsThatAreGoneAreForgotten(t *testing.T) {
	registry := prometheus.NewRegistry()
	g, err := Replace(registry, theirs(registry), AsSet)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		labels := map[string]string{"namespace": "", "name": fmt.Sprint("general-", i), "type": "Ready", "status": "True"}
		g.Set(1, labels)
		if i%2 == 0 {
			g.Delete(labels)
		} else {
			g.DeletePartialMatch(map[string]string{"namespace": "", "name": fmt.Sprint("general-", i)})
		}
	}
	if n := len(g.(*gauge).objects); n != 0 {
		t.Errorf("%d objects are kept", n)
	}
}
