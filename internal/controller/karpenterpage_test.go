package controller

import (
	"cmp"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	metricsnode "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	_ "sigs.k8s.io/karpenter/pkg/operator" // registers karpenter_build_info

	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
)

// page is docs/karpenter-metrics.md: the tables by heading, each row by its first cell.
func page(t *testing.T) map[string]map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/karpenter-metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out, heading := map[string]map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, is := strings.CutPrefix(line, "## "); is {
			heading, out[title] = title, map[string][]string{}
			continue
		}
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) > 1 {
			first := strings.Trim(cells[0], "| `")
			if out[heading][first] != nil {
				t.Errorf("%s: %s stands there twice", heading, first)
			}
			last := len(cells) - 1
			cells[last] = strings.TrimSuffix(strings.TrimSuffix(cells[last], "|"), " ")
			out[heading][first] = cells[1:]
		}
	}
	return out
}

// karpenterSeries are the labels, sorted, of the metrics with Karpenter's prefix that a
// registry has, by their names.
func karpenterSeries(t *testing.T, reg prometheus.Gatherer) map[string][]string {
	t.Helper()
	collector, ok := reg.(prometheus.Collector)
	if !ok {
		t.Fatalf("registry %T tells nothing about its metrics", reg)
	}
	found := make(chan *prometheus.Desc, 1<<16)
	collector.Describe(found)
	close(found)
	described := regexp.MustCompile(`fqName: "(karpenter_[^"]+)".*, constLabels: \{([^{}]*)\}, variableLabels: \{([^{}]*)\}\}$`)
	out := map[string][]string{}
	for d := range found {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			continue
		}
		labels := []string{}
		for label := range strings.SplitSeq(m[2]+","+m[3], ",") {
			if name, _, _ := strings.Cut(label, "="); name != "" {
				labels = append(labels, name)
			}
		}
		slices.Sort(labels)
		out[m[1]] = labels
	}
	return out
}

func same(t *testing.T, what string, page map[string][]string, real []string) {
	t.Helper()
	for _, name := range real {
		if page[name] == nil {
			t.Errorf("docs/karpenter-metrics.md, %s: %s is missing", what, name)
		}
	}
	for name := range page {
		if !slices.Contains(real, name) {
			t.Errorf("docs/karpenter-metrics.md, %s: there is no %s", what, name)
		}
	}
}

// sameLabels holds the labels on the page against those that the metrics have.
func sameLabels(t *testing.T, page, real map[string][]string) {
	t.Helper()
	for name, labels := range real {
		if page[name] == nil {
			continue // same tells it
		}
		told := []string{}
		if cell := page[name][0]; cell != "-" {
			told = strings.Split(cell, ", ")
		}
		if i := slices.Index(told, "those of nodes"); i >= 0 {
			told = append(slices.Delete(told, i, i+1), labelsOfNodes()...)
			slices.Sort(told)
		}
		if !slices.Equal(told, labels) {
			t.Errorf("docs/karpenter-metrics.md: %s is said to have the labels %q, and has %q", name, told, labels)
		}
	}
}

