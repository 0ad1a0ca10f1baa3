package charts

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	appsv1 "k8s.io/api/apps/v1"
)

// upgraded renders the chart as helm upgrade --reuse-values does: with the values of a chart
// before it, which did not have that of a path yet.
func upgraded(t *testing.T, lacks string) (string, error) {
	t.Helper()
	chart, err := loader.Load("nap")
	if err != nil {
		t.Fatal(err)
	}
	in, path := chart.Values, strings.Split(lacks, ".")
	for _, key := range path[:len(path)-1] {
		in = in[key].(map[string]any)
	}
	delete(in, path[len(path)-1])
	values := map[string]any{}
	if err := strvals.ParseInto(strings.Join(least(), ","), values); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = write(chart, "nap", options{namespace: "nap-system"}, values, &out)
	return out.String(), err
}

// Values of an older release lack what is new in the chart. It renders all the same, or says
// what is missing and how to upgrade; it is never an error of a template that says neither.
func TestValuesOfOlderReleaseRenderOrSayWhat(t *testing.T) {
	chart, err := loader.Load("nap")
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	paths := slices.Sorted(maps.Keys(chart.Values))
	for _, in := range []string{"admission", "metrics"} {
		for key := range chart.Values[in].(map[string]any) {
			paths = append(paths, in+"."+key)
		}
	}
	for _, path := range paths {
		text, err := upgraded(t, path)
		if err == nil {
			the[*appsv1.Deployment](t, objects(t, text))
			continue
		}
		refused++
		for _, want := range []string{"\n  " + path, ": not set, and the chart needs it", "use --reset-then-reuse-values"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("without %s: %v, want %s", path, err, want)
			}
		}
	}
	if refused < 10 {
		t.Errorf("only %d values are asked for", refused)
	}
}

func TestResourcesMayBeNull(t *testing.T) {
	container := the[*appsv1.Deployment](t, objects(t, template(t, "nap", "nap-system", append(least(), "resources=null")))).Spec.Template.Spec.Containers[0]
	if len(container.Resources.Requests)+len(container.Resources.Limits) > 0 {
		t.Errorf("the resources are %v, want none", container.Resources)
	}
}
