package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
)

// described are all metrics that the controller can emit, with their labels.
func described(t *testing.T) map[string][]string {
	t.Helper()
	own := prometheus.NewRegistry()
	for _, register := range []func() error{
		func() error { _, err := metrics.NewProvisioning(own); return err },
		func() error { _, err := metrics.NewDisruption(own); return err },
		func() error { _, err := metrics.NewBoots(own); return err },
		func() error { _, err := metrics.NewPauses(own); return err },
		func() error { _, err := metrics.NewBootstrapToken(own); return err },
		func() error { _, err := launch.NewMetrics(own, "eastus", false); return err },
	} {
		if err := register(); err != nil {
			t.Fatal(err)
		}
	}
	descs := make(chan *prometheus.Desc, 1000)
	own.Describe(descs)
	if karpenter, ok := ctrlmetrics.Registry.(prometheus.Collector); ok {
		karpenter.Describe(descs)
	}
	close(descs)
	form := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	out := map[string][]string{}
	for d := range descs {
		m := form.FindStringSubmatch(d.String())
		out[m[1]] = strings.Split(m[2], ",")
	}
	return out
}

// What the chart's alerts and dashboards ask for is there, under these names and labels.
func TestChartAsksForMetricsThatExist(t *testing.T) {
	known := described(t)
	const chart = "../../charts/nap/files/"
	files, err := filepath.Glob(chart + "dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\b(?:nap|karpenter)_[a-z_]+`)
	by := regexp.MustCompile(`by \(([a-z_, ]+)\) \((?:[a-z]+\()?((?:nap|karpenter)_[a-z_]+)`)
	asked, grouped := 0, 0
	for _, file := range append(files, chart+"rules.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range name.FindAllString(string(text), -1) {
			asked++
			if _, ok := known[strings.TrimSuffix(metric, "_bucket")]; !ok {
				t.Errorf("%s asks for %s, which the controller does not emit", file, metric)
			}
		}
		for _, m := range by.FindAllStringSubmatch(string(text), -1) {
			for label := range strings.SplitSeq(m[1], ",") {
				grouped++
				if label = strings.TrimSpace(label); !slices.Contains(known[strings.TrimSuffix(m[2], "_bucket")], label) && label != "le" {
					t.Errorf("%s groups %s by %s, it has the labels %v", file, m[2], label, known[m[2]])
				}
			}
		}
	}
	if asked < 35 || grouped < 20 {
		t.Errorf("only %s were found", fmt.Sprint(asked, " metrics and ", grouped, " labels"))
	}
}
