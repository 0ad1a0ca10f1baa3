package prerequisitewatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// world is a loop in a cluster whose facts the test makes up.
type world struct {
	*Loop
	facts *prerequisites.Facts
	said  []string
	reg   *prometheus.Registry

	mu    sync.Mutex
	reads []time.Time
}

// read reads the facts, and remembers when.
func (w *world) read(context.Context) *prerequisites.Facts {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads = append(w.reads, time.Now())
	return w.facts
}

// readAt is when the facts were read.
func (w *world) readAt() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reads)
}

func (w *world) Publish(evs ...events.Event) {
	for _, e := range evs {
		w.said = append(w.said, e.Type+" "+e.Reason+": "+e.Message)
	}
}

// facts of which the cluster alone is known, and well.
func facts() *prerequisites.Facts {
	f := prerequisites.WithoutAzure(time.Now(), "not asked")
	for _, source := range []prerequisites.Source{prerequisites.SourceKubernetes, prerequisites.SourceDefinitions, prerequisites.SourceDeployments,
		prerequisites.SourceTokens, prerequisites.SourceNodePools, prerequisites.SourceMode,
		prerequisites.SourceSize} {
		f.Unread[source] = "not asked"
	}
	delete(f.Unread, prerequisites.SourceCluster)
	f.Images, f.Prices = []string{"one"}, 1
	f.Cluster = &managedcluster.Facts{
		Kubelet: managedcluster.Identity{ClientID: "c", ResourceID: "r"},
		State:   managedcluster.State{KubernetesVersion: "1.35.1", Power: "Running", UpgradeChannel: "stable"},
	}
	return f
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{facts: facts(), reg: prometheus.NewRegistry()}
	numbers, err := metrics.NewPrerequisites(w.reg)
	if err != nil {
		t.Fatal(err)
	}
	w.Loop = &Loop{
		Kube: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build(), Recorder: w, Clock: clock.RealClock{},
		Metrics: numbers, Doctor: "nap doctor -g g -n n", Random: func() float64 { return 0.5 },
		Read: w.read,
	}
	return w
}

func object(unmet ...string) *v1alpha1.NodeAutoProvisioning {
	return &v1alpha1.NodeAutoProvisioning{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NodeAutoProvisioningName},
		Status:     v1alpha1.NodeAutoProvisioningStatus{UnmetPrerequisites: unmet},
	}
}

// gauge is the metric of a row; none where it has no value.
func (w *world) gauge(t *testing.T, check string) string {
	t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == check {
				return map[float64]string{0: "met", 1: "not met"}[m.GetGauge().GetValue()]
			}
		}
	}
	return "none"
}

func (w *world) looks(t *testing.T) Report {
	t.Helper()
	if err := w.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.Report()
}

func calico(f *prerequisites.Facts) { f.Cluster.Network.Policy = "calico" }
func windows(f *prerequisites.Facts) {
	f.Cluster.Pools = managedcluster.AgentPools{{Name: "w", OS: "Windows"}}
}

// TestRowsThatChangeAreToldOnce: an event for each row that is not met any more, and for
// each that is again, and none in between.
func TestRowsThatChangeAreToldOnce(t *testing.T) {
	w := newWorld(t, object())
	if r := w.Report(); r.Ran() || r.Message() != "" {
		t.Errorf("before the first look: %+v", r)
	}
	for _, tt := range []struct {
		change func(*prerequisites.Facts)
		unmet  []string
		events []string // beginnings of those that are new
	}{
		{func(*prerequisites.Facts) {}, nil, nil},
		{calico, []string{"network-policy"}, []string{"Warning PrerequisiteNotMet: Prerequisite 13 network-policy is not met (failed): the network policy is Calico"}},
		{calico, []string{"network-policy"}, nil},
		{func(f *prerequisites.Facts) { calico(f); windows(f) }, []string{"network-policy", "windows-pools"},
			[]string{"Warning PrerequisiteNotMet: Prerequisite 4 windows-pools is not met (warning)"}},
		{windows, []string{"windows-pools"}, []string{"Normal PrerequisiteMet: Prerequisite 13 network-policy is met"}},
	} {
		w.facts, w.said = facts(), nil
		tt.change(w.facts)
		report := w.looks(t)
		if got := report.Names(); !slices.Equal(got, tt.unmet) || len(w.said) != len(tt.events) {
			t.Errorf("unmet %v, events %q, want %v, %q", got, w.said, tt.unmet, tt.events)
			continue
		}
		for i, want := range tt.events {
			if !strings.HasPrefix(w.said[i], want) {
				t.Errorf("event %q, want %q", w.said[i], want)
			}
		}
	}
	if w.gauge(t, "network-policy") != "met" || w.gauge(t, "windows-pools") != "not met" || w.gauge(t, "quota") != "none" {
		t.Errorf("metrics: %s, %s, %s", w.gauge(t, "network-policy"), w.gauge(t, "windows-pools"), w.gauge(t, "quota"))
	}
}