// labelsOfNodes are those that Karpenter's metrics of nodes have from well-known labels.
func labelsOfNodes() []string {
	var out []string
	for key := range karpv1.WellKnownLabels {
		if _, name, qualified := strings.Cut(key, "/"); qualified {
			out = append(out, strings.ReplaceAll(strings.ToLower(name), "-", "_"))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// upstreamSeries are the metrics of Karpenter's registry. Those of nodes are registered by
// the controller that writes them.
func upstreamSeries(t *testing.T) map[string][]string {
	t.Helper()
	out := karpenterSeries(t, ctrlmetrics.Registry)
	if out["karpenter_nodes_allocatable"] == nil {
		metricsnode.NewController(nil)
		out = karpenterSeries(t, ctrlmetrics.Registry)
	}
	return out
}

// The page has every metric of Karpenter's that is registered, and no other, with its
// labels; and every one with its prefix that nap adds. What nap registers itself under a
// name of Karpenter's has Karpenter's labels.
func TestKarpentersMetricsAreOnThePage(t *testing.T) {
	own := prometheus.NewRegistry()
	if _, err := metrics.NewDisruption(own); err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.NewProvisioning(own); err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.NewOfferings(own, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := launch.NewMetrics(own, "eastus", false); err != nil {
		t.Fatal(err)
	}
	if err := image.NewResolver(nil, "", 0, nil).Count(own); err != nil {
		t.Fatal(err)
	}
	if err := metrics.RegisterBuild(own); err != nil {
		t.Fatal(err)
	}
	tables, theirs, naps := page(t), upstreamSeries(t), karpenterSeries(t, own)
	for name, labels := range naps {
		if upstream, is := theirs[name]; is {
			if !slices.Equal(labels, upstream) {
				t.Errorf("nap registers %s with the labels %q, Karpenter with %q", name, labels, upstream)
			}
			delete(naps, name)
		}
	}
	same(t, "metrics", tables["Metrics"], slices.Collect(maps.Keys(theirs)))
	sameLabels(t, tables["Metrics"], theirs)
	const further = "Metrics with Karpenter's prefix that it does not have itself"
	same(t, "metrics of nap's", tables[further], slices.Collect(maps.Keys(naps)))
	sameLabels(t, tables[further], naps)
}

// source is Go code without tests, by the folder that it is in.
type source map[string]string

func readSource(t *testing.T, root string) source {
	t.Helper()
	out := source{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		out[filepath.ToSlash(folder)] += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// karpenterModule is the folder of the packages of Karpenter's module.
func karpenterModule(t *testing.T) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "pkg")
}

// deciding are the packages of Karpenter's own loops, which do not run with engine nap, and of
// its metrics of nodes, which nap makes with either engine.
func deciding(folder string) bool {
	return folder == "controllers/metrics/node" || folder == "controllers/disruption" || strings.HasPrefix(folder, "controllers/provisioning") || folder == "operator" ||
		strings.HasPrefix(folder, "test") || strings.HasSuffix(folder, "/fake")
}

// users says who uses one of several Go names: nap's controllers, and Karpenter's
// packages that run with engine nap.
type users struct {
	nap    string
	theirs source
}

func newUsers(t *testing.T) *users {
	t.Helper()
	u := &users{theirs: readSource(t, karpenterModule(t))}
	for _, root := range []string{".", "../azure"} {
		for _, text := range readSource(t, root) {
			u.nap += text
		}
	}
	return u
}

// byNap looks for the names under which nap imports a folder of Karpenter's. A metric that nap
// takes away by its address is not one that it uses.
func (u *users) byNap(folder, name string) bool {
	imported := regexp.MustCompile(`(?m)^\s*(?:import )?(\w*) ?"sigs\.k8s\.io/karpenter/pkg/` + regexp.QuoteMeta(folder) + `"`)
	for _, m := range imported.FindAllStringSubmatch(u.nap, -1) {
		if regexp.MustCompile(`[^&\w]` + cmp.Or(m[1], path.Base(folder)) + `\.` + name + `\b`).MatchString(u.nap) {
			return true
		}
	}
	return false
}

// byKarpenter reports whether a name of one of Karpenter's packages is used, beside its
// declaration.
func (u *users) byKarpenter(pkg, name string) bool {
	elsewhere := regexp.MustCompile(`\b\w*` + path.Base(pkg) + `\.` + name + `\b`)
	for folder, text := range u.theirs {
		if !deciding(folder) && folder != pkg && elsewhere.MatchString(text) {
			return true
		}
	}
	return !deciding(pkg) && len(regexp.MustCompile(`\b`+name+`\b`).FindAllString(u.theirs[pkg], -1)) > 1
}

// eventFunctions are Karpenter's functions that make events, "package.Function", by reason, and
// the reasons that they do not share.
func (u *users) eventFunctions() (functions map[string][]string, inline []string) {
	reasons := regexp.MustCompile(`Reason:\s+(?:events\.(\w+)|"(\w+)")`)
	makes := regexp.MustCompile(`(?s)\nfunc (\w+)\([^\n]*(?:events\.Event|\[\]events\.Event)[^\n]*\{\n(.*?)\n\}\n`)
	functions = map[string][]string{}
	for folder, text := range u.theirs {
		for _, f := range makes.FindAllStringSubmatch(text, -1) {
			for _, m := range reasons.FindAllStringSubmatch(f[2], -1) {
				reason := m[2]
				if m[1] != "" {
					reason = regexp.MustCompile(`\t` + m[1] + `\s+= "(\w+)"`).FindStringSubmatch(u.theirs["events"])[1]
				} else {
					inline = append(inline, reason)
				}
				functions[reason] = append(functions[reason], folder+"."+f[1])
			}
		}
	}
	return functions, inline
}

// Nothing makes events beside package event, which lists their reasons: neither by itself, nor by
// a function of Karpenter's, nor past the recorder.
func TestEventsAreMadeInOnePlace(t *testing.T) {
	functions, _ := newUsers(t).eventFunctions()
	elsewhere := &users{}
	for _, root := range []string{".", "../azure", "../kube", "../fleet", "../../cmd"} {
		for folder, text := range readSource(t, root) {
			if root == "." && folder == "event" {
				continue
			}
			elsewhere.nap += text
			for _, m := range regexp.MustCompile(`(?m)^\s*(?:import )?(\w*) ?"sigs\.k8s\.io/karpenter/pkg/events"`).FindAllStringSubmatch(text, -1) {
				if regexp.MustCompile(`\b` + cmp.Or(m[1], "events") + `\.Event\{`).MatchString(text) {
					t.Errorf("%s/%s makes an event by itself: add a function to internal/controller/event, and its reason to the list there", root, folder)
				}
			}
			if regexp.MustCompile(`\.(Annotated)?Eventf?\(\w+, (corev1\.EventType|")`).MatchString(text) {
				t.Errorf("%s/%s sends an event past the recorder of the assembly", root, folder)
			}
		}
	}
	checked := 0
	for reason, made := range functions {
		for _, f := range made {
			folder, name, _ := strings.Cut(f, ".")
			if checked++; elsewhere.byNap(folder, name) {
				t.Errorf("event %s: %s is called outside internal/controller/event", reason, f)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d functions of Karpenter's were found", checked)
	}
}

// The events that Karpenter knows are on the page, and who sends them is true.
func TestKarpentersEventsAreOnThePage(t *testing.T) {
	u := newUsers(t)
	var real []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+)\s+= "(\w+)"$`).FindAllStringSubmatch(u.theirs["events"], -1) {
		real = append(real, m[2])
	}
	functions, inline := u.eventFunctions()
	for _, reason := range inline {
		if !slices.Contains(real, reason) {
			real = append(real, reason)
		}
	}
	table := page(t)["Events"]
	same(t, "events", table, real)
	for reason, cells := range table {
		nap := false
		for _, f := range functions[reason] {
			folder, name, _ := strings.Cut(f, ".")
			nap = nap || u.byNap(folder, name)
		}
		switch cells[0] {
		case "nap":
			if !nap && !strings.Contains(u.nap, `events.`+reason) && !strings.Contains(u.nap, `"`+reason+`"`) {
				t.Errorf("event %s: nothing of nap sends it, by %v", reason, functions[reason])
			}
		case "Karpenter":
			if nap {
				t.Errorf("event %s: nap sends it, too", reason)
			}
		case "none", "nap and Karpenter":
		default:
			t.Errorf("event %s: who is %q?", reason, cells[0])
		}
	}
}

// metricVariables finds the Go names of Karpenter's metrics by name.
func metricVariables(t *testing.T, theirs source) map[string]string {
	t.Helper()
	constant := regexp.MustCompile(`(?m)^\s*(?:const )?(\w+)\s*=\s*"([\w.]+)"`)
	constants := func(folder string) map[string]string {
		out := map[string]string{}
		for _, m := range constant.FindAllStringSubmatch(theirs[folder], -1) {
			out[m[1]] = m[2]
		}
		return out
	}
	shared := constants("metrics")
	declared := regexp.MustCompile(`(?s)(\w+)\s*=\s*opmetrics\.NewPrometheus\w+\((.*?)\n\t*opmetrics\.\w+,\n`)
	field := func(body, name string) string {
		m := regexp.MustCompile(name + `:\s+("?)([\w.]+)"?`).FindStringSubmatch(body)
		if m == nil {
			return ""
		}
		if m[1] != "" {
			return m[2]
		}
		return "=" + m[2]
	}
	out := map[string]string{}
	for folder, text := range theirs {
		own := constants(folder)
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			parts := []string{"karpenter"}
			for _, name := range []string{"Subsystem", "Name"} {
				value := field(m[2], name)
				if local, is := strings.CutPrefix(value, "="); is {
					value = own[local]
					if of, name, qualified := strings.Cut(local, "."); qualified && of == "metrics" {
						value = shared[name]
					} else if value == "" {
						value = shared[local]
					}
				}
				if value != "" {
					parts = append(parts, value)
				}
			}
			out[strings.Join(parts, "_")] = folder + "." + m[1]
		}
	}
	return out
}

// Who writes a metric is true: something of nap's uses it, or one of Karpenter's
// controllers that run with engine nap. Every metric in the sources of Karpenter's module
// is on the page, also one of a package that nap does not import.
func TestWritersOfKarpentersMetricsAreTrue(t *testing.T) {
	u, table := newUsers(t), page(t)["Metrics"]
	variables := metricVariables(t, u.theirs)
	for name, at := range variables {
		if table[name] == nil {
			t.Errorf("%s of Karpenter's (%s) is not on the page", name, at)
		}
	}
	for name, cells := range table {
		at := variables[name]
		if at == "" {
			t.Errorf("%s: its variable was not found", name)
			continue
		}
		folder, variable, _ := strings.Cut(at, ".")
		nap := u.byNap(folder, variable)
		if name == "karpenter_build_info" {
			nap = strings.Contains(u.nap, `"karpenter_build_info"`)
		}
		theirs := u.byKarpenter(folder, variable)
		who := cells[1]
		if who == "nap" != (nap && !theirs) || who == "Karpenter" != (theirs && !nap) || who == "both" != (theirs && nap) || who == "none" != (!theirs && !nap) {
			t.Errorf("%s is said to be written by %q; nap uses it %v, Karpenter's controllers %v (%s)", name, who, nap, theirs, at)
		}
		if who == "none" && cells[2] == "" {
			t.Errorf("%s: why does nothing write it?", name)
		}
	}
}
