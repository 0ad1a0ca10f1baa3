package cloud_test

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/detail"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// TestDaemonSetsCountOnNewNodes plays the story, and then looks at the metrics: what the
// dashboards and alerts of the public mixin ask for has data, and without details there are
// few series.
func TestDaemonSetsCountOnNewNodes(t *testing.T) {
	t.Parallel()
	story, err := scenario.Story("daemonset")
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, "nap", cloud.Options{ProvisionMode: config.ModeVMs, Variables: []string{"DETAILED_METRICS=true", "METRICS_SECURE=false"}})
	playOn(t, l, story)
	all := awaitPromised(t, l)
	onKarpentersPage(t, all)
	const most = 300
	few, details := 0, 0
	for name, family := range all {
		switch {
		case !strings.HasPrefix(name, "nap_") && !strings.HasPrefix(name, "karpenter_"):
		case detail.Left(family):
			details += len(family.GetMetric())
		default:
			few += len(family.GetMetric())
			t.Logf("%4d %s", len(family.GetMetric()), name)
		}
	}
	t.Logf("%d series of nap_* and karpenter_*, and %d more with details", few, details)
	if few >= most {
		t.Errorf("%d series without details, want fewer than %d", few, most)
	}
}

// awaitPromised scrapes until there is data of all series that the page promises. Karpenter's
// controllers of metrics look every few seconds.
func awaitPromised(t *testing.T, l *labtest.Lab) (all map[string]*dto.MetricFamily) {
	t.Helper()
	labels, said := promised(t), "not known yet"
	labtest.Await(t, "data of all series that docs/metrics.md promises", func() bool {
		all = scrape(t, l)
		var missing []string
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			if !has(all[name], labels[name]) {
				missing = append(missing, name)
			}
		}
		if now := strings.Join(missing, ", "); now != said {
			said = now
			t.Logf("%s without data of %s", time.Now().Format(time.TimeOnly), cmp.Or(said, "none"))
		}
		return len(missing) == 0
	})
	return all
}

// has reports whether a family has a series, and that one every label of a list.
func has(family *dto.MetricFamily, labels []string) bool {
	if len(family.GetMetric()) == 0 {
		return false
	}
	return !slices.ContainsFunc(labels, func(label string) bool {
		return !slices.ContainsFunc(family.GetMetric()[0].GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label })
	})
}

// promised are the families of the table of docs/metrics.md that have data in any cluster, with
// the labels by which they are asked for.
func promised(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(karpenter_[a-z_]+)` \\| ([^|]*) \\|.*\\| yes \\|$").FindAllStringSubmatch(string(text), -1) {
		all[row[1]] = nil
		if row[2] != "-" {
			all[row[1]] = strings.Split(row[2], ", ")
		}
	}
	if len(all) < 20 {
		t.Fatalf("the page promises %d series", len(all))
	}
	return all
}

// onKarpentersPage holds what is scraped against docs/karpenter-metrics.md: every family with
// Karpenter's prefix is on it, and each of its series has the labels that the page names.
func onKarpentersPage(t *testing.T, all map[string]*dto.MetricFamily) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/karpenter-metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(karpenter_[a-z_]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		told[row[1]] = strings.Split(row[2], ", ")
	}
	for name, family := range all {
		if !strings.HasPrefix(name, "karpenter_") {
			continue
		}
		if told[name] == nil {
			t.Errorf("%s is scraped, and docs/karpenter-metrics.md does not have it", name)
			continue
		}
		for _, series := range family.GetMetric() {
			if !labelledAs(series, told[name]) {
				t.Errorf("%s is said to have the labels %q, and there is %v", name, told[name], series.GetLabel())
				break
			}
		}
	}
}

// labelledAs reports whether a series has the labels that are told, and no others but those
// of nodes where that is told.
func labelledAs(series *dto.Metric, told []string) bool {
	has := map[string]bool{}
	for _, l := range series.GetLabel() {
		has[l.GetName()] = true
	}
	further := 0
	for _, label := range told {
		switch {
		case label == "those of nodes":
			further = len(has)
		case label != "-" && !has[label]:
			return false
		default:
			delete(has, label)
		}
	}
	return len(has) <= further
}

// scrape reads the metrics of the lab's controller.
func scrape(t *testing.T, l *labtest.Lab) map[string]*dto.MetricFamily {
	t.Helper()
	text, err := l.Client().CoreV1().RESTClient().Get().
		AbsPath("/api/v1/namespaces/nap-system/services/nap:http-metrics/proxy/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return families
}