// TestRestartTellsNothingAgain: a controller that takes over knows from the object what has
// been told, and tells what has changed since.
func TestRestartTellsNothingAgain(t *testing.T) {
	w := newWorld(t, object("network-policy", "ip-families"))
	calico(w.facts)
	w.looks(t)
	if len(w.said) != 1 || !strings.HasPrefix(w.said[0], "Normal PrerequisiteMet: Prerequisite 7 ip-families") {
		t.Errorf("events %q", w.said)
	}
}

// TestMissingRightIsNotKnown: what was known of a row holds for an hour, and then it is
// neither failed nor met, without an event.
func TestMissingRightIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, object())
		calico(w.facts)
		w.looks(t)
		w.facts = facts()
		w.facts.Unread[prerequisites.SourceCluster] = "Azure answers 403 AuthorizationFailed"
		w.said = nil
		time.Sleep(holds - time.Second)
		if r := w.looks(t); !slices.Equal(r.Names(), []string{"network-policy"}) || w.gauge(t, "network-policy") != "not met" {
			t.Errorf("within the hour: %v, metric %s", r.Names(), w.gauge(t, "network-policy"))
		}
		time.Sleep(time.Second)
		r := w.looks(t)
		if r.Message() != "" || r.Fails() || w.gauge(t, "network-policy") != "none" || len(w.said) > 0 {
			t.Errorf("after it: %q, metric %s, events %q", r.Message(), w.gauge(t, "network-policy"), w.said)
		}
	})
}

// TestChecksRunAtStartAndEveryTenMinutes: with the object there, and a minute more or less;
// before it is there, nothing is read.
func TestChecksRunAtStartAndEveryTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var random atomic.Pointer[float64]
		random.Store(new(0.5))
		w.Random = func() float64 { return *random.Load() }
		begun := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Start(ctx) }()
		time.Sleep(again / 2)
		if err := w.Kube.(client.Client).Create(ctx, object()); err != nil {
			t.Fatal(err)
		}
		for i, next := range []float64{0, 0.999, 0.5} {
			random.Store(&next)
			time.Sleep(every + jitter)
			synctest.Wait()
			if reads := len(w.readAt()); reads < i+1 {
				t.Fatalf("%d reads after %v", reads, time.Since(begun))
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		reads := w.readAt()
		if reads[0].Sub(begun) != again {
			t.Errorf("first read after %v", reads[0].Sub(begun))
		}
		for i := 1; i < len(reads); i++ {
			if gap := reads[i].Sub(reads[i-1]); gap < every-jitter || gap > every+jitter {
				t.Errorf("read again after %v", gap)
			}
		}
	})
}

// TestReadThatIsCutShortSaysNothing: a controller that ends does not call what it could not
// read any more unknown.
func TestReadThatIsCutShortSaysNothing(t *testing.T) {
	w := newWorld(t, object())
	calico(w.facts)
	w.looks(t)
	ctx, stop := context.WithCancelCause(t.Context())
	w.Loop.Read = func(context.Context) *prerequisites.Facts {
		stop(errors.New("ended"))
		return prerequisites.WithoutAzure(time.Now(), "cut short")
	}
	if err := w.look(ctx); err != nil {
		t.Error(err)
	}
	if r := w.Report(); !slices.Equal(r.Names(), []string{"network-policy"}) {
		t.Errorf("unmet %v", r.Names())
	}
}

func TestReportNamesFirstRowsAndCountsTheRest(t *testing.T) {
	r := Report{Doctor: "nap doctor", Results: []prerequisites.Result{
		{Number: 1, Name: "a", Verdict: prerequisites.OK}, {Number: 2, Name: "b", Verdict: prerequisites.Warning, Finding: strings.Repeat("é", mostFinding)},
		{Number: 3, Name: "c", Verdict: prerequisites.Failed, Finding: "x"}, {Number: 4, Name: "d", Verdict: prerequisites.Warning, Finding: "y"},
		{Number: 5, Name: "e", Verdict: prerequisites.Warning, Finding: "z"}, {Number: 6, Name: "f", Verdict: prerequisites.Unknown, Finding: "403"},
	}}
	if got, want := r.Line(), "4 of 6 prerequisites not met: c (failed), b (warning), d (warning), 1 more; see nap doctor"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got := r.Message()
	if !strings.HasPrefix(got, "3 c (failed): x; 2 b (warning): éé") || !strings.HasSuffix(got, "é...; 4 d (warning): y; and 1 more. What to do: nap doctor") {
		t.Errorf("got %q", got)
	}
}
