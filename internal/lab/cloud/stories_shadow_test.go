//go:build scale

package cloud_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/controller"
	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/controller/shadowkeeper"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
	"github.com/nodeautoprovision/nap/internal/shadow"
)

// shadowUser is who the shadow is to the lab's API server: its role is all that it may do.
const shadowUser = "shadow"

// TestShadowBesideKarpenter lets Karpenter's own provisioner rule while machines come and
// go, and a shadow with its own role watch.
func TestShadowBesideKarpenter(t *testing.T) {
	story, err := scenario.Story("bill")
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, "karpenter", cloud.Options{ProvisionMode: config.ModeVMs})
	role, err := rbac.Shadow(rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: shadowUser})
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Apply(t.Context(), l.Config(), role); err != nil {
		t.Fatal(err)
	}
	as := rest.CopyConfig(l.Config())
	as.Impersonate = rest.ImpersonationConfig{UserName: shadowUser}
	seen := &recorder{}
	as.Wrap(seen.wrap)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.RunShadow(ctx, controller.ShadowConfig{
			Settings: shadowkeeper.Settings{Every: 2 * time.Second, BatchIdle: time.Second, BatchMax: 10 * time.Second},
			REST:     as, HealthProbeBindAddress: "0", Logger: testr.New(t), Clock: clock.RealClock{},
		})
	}()
	var told strings.Builder
	err = cloud.Play(t.Context(), l.Env.Dir, story, &told)
	t.Log(told.String())
	stop()
	if failed := <-ended; failed != nil {
		t.Error(failed)
	}
	if err != nil {
		t.Fatal(err)
	}
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(l.Config(), client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	record, err := shadowkeeper.Read(t.Context(), kube)
	if err != nil || record == nil {
		t.Fatalf("there is no report: %v", err)
	}
	expectShadowed(t, record.Since(time.Time{}))
	seen.expectReportAlone(t)
}

// expectShadowed holds a report of the story against what happened in it.
func expectShadowed(t *testing.T, r *shadow.Report) {
	t.Helper()
	t.Logf("%d samples, %.4f h watched: paid $%.4f, with nap $%.4f, %.0f%% less, no less than $%.4f", r.Samples, r.WatchedHours,
		r.Paid.Total(), r.Planned.Total(), r.SavedPercent, r.Bound)
	if r.Samples < 10 || r.Paid.Total() <= 0 || r.Planned.Total() <= 0 || r.Bound > r.Planned.Total()+1e-9 {
		t.Errorf("the report is %+v", r)
	}
	bought := 0
	for _, p := range r.Purchases {
		t.Logf("%d pods from %s: nap %v $%.3f/h after %s; bought %v $%.3f/h", p.Pods, p.Pod, p.Planned, p.PlannedHourly, p.Decided.Sub(p.At), p.Bought, p.BoughtHourly)
		for _, m := range p.Bought {
			bought += m.Count
		}
		if p.Unplaced > 0 {
			t.Errorf("nap has no place for %d pods that Karpenter had one for", p.Unplaced)
		}
	}
	if len(r.Purchases) == 0 || bought == 0 {
		t.Errorf("%d purchases with %d machines", len(r.Purchases), bought)
	}
}

// recorder passes requests on, and notes writes and refusals.
type recorder struct {
	mu sync.Mutex
	// writes are the paths that were written to, refused what was forbidden; mu guards both.
	writes, refused []string
}

// wrap makes the recorder see what a transport sends.
func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		r.mu.Lock()
		defer r.mu.Unlock()
		if request.Method != http.MethodGet {
			r.writes = append(r.writes, request.Method+" "+request.URL.Path)
		}
		if err == nil && answer.StatusCode == http.StatusForbidden {
			r.refused = append(r.refused, request.Method+" "+request.URL.Path)
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// expectReportAlone states that the shadow wrote its report and nothing else, and asked for
// nothing that it may not do.
func (r *recorder) expectReportAlone(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, write := range r.writes {
		if !strings.Contains(write, "/apis/nap.azure.com/v1alpha1/shadowreports") {
			t.Errorf("the shadow wrote: %s", write)
		}
	}
	for _, refused := range r.refused {
		t.Errorf("the shadow may not: %s", refused)
	}
	if len(r.writes) == 0 {
		t.Error("it wrote nothing")
	}
}
