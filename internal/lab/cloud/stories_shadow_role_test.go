//go:build scale

package cloud_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller"
	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/controller/shadowkeeper"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/shadow"
)

// shadowUser is who the shadow is to the lab's API server: its role is all that it may do.
const shadowUser = "shadow"

// asShadow is the connection of that user, whose requests a recorder sees.
func asShadow(t *testing.T, l *labtest.Lab, seen *recorder) *rest.Config {
	t.Helper()
	role, err := rbac.Shadow(rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: shadowUser})
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Apply(t.Context(), l.Config(), role); err != nil {
		t.Fatal(err)
	}
	as := rest.CopyConfig(l.Config())
	as.Impersonate = rest.ImpersonationConfig{UserName: shadowUser}
	as.Wrap(seen.wrap)
	return as
}

// TestShadowNeedsItsRoleAlone runs a shadow on a real API server that has none of Karpenter's
// kinds, as where the cluster autoscaler rules.
func TestShadowNeedsItsRoleAlone(t *testing.T) {
	l := labtest.Start(t, lab.Config{})
	definition, err := crds.ShadowReport()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Apply(t.Context(), l.Config(), text); err != nil {
		t.Fatal(err)
	}
	room := corev1.ResourceList{"cpu": resource.MustParse("7820m"), "memory": resource.MustParse("28Gi"), "pods": resource.MustParse("110")}
	for i := range 2 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("user-", i), Labels: map[string]string{
			corev1.LabelInstanceTypeStable: "Standard_D8s_v5", corev1.LabelTopologyRegion: "eastus", corev1.LabelTopologyZone: "eastus-1",
		}}, Status: corev1.NodeStatus{Allocatable: room, Capacity: room}}
		if _, err := l.Client().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	seen := &recorder{}
	as := asShadow(t, l, seen)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.RunShadow(ctx, controller.ShadowConfig{
			Settings: shadowkeeper.Settings{Every: time.Second, BatchIdle: time.Second, BatchMax: 10 * time.Second},
			REST:     as, HealthProbeBindAddress: "0", Logger: testr.New(t), Clock: clock.RealClock{},
		})
	}()
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(l.Config(), client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	var report *shadow.Report
	labtest.Await(t, "a report of two samples", func() bool {
		record, err := shadowkeeper.Read(t.Context(), kube)
		if err != nil || record == nil {
			return false
		}
		report = record.Since(time.Time{})
		return report.Samples >= 2 && report.Now.Nodes == 2
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, "the cluster has no NodePools") || report.Now.Paid.Total() < 2*0.384 {
		t.Errorf("the nodes cost $%.3f/h; notes:\n%s", report.Now.Paid.Total(), notes)
	}
	seen.expectReportAlone(t)
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
