//go:build scale

package cloud_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/controller"
	"github.com/nodeautoprovision/nap/internal/controller/shadowkeeper"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
	"github.com/nodeautoprovision/nap/internal/shadow"
)

// TestShadowBesideKarpenter lets Karpenter's own provisioner rule while machines come and
// go, and a shadow with its own role watch.
func TestShadowBesideKarpenter(t *testing.T) {
	story, err := scenario.Story("bill")
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, "karpenter", cloud.Options{ProvisionMode: config.ModeVMs})
	seen := &recorder{}
	as := asShadow(t, l, seen)
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
